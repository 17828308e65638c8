"""Report by source line: the most expensive ones, or all with their traffic."""

import textwrap

from kernels.source_access import display_path
from simulator import Counters, Line, Run, Traffic
from simulator.hazards.wording.text import shortened
from simulator.observe.counters.totals import TRAFFIC

from ..cli.menu.choices import SORTS
from .layout import clip, columns, human_bytes, percent, table

_SHOWN = 8
_NAMES = SORTS[1:-1]
_LONG = ("warp instructions", "global sectors", "shared wavefronts")
_CODE = 20
"""Columns that a line of code needs to be worth showing."""


def busiest(run: Run, by: str = "cost") -> str:
    """Return the most expensive lines, with their shares of the total cost."""
    lines = [line for line in run.lines if line.line]
    if not lines:
        return "no source lines: this PTX was made without line information (-lineinfo)"
    whole = _costs(run.counters)
    counted = [i for i, total in enumerate(whole) if total]
    lines.sort(key=lambda line: _order(line, by))
    rows = [
        (_place(line, run), *(_share(_costs(line.counters)[i], whole[i]) for i in counted))
        for line in lines[:_SHOWN]
    ]
    widths = (max(6, *(len(row[0]) + 1 for row in rows)), *(9 for _ in counted))
    head = ("line", *(_NAMES[i] for i in counted))
    text = table(head, rows, widths)
    text = _with_code(text, [line.code for line in lines[:_SHOWN]], sum(widths))
    named = dict(zip(_NAMES, _LONG, strict=True)).get(by, by)
    shares = textwrap.wrap(f"share of: {', '.join(_LONG[i] for i in counted)}", columns())
    rest = len(lines) - _SHOWN
    more = [f"(and {rest} more: --by-line shows all)"] if rest > 0 else []
    title = _titled(f"busiest lines by {named}", run)
    return "\n".join([title, *shares, *text, *more])


def _with_code(text: list[str], codes: list[str], width: int) -> list[str]:
    """Add each line's code to the table, beside it or below it."""
    room = columns() - width - 2
    if room >= _CODE:
        rows = zip(text[1:], codes, strict=True)
        return [text[0], *(f"{row:<{width}}  {clip(code, room)}".rstrip() for row, code in rows)]
    each = (len(text) - 1) // len(codes)
    below = [text[0]]
    for i, code in enumerate(codes):
        below += [*text[1 + i * each : 1 + (i + 1) * each], f"  {clip(code, columns() - 2)}"]
    return below


def _order(line: Line, by: str) -> tuple[float, str, int]:
    instructions, sector_bytes, waves = costs = _costs(line.counters)
    if by == "cost":
        # Cycles of a multiprocessor at best: four warps issue, a wavefront goes through, 32 bytes
        # come in (L2 gives somewhat more, DRAM somewhat less).
        weights = instructions / 4 + sector_bytes / 32 + waves
    else:
        weights = costs[_NAMES.index(by)] if by in _NAMES else 0
    return -weights, line.file, line.line


def by_line(run: Run, by: str = "line") -> str:
    """Return every line with its code, and its counters below."""
    text = [_titled("traffic of each line", run)]
    for line in sorted(run.lines, key=lambda line: _order(line, by)) if by != "line" else run.lines:
        counters = line.counters
        place = _place(line, run) if line.line else "no line"
        text += ["", clip(f"{place:>5}  {line.code}", columns())]
        done = [f"{counters.warp_instructions:,} warp instructions"]
        if counters.flops:
            done.append(f"{counters.flops:,} FLOPs")
        if counters.divergent_branches:
            done.append(f"{counters.divergent_branches:,} divergent")
        text.append(" " * 7 + ", ".join(done))
        text += _traffic(counters)
    return "\n".join(text)


def used(counters: Counters, spaces: tuple[str, ...]) -> list[tuple[str, Traffic]]:
    """Return the kinds of access to these spaces that occurred, with readable names."""
    return [
        (name.replace("_", " "), getattr(counters, name))
        for name in TRAFFIC
        if name.startswith(spaces) and getattr(counters, name).requests
    ]


def _traffic(counters: Counters) -> list[str]:
    text = []
    for name, t in used(counters, ("",)):
        row = f"       {name:<18}{t.requests:>8,} requests  {human_bytes(t.bytes):>10}"
        if t.sectors:
            row += f"  {t.sectors_per_request:.2f} sectors each"
        if t.wavefronts:
            row += f"  {t.wavefronts / t.requests:.2f} wavefronts each"
        text.append(row)
    return text


def _costs(counters: Counters) -> tuple[int, int, int]:
    return (
        counters.warp_instructions,
        counters.global_sector_bytes,
        counters.shared_load.wavefronts
        + counters.shared_store.wavefronts
        + counters.shared_atomic.wavefronts,
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if part else "-"


def _files(run: Run) -> set[str]:
    return {line.file for line in run.lines if line.line}


def _titled(title: str, run: Run) -> str:
    """Return a title with the file's name, if there is only one."""
    files = _files(run)
    head = f"{title}, "
    path = shortened(display_path(files.pop()), columns() - len(head)) if len(files) == 1 else ""
    return head + path if path else title


def _place(line: Line, run: Run) -> str:
    """Return a line's number, with the file if there are several."""
    files = [display_path(file) for file in _files(run)]
    if len(files) == 1:
        return str(line.line)
    path = display_path(line.file)
    name = path.rsplit("/", 1)[-1]
    alone = sum(file.rsplit("/", 1)[-1] == name for file in files) == 1
    return f"{name if alone else shortened(path, columns() // 2)}:{line.line}"
