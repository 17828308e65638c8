"""Times on a GPU as a table."""

from collections.abc import Sequence

from ..target import settled
from ..timing import Row
from .layout import clip, table, wrapped

_WIDTHS = (26, 12, 20, 12, 10)
_HEAD = ("", "median ms", "middle half ms", "GFLOP/s", "GB/s")


def timings(rows: Sequence[Row], device: str, release: str) -> str:
    """A line a kernel, and how to read it."""
    lines = [f"{device}, driver {release}; median of {len(rows[0].times_ms)} launches"]
    sizes = dict.fromkeys(filter(None, (settled(row.target) for row in rows)))
    lines += [*sizes, ""]
    lines += table(_HEAD, [_row(row) for row in rows], _WIDTHS)
    lines.append("")
    for source in dict.fromkeys(row.work.source for row in rows if row.work.flops):
        lines.append(f"FLOPs: {source}")
    lines.append("GB/s: bytes of the launch's arrays, each once, a second")
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
        return name, "not timed", "-", "-", "-"
    low, high = row.quartiles_ms
    rate = "-" if row.gflops is None else f"{row.gflops:,.0f}"
    moved = "-" if row.gigabytes is None else f"{row.gigabytes:,.0f}"
    return name, f"{row.median_ms:.4f}", f"{low:.4f} to {high:.4f}", rate, moved
