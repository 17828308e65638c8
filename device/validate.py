"""One launch three times: NumPy reference, simulator, GPU - from copies of the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel

from .launch import Output, launch

Reference = Callable[..., Any]
"""Takes the launch's arguments (copies), and changes its output arrays as the kernel should."""


@dataclass(frozen=True)
class Comparison:
    """One array after the launch, on the three paths.

    Attributes:
        name: Its parameter's position among the arguments.
        elements: How many it has.
        equal: How many have the same bits on simulator and device.
        max_ulp: The largest distance in units in the last place (floats; NaN beside a
            number counts as the largest there is).
        where: Index of the element that differs most, if one does.
        simulator_error: Largest absolute difference from the reference; ``None``: not checked.
        device_error: The same of the device.
    """

    name: str
    elements: int
    equal: int
    max_ulp: int
    where: tuple[int, ...] | None
    simulator_error: float | None
    device_error: float | None


@dataclass(frozen=True)
class Validation:
    """What ``validate`` found.

    Attributes:
        validated: No error hazard, and every array bit for bit equal (or, where the kernel
            has instructions whose bits PTX does not promise, compared and told).
        reason: Why not, in a sentence; empty if validated.
        bits_promised: Whether PTX promises the bits of all instructions that are there.
        comparisons: One for each writeable array.
        run: The simulator's result; ``output`` the device's.
    """

    validated: bool
    reason: str
    bits_promised: bool
    comparisons: tuple[Comparison, ...]
    run: simulator.Run
    output: Output | None


def validate(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    reference: Reference | None = None,
    shared_bytes: int = 0,
    device: int = 0,
    jit_level: int | None = None,
) -> Validation:
    """Hold simulator, device and (if given) a NumPy reference against each other.

    The simulator's hazard checks run first; a kernel with an error is not launched on the
    GPU and never called validated. ``args`` stay as they are.

    Args:
        kernel: The identical PTX runs on both machines.
        grid: Blocks, one to three numbers, x first.
        block: Threads of a block, likewise.
        args: As ``simulator.launch`` takes them.
        reference: Called with copies of ``args``; changes its arrays as the kernel should.
        shared_bytes: Dynamic shared memory of a block.
        device: Which GPU.
        jit_level: The driver compiler's optimisation level; its own default if ``None``.

    Raises:
        DeviceError: There is no GPU, or it failed.
        SimulatorError, TypeError, ValueError: As ``simulator.launch``.
    """
    simulated, launched, expected = (_copies(args) for _ in range(3))
    run = simulator.launch(kernel, grid, block, simulated, shared_bytes)
    errors = [h for h in run.hazards if h.severity == "error"]
    if errors:
        reason = f"not launched: {errors[0].message} ({len(errors)} errors)"
        return Validation(False, reason, not run.approximate, (), run, None)
    output = launch(kernel, grid, block, launched, shared_bytes, device, jit_level)
    if reference is not None:
        reference(*expected)
    comparisons = tuple(
        _compare(f"argument {i}", simulated[i], launched[i], expected[i] if reference else None)
        for i, arg in enumerate(args)
        if isinstance(arg, np.ndarray) and arg.flags.writeable
    )
    different = [c for c in comparisons if c.equal != c.elements]
    reason = ""
    if different and run.approximate:
        reason = "the kernel has instructions whose bits PTX does not promise (.approx)"
    elif different:
        worst = different[0]
        reason = f"{worst.elements - worst.equal:,} elements of {worst.name} differ"
    return Validation(not different, reason, not run.approximate, comparisons, run, output)


def _copies(args: Sequence[Any]) -> list[Any]:
    """Copies of the arrays; one array given twice stays one."""
    made: dict[int, Any] = {}
    for arg in args:
        if isinstance(arg, np.ndarray) and id(arg) not in made:
            made[id(arg)] = arg.copy()
            made[id(arg)].flags.writeable = arg.flags.writeable
    return [made.get(id(arg), arg) for arg in args]


def _compare(name: str, ours: Any, theirs: Any, expected: Any | None) -> Comparison:
    word = np.dtype(f"V{ours.dtype.itemsize}")
    same = np.ascontiguousarray(ours).reshape(-1).view(word) == np.ascontiguousarray(
        theirs
    ).reshape(-1).view(word)
    where: tuple[int, ...] | None = None
    distance = 0
    if not same.all():
        worst = int(np.argmin(same))
        if ours.dtype.kind == "f":
            ulps = ulp_distance(ours.reshape(-1), theirs.reshape(-1))
            worst, distance = int(np.argmax(ulps)), int(ulps.max())
        where = tuple(int(i) for i in np.unravel_index(worst, ours.shape))
    return Comparison(
        name, ours.size, int(np.count_nonzero(same)), distance, where,
        _error(ours, expected), _error(theirs, expected),
    )  # fmt: skip


def ulp_distance(a: Any, b: Any) -> Any:
    """Representable numbers between two float arrays, uint64; 2**63 for NaN beside a number."""
    bits = a.dtype.itemsize * 8

    def line(x: Any) -> Any:
        whole = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(np.int64)
        return np.where(whole < 0, -(2 ** (bits - 1)) - whole, whole)

    first, second = line(a), line(b)
    distance = np.abs(first.astype(np.float64) - second.astype(np.float64))
    far, farthest = np.uint64(2**62), np.uint64(2**63)
    exact = np.where(distance < 2**52, np.abs(first - second).astype(np.uint64), far)
    odd = np.isnan(a) != np.isnan(b)
    both = np.isnan(a) & np.isnan(b)
    return np.where(odd, farthest, np.where(both, np.uint64(0), exact))


def _error(found: Any, expected: Any | None) -> float | None:
    if expected is None or found.dtype.kind not in "iuf":
        return None
    with np.errstate(all="ignore"):
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    difference = difference[np.isfinite(difference)]
    return float(difference.max(initial=0.0))
