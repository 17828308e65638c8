"""Numbers, tables and paths as a person reads them."""

import os
from collections.abc import Sequence
from pathlib import Path

import kernels

WIDTH = 80
"""Columns of a report."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(count: float) -> str:
    """``8.00 MiB``: units are powers of 1024."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"


def human_count(count: float) -> str:
    """``690 million``."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """``62.5%``; a share that is not quite all never reads as 100.0%."""
    if 0.9995 <= share < 1:
        return "99.9%"
    return f"{100 * share:.1f}%"


def shape(numbers: Sequence[int]) -> str:
    """``16x16``: without the trailing ones, x first."""
    kept = list(numbers)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(f"{number:,}" for number in kept)


def clip(text: str, width: int) -> str:
    """The text, cut to a width."""
    return text if len(text) <= width else text[: max(0, width - 3)].rstrip() + "..."


def table(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    return [
        "".join(
            [f"{row[0]:<{widths[0]}}"]
            + [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in (head, *rows)
    ]


def display_path(file: str) -> str:
    """A path below the working folder from there; a library source from ``kernels/``."""
    path, library = Path(os.path.abspath(file)), Path(kernels.__file__).resolve().parent
    for folder, root in ((library, library.parent), (Path.cwd(), Path.cwd())):
        if path.is_relative_to(folder):
            return str(path.relative_to(root))
    return file
