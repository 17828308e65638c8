"""Report of ``tilescope time``."""

from collections.abc import Sequence

from ..cli.target import settled
from ..gpu.timing import Row
from .layout import clip, table, wrapped
from .prediction import LIMITS

_WIDTHS = (22, 11, 19, 10, 9, 9)
_HEAD = ("", "median ms", "middle half ms", "predicted", "GFLOP/s", "GB/s")


def timings(rows: Sequence[Row], device: str, release: str) -> str:
    """Return a line for each kernel, with an explanation."""
    lines = [f"{device}, driver {release}; median of {len(rows[0].times_ms)} launches"]
    sizes = dict.fromkeys(filter(None, (settled(row.target) for row in rows)))
    lines += [*sizes, ""]
    lines += table(_HEAD, [_row(row) for row in rows], _WIDTHS)
    lines.append("")
    for source in dict.fromkeys(row.work.source for row in rows if row.work.flops):
        lines.append(f"FLOPs: {source}")
    lines.append("GB/s: bytes of the launch's arrays, each once, a second")
    lines += [wrapped(said) for row in rows if (said := _comparison(row))]
    restored = [row.name for row in rows if row.restored]
    if restored:
        lines.append(
            wrapped(f"accumulates, arrays put back before each launch: {', '.join(restored)}")
        )
    lines += [wrapped(f"{row.name}: not timed ({row.error})") for row in rows if row.error]
    return "\n".join(lines)


def _row(row: Row) -> tuple[str, ...]:
    name = clip(row.name, _WIDTHS[0] - 1)
    if row.error:
        return name, "not timed", "-", "-", "-", "-"
    low, high = row.quartiles_ms
    rate = "-" if row.gflops is None else f"{row.gflops:,.0f}"
    moved = "-" if row.gigabytes is None else f"{row.gigabytes:,.0f}"
    ahead = row.forecast.prediction if row.forecast else None
    predicted = f"{ahead.time_ms:.4f}" if ahead else "-"
    median, half = f"{row.median_ms:.4f}", f"{low:.4f} to {high:.4f}"
    return name, median, half, predicted, rate, moved


def _comparison(row: Row) -> str:
    """Return the prediction compared with the measured time."""
    if row.forecast is None or row.error:
        return ""
    p = row.forecast.prediction
    if p is None:
        return f"{row.name}: not predicted ({row.forecast.reason})"
    band = f"{p.low_ms:.4f} to {p.high_ms:.4f} ms"
    inside = "within" if p.low_ms <= row.median_ms <= p.high_ms else "outside"
    return (
        f"{row.name}: predicted limited by {LIMITS.get(p.limiter, p.limiter)}; measured "
        f"{row.median_ms / p.time_ms:.2f} times that, {inside} {band}"
    )
