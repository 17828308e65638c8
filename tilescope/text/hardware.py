"""Report of ``tilescope counters``: simulator and hardware, with explanations of differences."""

import math
from collections.abc import Sequence

from device import UnknownGpu, find_gpu, occupancy
from simulator import Run

from ..gpu.ncu import LAUNCHES, Figure, Readings
from .layout import shape, table, wrapped

_WIDTHS = (28, 15, 15, 15, 5)


def hardware(
    run: Run, found: Sequence[Figure], level0: Readings, default: Readings, gpu: str
) -> str:
    """Return the report."""
    lines = [f"{run.kernel}, grid {shape(run.grid)}, block {shape(run.block)}; {gpu}", ""]
    head = ("counter", "simulator", "level 0", "default", "")
    rows = [
        (
            figure.name, f"{figure.simulator:,}", _number(figure.level0),
            _number(figure.default), figure.verdict,
        )
        for figure in found
    ]  # fmt: skip
    lines += table(head, rows, _WIDTHS)
    equal = sum(figure.equal for figure in found)
    varying = sum(figure.varies for figure in found)
    lines += ["", f"{equal} of {len(found)} counters equal the GPU's at level 0"]
    if varying:
        lines[-1] += f"; {varying} (~) vary too much there to tell"
    lines += [wrapped(text) for text in explanations(found)]
    lines += ["", *_occupancy(run, level0, default, gpu)]
    return "\n".join(lines)


def explanations(found: Sequence[Figure]) -> list[str]:
    """Explain differences between simulator, hardware and compiler levels."""
    by_name = {figure.name: figure for figure in found}
    texts = []
    for figure in found:
        if figure.max_value is not None and figure.level0 is not None:
            texts.append(
                f"{figure.name} read {figure.level0:,} to {figure.max_value:,} at level 0, in "
                f"{LAUNCHES} launches: warps collide now and then, which the simulator's "
                f"{figure.simulator:,} is without"
            )
        if not figure.equal and not figure.varies:
            texts.append(f"{figure.name} differs at level 0: {_suspicion(figure)}")
    for operation in ("load", "store"):
        requests = by_name.get(f"shared_{operation}.requests")
        if requests is None or requests.level0 is None or requests.default is None:
            continue
        if requests.default < requests.level0:
            texts.append(
                f"default: ptxas merged neighbouring shared {operation}s into wider ones, "
                f"{requests.level0:,} requests became {requests.default:,}"
            )
    changed = [
        figure.name for figure in found
        if figure.level0 is not None and figure.default != figure.level0
        and not figure.name.startswith("shared_")
    ]  # fmt: skip
    if changed:
        texts.append(f"default: ptxas changed {', '.join(changed)} (moved, fused or left out)")
    elif all(figure.default == figure.level0 for figure in found):
        texts.append("default: ptxas left all of these as they are")
    return texts


def _suspicion(figure: Figure) -> str:
    if figure.name in ("fma_f32", "add_f32", "mul_f32"):
        return "the driver expands div, sqrt and the like into these, which count as one here"
    if figure.name.endswith("requests") and figure.level0 and figure.level0 > figure.simulator:
        return "the hardware also counts requests with every lane off"
    return "not explained; please report it"


def _occupancy(run: Run, level0: Readings, default: Readings, gpu: str) -> list[str]:
    """Return resident blocks of a multiprocessor: from ncu's register count, and by ncu."""
    try:
        chip = find_gpu(gpu)
    except UnknownGpu:
        return ["occupancy: not checked, this GPU is not in the table"]
    lines = []
    for label, readings in (("level 0", level0), ("default", default)):
        registers = readings.get("launch__registers_per_thread")
        if registers is None:
            return ["occupancy: not checked, ncu gave no register count"]
        split = readings.get("launch__shared_mem_config_size", 0) // 1024
        carveout = split if split in chip.architecture.carveouts else None
        ours = occupancy(chip, math.prod(run.block), registers, run.shared_bytes, carveout)
        parts, wrong = [], False
        for name, limit in ours.limits.items():
            metric = name.replace("shared memory", "shared_mem")
            theirs = readings.get(f"launch__occupancy_limit_{metric}")
            parts.append(f"{name} {limit}" + ("" if theirs == limit else f" (ncu: {theirs})"))
            wrong |= theirs is not None and theirs != limit
        verdict = "differs from ncu's" if wrong else "equal to ncu's"
        lines.append(
            wrapped(f"occupancy at {label}: {registers} registers, limits in blocks: "
                    f"{', '.join(parts)}; {verdict}")
        )  # fmt: skip
    return lines


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
