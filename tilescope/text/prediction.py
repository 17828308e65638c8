"""Report of ``tilescope predict``."""

from collections.abc import Sequence

from simulator import Prediction

from ..cli.target import Target, settled
from ..gpu.prediction_inputs import Forecast
from .layout import fitted, in_unit, percent, table, time_unit, wrapped

_WIDTHS = (20, 10, 20, 10, 8, 6, 6)
LIMITS = {
    "launch": "launch", "latency": "latency", "issue": "instruction issue", "fp32": "FP32",
    "fp64": "FP64", "int": "integers", "sfu": "SFU", "tensor": "tensor cores",
    "l1": "L1", "shared": "shared memory", "l2": "L2", "dram": "DRAM", "atomics": "atomics",
    "barriers": "barriers",
}  # fmt: skip
"""What limits a launch, in words."""


def predictions(rows: Sequence[tuple[Target, Sequence[Prediction]]], caches: str) -> str:
    """Return a line for each kernel and GPU, with an explanation."""
    several = len(rows[0][1]) > 1
    head = ("", "time", "limited by", "DRAM read", "written", "L1", "L2")
    lines = list(dict.fromkeys(filter(None, (settled(target) for target, _ in rows))))
    chips = dict.fromkeys(p.gpu.name for _, found in rows for p in found)
    lines += [f"on {', '.join(chips)}", ""]
    cells: list[tuple[str, ...]] = []
    unit = time_unit(p.time_ms for _, found in rows for p in found)
    for target, found in rows:
        name = _name(target)
        if several or len(name) >= _WIDTHS[0]:
            cells.append((name, *("" for _ in _WIDTHS[1:])))
        for p in found:
            cells.append(_row(p.gpu.key if several else name, p, unit))
    lines += [*table(head, cells, _WIDTHS), ""]
    for target, found in rows:
        for p in found:
            name = _name(target) + (f" on {p.gpu.key}" if several else "")
            lines.append(wrapped(f"{name}: {'; '.join((*_ranges(p, unit), *_lines(p, unit)))}"))
    state = {"warm": "warm", "cold": "cold"}.get(caches)
    lines.append(
        wrapped(
            f"times, traffic and rates: with {state} caches" if state
            else "times: with warm caches; DRAM read, written, L1, L2: with cold ones (--caches)"
        )
    )  # fmt: skip
    lines.append("L1, L2: hit rates, of the sectors that loads request")
    lines.append(wrapped("ranges: nine in ten of the launches that were measured are within"))
    for target, found in rows:
        for p in found:
            name = _name(target) if len(rows) > 1 else ""
            lines += ["", *advice(Forecast(p), name)] if p.advice else []
    return "\n".join(lines)


def advice(made: Forecast, name: str = "") -> list[str]:
    """Return the advice as one part, a sentence each; empty without effective advice."""
    p, of = made.prediction, f" {name}" if name else ""
    if p is None:
        return [wrapped(f"no advice{f' on{of}' if of else ''}: {made.reason}")]
    head = f"what would help{of} most on {p.gpu.name}"
    return ["\n".join([head, *(fitted(f"  {one}") for one in p.advice)])] if p.advice else []


def _ranges(p: Prediction, unit: str) -> list[str]:
    """Return the error ranges of the figures in the table."""
    found = [f"{in_unit(p.low_ms, unit)} to {in_unit(p.high_ms, unit)}"]
    for name, said, shown in (
        ("dram_read_bytes", "DRAM read", _bytes), ("dram_write_bytes", "written", _bytes),
        ("l1_hit_rate", "L1", _rate), ("l2_hit_rate", "L2", _rate),
    ):  # fmt: skip
        if name in p.bands:
            low, high = (shown(end) for end in p.bands[name])
            found.append(f"{said} {low}" + (f" to {high}" if high != low else ""))
    return found


def _lines(p: Prediction, unit: str) -> list[str]:
    """Return registers, the second limiter, and notes."""
    found = [f"{in_unit(p.bounds['launch'], unit)} of it launch overhead"]
    found.append("registers unknown" if p.registers is None else f"{p.registers} registers")
    found.append(f"{percent(p.warps_active)} of the warps active")
    others = sorted(
        (ms / p.time_ms, name) for name, ms in p.bounds.items() if name not in (p.limiter, "launch")
    )
    near = [f"{LIMITS.get(name, name)} {percent(share)}" for share, name in others[::-1][:2]]
    if near:
        found.append(f"next limiters: {', '.join(near)} of the time")
    return [*found, *(note for note in p.notes if not note.startswith("registers unknown"))]


def _row(name: str, p: Prediction, unit: str) -> tuple[str, ...]:
    share = min(1.0, p.bounds.get(p.limiter, 0.0) / p.time_ms)
    return (
        f"  {name}" if len(name) < _WIDTHS[0] - 2 else "", in_unit(p.time_ms, unit),
        f"{LIMITS.get(p.limiter, p.limiter)}: {100 * share:.0f}%", _bytes(p.dram_read_bytes),
        _bytes(p.dram_write_bytes), _rate(p.l1_hit_rate), _rate(p.l2_hit_rate),
    )  # fmt: skip


def _name(target: Target) -> str:
    return f"{target.name}:{target.tile}" if target.tile else target.name


def _bytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def _rate(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"
