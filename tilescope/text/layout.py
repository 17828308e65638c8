"""Formatting of numbers, tables and paths."""

import math
import textwrap
from collections.abc import Iterable, Sequence

from simulator import Hazard
from simulator.hazards.wording.text import wrap

from .width import columns as columns

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def wrapped(text: str) -> str:
    """Wrap a text."""
    return "\n".join(wrap(text, columns(), others="  "))


def fitted(text: str) -> str:
    """Wrap long lines under their own indentation."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        cut = textwrap.wrap(
            line, columns(), subsequent_indent=indent, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
        lines += cut if len(line) > columns() else [line]
    return "\n".join(lines)


def hazard_text(hazard: Hazard) -> str:
    """Return a hazard's report."""
    return hazard.text(columns())


def milliseconds(time: float) -> str:
    """Return ``12.3 us``, ``4.56 ms`` or ``1.23 s``."""
    if time < 0.1:
        return f"{time * 1e3:.1f} us"
    return f"{time:.3g} ms" if time < 1000 else f"{time / 1e3:.3g} s"


def time_unit(times: Iterable[float]) -> str:
    """Return the unit in which all of these milliseconds are shown: that of the longest."""
    longest = max(times, default=0.0)
    return "s" if longest >= 1000 else "ms" if longest >= 1 else "us"


def in_unit(time: float, unit: str) -> str:
    """Return ``428 us``: milliseconds in a unit, three digits, never as a power of ten."""
    count = time * {"s": 1e-3, "ms": 1.0, "us": 1e3}[unit]
    digits = max(0, 2 - math.floor(math.log10(count))) if count else 0
    return f"{count:,.{digits}f} {unit}"


def human_bytes(count: float) -> str:
    """Return ``8.00 MiB``; units are powers of 1024."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"


def human_count(count: float) -> str:
    """Return ``690 million``."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """Return ``62.5%``; a share below one never reads as 100.0%."""
    if 0.9995 <= share < 1:
        return "99.9%"
    return f"{100 * share:.1f}%"


def shape(numbers: Sequence[int]) -> str:
    """Return ``16x16``, without trailing ones, x first."""
    extents = list(numbers)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return "x".join(f"{number:,}" for number in extents)


def clip(text: str, width: int) -> str:
    """Clip a text to a width."""
    return text if len(text) <= width else text[: max(0, width - 3)].rstrip() + "..."


def table(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of a table, first column left-aligned, others right-aligned.

    On a terminal narrower than ``widths``, columns shrink to their contents; if that does not
    suffice, each cell has a line.
    """
    if sum(widths) > columns():
        needed = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        widths = (needed[0], *(2 + n for n in needed[1:]))
        if sum(widths) > columns():
            return _stacked(head, rows)
    return [
        "".join(
            [f"{row[0]:<{widths[0]}}"]
            + [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in (head, *rows)
    ]


def _stacked(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as its name with one line for each column."""
    width = max(map(len, head[1:]))
    lines = [head[0]] if head[0] else []
    for row in rows:
        lines.append(row[0])
        pairs = zip(head[1:], row[1:], strict=True)
        lines += [f"  {name:<{width}}  {cell.strip()}" for name, cell in pairs if cell]
    return lines
