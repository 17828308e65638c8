"""Timed launches: FLOPs, rates, and the vendor's matrix product."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from device import Timing
from kernels.arguments.argument_copies import arrays_of, copies
from kernels.arguments.tensor_map import array_of

from ..check.outcome import simulate
from ..cli.errors import UserError
from ..cli.target import Target, settled
from .prediction_inputs import Forecast

_BUSY = 8192
"""Width of a product that keeps the GPU busy while Python queues launches of small ones."""


@dataclass(frozen=True)
class LaunchWork:
    """FLOPs of a launch with their origin, and array bytes, each once."""

    flops: int
    source: str
    array_bytes: int


@dataclass(frozen=True)
class Row:
    """Times of one kernel.

    Attributes:
        target: The target; for the vendor's product, the one that it is compared with.
        times_ms: Time of each launch, milliseconds.
        restored: Whether the arrays were restored before each launch.
        timing: The device's timing; ``None`` for the vendor's.
        label: Label of the vendor's product.
        error: Why it was not timed; else empty.
        forecast: The prediction; ``None`` for the vendor's.
    """

    target: Target
    times_ms: tuple[float, ...]
    restored: bool
    work: LaunchWork
    timing: Timing | None = None
    label: str = ""
    error: str = ""
    forecast: Forecast | None = None

    @property
    def name(self) -> str:
        """Name in reports."""
        return self.label or self.target.name

    @property
    def median_ms(self) -> float:
        """Median, milliseconds."""
        return float(np.median(self.times_ms)) if self.times_ms else math.nan

    @property
    def quartiles_ms(self) -> tuple[float, float]:
        """Lower and upper quartile, milliseconds."""
        low, high = np.percentile(self.times_ms, (25, 75)) if self.times_ms else (math.nan,) * 2
        return float(low), float(high)

    @property
    def gflops(self) -> float | None:
        """GFLOP/s at the median; ``None`` without FLOPs."""
        if not self.work.flops or not self.times_ms:
            return None
        return self.work.flops / self.median_ms / 1e6

    @property
    def gigabytes(self) -> float | None:
        """GB/s of the launch's arrays, each counted once."""
        if not self.work.array_bytes or not self.times_ms:
            return None
        return self.work.array_bytes / self.median_ms / 1e6

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        out = self.timing.output if self.timing else None
        return {
            "name": self.name,
            "size": settled(self.target),
            "launches": len(self.times_ms),
            "median_ms": self.median_ms if self.times_ms else None,
            "quartiles_ms": list(self.quartiles_ms) if self.times_ms else None,
            "fastest_ms": min(self.times_ms, default=None),
            "gflops": self.gflops,
            "gigabytes_per_second": self.gigabytes,
            "flops": self.work.flops,
            "flops_source": self.work.source,
            "restored": self.restored,
            "registers": out.registers if out else None,
            "sha256": out.sha256 if out else None,
            "error": self.error or None,
            "prediction": self.forecast.to_dict() if self.forecast else None,
        }


def work(target: Target, given: int | None = None) -> LaunchWork:
    """Return the FLOPs of a target's launch: given, by formula, or counted by the simulator."""
    arrays = {id(array): array.nbytes for array in arrays_of(target.args)}
    once = sum(arrays.values())
    if given is not None:
        return LaunchWork(given, "as given", once)
    if target.entry is not None and target.entry.axes == ("M", "N", "K"):
        return LaunchWork(2 * math.prod(target.size), "2 M N K", once)
    run = simulate(target, target.kernel, copies(target.args), checks="none")
    return LaunchWork(run.counters.flops, "counted by the simulator", once)


def vendor_row(target: Target, index: int, launches: int) -> Row:
    """Time the same product with cuBLAS: float32 without tensor cores, float16 with them.

    Raises:
        UserError: The target is not a matrix product.
    """
    done = work(target) if target.entry and target.entry.axes == ("M", "N", "K") else None
    if done is None:
        raise UserError(f"--vendor times a matrix product; {target.name} is none")
    a, b = map(array_of, target.args[:2])
    reasons = []
    for label, measure in (("cuBLAS (PyTorch)", _torch), ("cuBLAS (CuPy)", _cupy)):
        try:
            times = measure(a, b, index, launches)
        except ImportError as error:
            reasons.append(str(error))
            continue
        except Exception as error:  # a package for another CUDA release, say
            reasons.append(f"{label}: {str(error).splitlines()[0]}")
            continue
        return Row(target, tuple(times), False, done, label=label)
    return Row(target, (), False, done, label="cuBLAS", error="; ".join(reasons))


def _torch(a: Any, b: Any, index: int, launches: int) -> list[float]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.cuda.device(index):
        first, second = (torch.from_numpy(matrix).cuda() for matrix in (a, b))
        out = torch.empty((a.shape[0], b.shape[1]), dtype=first.dtype, device=first.device)
        events = [
            tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(launches)
        ]
        for _ in range(5):
            torch.matmul(first, second, out=out)
        busy = torch.zeros((_BUSY, _BUSY), device=first.device)
        torch.matmul(busy, busy)
        for before, after in events:
            before.record()
            torch.matmul(first, second, out=out)
            after.record()
        torch.cuda.synchronize()
        return [float(before.elapsed_time(after)) for before, after in events]


def _cupy(a: Any, b: Any, index: int, launches: int) -> list[float]:
    import cupy

    with cupy.cuda.Device(index):
        first, second = cupy.asarray(a), cupy.asarray(b)
        out = cupy.empty((a.shape[0], b.shape[1]), first.dtype)
        events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(launches)]
        for _ in range(5):
            cupy.matmul(first, second, out=out)
        busy = cupy.zeros((_BUSY, _BUSY), cupy.float32)
        cupy.matmul(busy, busy)
        for before, after in events:
            before.record()
            cupy.matmul(first, second, out=out)
            after.record()
        cupy.cuda.Device(index).synchronize()
        return [float(cupy.cuda.get_elapsed_time(before, after)) for before, after in events]
