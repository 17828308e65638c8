"""Report of ``--compare``: two runs side by side."""

from collections.abc import Callable, Iterable

from simulator import Counters
from simulator.observe.counters.totals import TRAFFIC

from ..check.outcome import Outcome
from ..cli.target import settled
from .agreement import agreement
from .layout import clip, columns, human_bytes, percent, shape, table, wrapped
from .report import hazards, results

Figure = tuple[str, float | None, float | None, Callable[[float], str]]
"""A name, both values, and how to write them."""
_LABEL = 24


def comparison(first: Outcome, second: Outcome) -> str:
    """Return the figures of both runs in two columns, with ratios."""
    titles = _titles(first, second)
    names = _short(*titles)
    cells = [max(19, len(name) + 2) for name in names]
    widths = (_LABEL, *cells, max(8, min(12, columns() - _LABEL - sum(cells))))
    head = ("", *names, "ratio")
    launch = [
        ("grid", *(shape(o.run.grid) for o in (first, second)), ""),
        ("block", *(shape(o.run.block) for o in (first, second)), ""),
    ]
    title = " against ".join(titles)
    text = [wrapped(title), *filter(None, [_sizes(first, second)]), ""]
    rows = list(launch)
    for group in _groups(first, second):
        shown = [_row(figure) for figure in group if figure[1] or figure[2]]
        rows += [("",) * 4, *shown] if shown else []
    text += [*table(head, rows, widths), ""]
    text.append("ratio: the first over the second")
    if first.target.entry is None:
        text += ["", *agreement(first, second)]
    for outcome, name in zip((first, second), titles, strict=True):
        text += ["", name, *results(outcome), *hazards(outcome)]
    return "\n".join(text)


def ratios(first: Outcome, second: Outcome) -> dict[str, float | None]:
    """Return the ratios for JSON; ``None`` for a division by zero."""
    return {
        name.replace(" ", "_"): a / b if a is not None and b else None
        for group in _groups(first, second)
        for name, a, b, _ in group
    }


def _titles(first: Outcome, second: Outcome) -> tuple[str, str]:
    """Return distinct titles of the two: their names, or else their files."""
    a, b = first.target, second.target
    return (a.name, b.name) if a.name != b.name else (a.file or a.name, b.file or b.name)


def _sizes(first: Outcome, second: Outcome) -> str:
    a, b = settled(first.target), settled(second.target)
    return a if a == b else f"{a} against {b}"


def _short(first: str, second: str) -> tuple[str, str]:
    """Return names without a common family prefix."""
    family = first.partition("_")[0] + "_"
    if not second.startswith(family):
        family = ""
    return clip(first.removeprefix(family), 22), clip(second.removeprefix(family), 22)


def _row(figure: Figure) -> tuple[str, str, str, str]:
    name, a, b, write = figure
    ratio = f"{a / b:,.2f}x" if a and b else "-"
    return name, "-" if a is None else write(a), "-" if b is None else write(b), ratio


def _groups(first: Outcome, second: Outcome) -> Iterable[list[Figure]]:
    a, b = first.run.counters, second.run.counters
    for kind in TRAFFIC:
        name = kind.replace("_", " ")
        x, y = getattr(a, kind), getattr(b, kind)
        group: list[Figure] = [
            (f"{name} requests", x.requests, y.requests, _whole),
            (f"{name} accesses", x.accesses, y.accesses, _whole),
            (f"{name} bytes", x.bytes, y.bytes, human_bytes),
        ]
        if kind.startswith("bulk_shared"):
            group = group[2:]
        if kind.startswith(("global", "local")) or kind in ("bulk_load", "bulk_store"):
            group.append((f"{name} sectors", x.sectors, y.sectors, _whole))
            each = [t.sectors_per_request if t.requests else None for t in (x, y)]
            group.append(("  sectors a request", each[0], each[1], _two))
            share = [t.coalescing if t.requests else None for t in (x, y)]
            group.append(("  coalescing", share[0], share[1], percent))
        elif kind.startswith("shared"):
            group.append((f"{name} wavefronts", x.wavefronts, y.wavefronts, _whole))
            group.append((f"{name} conflicts", x.bank_conflicts, y.bank_conflicts, _whole))
        yield group
    yield [*_work(a, b), ("seconds simulated", first.run.seconds, second.run.seconds, _two)]


def _work(a: Counters, b: Counters) -> list[Figure]:
    return [
        ("FLOPs", a.flops, b.flops, _whole),
        ("FLOP per byte", a.intensity, b.intensity, _two),
        ("FLOP per sector byte", a.sector_intensity, b.sector_intensity, _two),
        ("lanes on", a.lane_utilisation, b.lane_utilisation, percent),
        ("divergent branches", a.divergent_branches, b.divergent_branches, _whole),
        ("warp instructions", a.warp_instructions, b.warp_instructions, _whole),
    ]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _two(value: float) -> str:
    return f"{value:,.2f}"
