"""Timing of many launches on the GPU, without copies in between."""

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
        times_ms: Time of each launch between two events, milliseconds.
        restored: Whether the arrays were restored before each launch, because a second launch on
            the first one's results gave other results (the kernel accumulates).
        output: Output of the launches; ``elapsed_ms`` is their median.
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
        """Lower and upper quartile, milliseconds."""
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
    """Time many launches of a kernel separately.

    Two launches come first, to detect whether the kernel accumulates into its arrays. If so, the
    arrays are restored before each launch by a copy on the GPU that is not timed. Otherwise nothing
    happens between launches. ``args`` are not modified.

    ``launches``: number of timed launches. ``warmup``: launches before these. Other arguments are
    those of ``device.launch``.

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
    """Copy, on the GPU, the arrays that every launch must find unchanged."""
    saved = []
    for place in places:
        raw = before[place]
        copy = prepared.allocate(raw.nbytes, f"a copy of array {place}")
        call("cuMemcpyHtoD", copy, raw.ctypes.data, raw.nbytes)
        saved.append((prepared.pointers[place], copy, raw.nbytes))
    return saved
