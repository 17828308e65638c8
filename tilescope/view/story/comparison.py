"""Comparison of two runs: the counter with the largest ratio, and rows on one scale."""

from collections.abc import Sequence
from typing import Any

from simulator import Prediction, Run

from .sentence import Part, plural

_NOTICED = 1.05


def compare(
    runs: Sequence[Run], names: Sequence[str], predictions: Sequence[Prediction | None]
) -> dict[str, Any] | None:
    """Return title and rows that compare the first two runs, or ``None`` for a single run."""
    if len(runs) < 2:
        return None
    first, second = runs[0].counters, runs[1].counters
    rows: list[tuple[str, float, float]] = [
        ("global loads", first.global_load.accesses, second.global_load.accesses),
        ("32-byte sectors", _sectors(first), _sectors(second)),
        ("shared reads", first.shared_load.accesses, second.shared_load.accesses),
        ("bank conflicts", _conflicts(first), _conflicts(second)),
    ]
    times = [item.time_ms * 1000 if item else 0.0 for item in predictions[:2]]
    if all(times):
        gpu = predictions[0].gpu.name if predictions[0] else ""
        rows.append((f"predicted time in \u00b5s, {gpu}", times[0], times[1]))
    title = _title(names, rows)
    return {
        "title": title, "more": [(_same(runs), -1)],
        "rows": [
            {"name": name, "values": [a, b], "ratio": _ratio(name, a, b)}
            for name, a, b in rows if a or b
        ],
    }  # fmt: skip


def _ratio(name: str, a: float, b: float) -> str:
    """Return how many times more or less the second run has, or an empty text."""
    if not (a and b) or a == b:
        return ""
    less, more = ("faster", "slower") if name.startswith("predicted") else ("fewer", "more")
    return f"{round(max(a, b) / min(a, b), 1):g}\u00d7 {less if b < a else more}"


def _sectors(counters: Any) -> int:
    return int(counters.global_load.sectors + counters.global_store.sectors)


def _conflicts(counters: Any) -> int:
    return int(counters.shared_load.bank_conflicts + counters.shared_store.bank_conflicts)


def _title(names: Sequence[str], rows: Sequence[tuple[str, float, float]]) -> list[Part]:
    """Return the sentence about loads, sectors or conflicts, by their largest ratio."""
    one, other = names[:2]
    said = {
        "global loads": "{less} asks global memory {n} times less often than {more}.",
        "32-byte sectors": "{less} moves {n} times fewer sectors than {more}.",
        "bank conflicts": "{less} has {n} times fewer bank conflicts than {more}.",
    }
    best: tuple[float, str] = (_NOTICED, f"{one} and {other} move the same data as often.")
    for name, a, b in rows:
        if name not in said or not (a or b):
            continue
        less, more = (other, one) if a >= b else (one, other)
        low, high = sorted((a, b))
        if low == 0:
            if name == "bank conflicts":
                text = f"{more} has {plural(int(high), 'bank conflict')}; {less} has none."
                best = max(best, (2.0, text))
            continue
        text = said[name].format(less=less, more=more, n=f"{high / low:.3g}")
        best = max(best, (high / low, text))
    return [(best[1], -1)]


def _same(runs: Sequence[Run]) -> str:
    one, other = runs[0].counters, runs[1].counters
    if one.flops and one.flops == other.flops:
        return (
            f"The same {one.flops:,} floating-point operations. What differs is where the operands "
            "come from."
        )
    return f"{one.flops:,} floating-point operations beside {other.flops:,}."
