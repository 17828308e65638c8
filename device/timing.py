"""Time many launches on the GPU, without copies in between."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel

from .driver import call
from .launch import Output, output
from .session import DeviceLaunch, Limits, check, context

LAUNCHES = 50
"""Timed launches, unless somebody wants more or fewer."""


@dataclass(frozen=True)
class Timing:
    """Times of many launches.

    Attributes:
        times_ms: Of each launch, between two events around it, milliseconds.
        restored: Whether the arrays had to be put back before each launch, because a second
            launch on the first one's results gave something else (the kernel accumulates).
        output: Of the launches, ``elapsed_ms`` being their median.
    """

    times_ms: tuple[float, ...]
    restored: bool
    output: Output

    @property
    def median_ms(self) -> float:
        """Median, milliseconds."""
        return float(np.median(self.times_ms))

    @property
    def quartiles_ms(self) -> tuple[float, float]:
        """A quarter of the launches took less than the first, a quarter more than the second."""
        low, high = np.percentile(self.times_ms, (25, 75))
        return float(low), float(high)


def time_launches(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    device: int = 0,
    jit_level: int | None = None,
    launches: int = LAUNCHES,
    warmup: int = 5,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    cluster: int | Sequence[int] | None = None,
    stack_bytes: int | None = None,
    heap_bytes: int | None = None,
) -> Timing:
    """Launch often, and take the time of each launch alone.

    Two launches come first, to find out whether the kernel accumulates into its arrays. If
    so the arrays are put back before each launch, by a copy within the GPU that is outside
    the time taken; otherwise nothing happens between launches. ``args`` stay as they are.

    ``launches`` are timed, and ``warmup`` made before those; all else is as ``device.launch`` takes
    it.

    Raises:
        DeviceError: There is no GPU, or a driver call failed.
        LaunchError, TypeError, ValueError: As ``simulator.launch``.
    """
    if launches < 1 or warmup < 0:
        raise ValueError(f"{launches} launches after {warmup} cannot be timed")
    limits = Limits(stack_bytes, heap_bytes)
    request = check(kernel, grid, block, args, shared_bytes, symbols, cooperative, cluster, limits)
    with context(device), contextlib.ExitStack() as stack:
        prepared = DeviceLaunch(stack, request, jit_level)
        first, last = prepared.event(), prepared.event()
        results = []
        prepared.upload()
        before = prepared.contents()
        for _ in range(2):
            prepared.start(first, last)
            prepared.wait()
            results.append(prepared.contents())
        changing = [
            place
            for place, (a, b) in enumerate(zip(*results, strict=True))
            if not np.array_equal(a, b)
        ]
        saved = _save(prepared, before, changing)
        events = [(prepared.event(), prepared.event()) for _ in range(launches)]
        for pair in [(first, last)] * warmup + events:
            for pointer, copy, nbytes in saved:
                call("cuMemcpyDtoDAsync", pointer, copy, nbytes, prepared.stream)
            if saved:
                prepared.pictures.fill()
            prepared.start(*pair)
        prepared.wait()
        times = [float(call("cuEventElapsedTime", *pair)) for pair in events]
        return Timing(tuple(times), bool(changing), output(prepared, times, device))


def _save(
    prepared: DeviceLaunch, before: list[Any], places: list[int]
) -> list[tuple[Any, Any, int]]:
    """Copies on the GPU of the arrays that a launch must find as they were."""
    saved = []
    for place in places:
        raw = before[place]
        copy = prepared.allocate(raw.nbytes, f"a copy of array {place}")
        call("cuMemcpyHtoD", copy, raw.ctypes.data, raw.nbytes)
        saved.append((prepared.pointers[place], copy, raw.nbytes))
    return saved
