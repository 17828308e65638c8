"""Source lines: the busiest ones, and all of them with their traffic."""

from simulator import Counters, Line, Run, Traffic
from simulator.observe.totals import TRAFFIC

from .layout import WIDTH, clip, display_path, human_bytes, percent, table

_SHOWN = 8
_NAMES = ("instr", "sectors", "waves")


def busiest(run: Run) -> str:
    """The lines that execute most, with their share of what costs time."""
    lines = [line for line in run.lines if line.line]
    if not lines:
        return "no source lines: this PTX was made without line information (-lineinfo)"
    whole = _costs(run.counters)
    kept = [i for i, total in enumerate(whole) if total]
    lines.sort(key=lambda line: (-line.counters.warp_instructions, line.file, line.line))
    rows = [
        (_place(line, run), *(_share(_costs(line.counters)[i], whole[i]) for i in kept))
        for line in lines[:_SHOWN]
    ]
    widths = (max(6, *(len(row[0]) + 1 for row in rows)), *(9 for _ in kept))
    head = ("line", *(_NAMES[i] for i in kept))
    text = table(head, rows, widths)
    code = WIDTH - sum(widths) - 2
    for i, line in enumerate(lines[:_SHOWN], start=1):
        text[i] = f"{text[i]:<{sum(widths)}}  {clip(line.code, code)}".rstrip()
    title = [clip("busiest lines by warp instructions" + _file(run), WIDTH)]
    shares = "share of: warp instructions"
    if 1 in kept:
        shares += ", global sectors"
    if 2 in kept:
        shares += ", shared wavefronts"
    rest = len(lines) - _SHOWN
    more = [f"(and {rest} more: --by-line shows all)"] if rest > 0 else []
    return "\n".join([*title, shares, *text, *more])


def by_line(run: Run) -> str:
    """Every line with its code, and below it what it did."""
    text = [clip("traffic of each line" + _file(run), WIDTH)]
    for line in run.lines:
        counters = line.counters
        place = _place(line, run) if line.line else "no line"
        text += ["", clip(f"{place:>5}  {line.code}", WIDTH)]
        done = [f"{counters.warp_instructions:,} warp instructions"]
        if counters.flops:
            done.append(f"{counters.flops:,} FLOPs")
        if counters.divergent_branches:
            done.append(f"{counters.divergent_branches:,} divergent")
        text.append(" " * 7 + ", ".join(done))
        text += _traffic(counters)
    return "\n".join(text)


def used(counters: Counters, spaces: tuple[str, ...]) -> list[tuple[str, Traffic]]:
    """The kinds of access to these spaces that happened, with a readable name."""
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


def _file(run: Run) -> str:
    files = _files(run)
    return f", {display_path(files.pop())}" if len(files) == 1 else ""


def _place(line: Line, run: Run) -> str:
    """The line's number, with its file's name where there are several."""
    if len(_files(run)) == 1:
        return str(line.line)
    return f"{display_path(line.file).rsplit('/', 1)[-1]}:{line.line}"
