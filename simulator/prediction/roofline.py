"""Roofline: the least time that each part of a GPU needs for what a launch does.

S. Williams, A. Waterman, D. Patterson: "Roofline: An Insightful Visual Performance Model for
Multicore Architectures", CACM 52(4), 2009. The simulator models no caches, so a kernel gets
two places under the slope of memory: every sector of every request from memory (no cache
ever helps), and each of the launch's arrays once (caches keep all). The truth is between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.arguments.tensor_map import array_of

from ..gpus.table import Gpu
from ..observe.counters.totals import Counters


@dataclass(frozen=True)
class RooflineBound:
    """Lower bound of the time by one part of the GPU.

    Attributes:
        name: ``arithmetic``, ``shared memory``, ``memory, arrays once`` or ``memory, no caches``.
        amount: Amount of work, in ``unit``.
        rate: Work per second.
    """

    name: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """The least time, were this part busy all along."""
        return self.amount / self.rate


@dataclass(frozen=True)
class Roofline:
    """A launch under the roofs of a GPU.

    Attributes:
        flops: Of the launch, an fma counted as two.
        sector_bytes: Of the sectors that its requests to global memory touch.
        array_bytes: Of its arrays, each once.
        sms: Multiprocessors that get a block.
        arithmetic: Time of its instructions: a lone addition or multiplication takes the
            place of an fma.
        shared: Time of its wavefronts; ``once`` and ``uncached``: of its bytes.
    """

    gpu: Gpu
    flops: int
    sector_bytes: int
    array_bytes: int
    sms: int
    arithmetic: RooflineBound
    shared: RooflineBound
    once: RooflineBound
    uncached: RooflineBound

    @property
    def bounds(self) -> tuple[RooflineBound, ...]:
        """All of them that have something to do."""
        found = (self.arithmetic, self.shared, self.once, self.uncached)
        return tuple(bound for bound in found if bound.amount)

    @property
    def best(self) -> RooflineBound | None:
        """Bound of the launch with perfect caches; ``None`` if it does nothing."""
        return _longest(self.arithmetic, self.shared, self.once)

    @property
    def worst(self) -> RooflineBound | None:
        """Bound of the launch without caches."""
        return _longest(self.arithmetic, self.shared, self.uncached)

    @property
    def intensities(self) -> tuple[float | None, float | None]:
        """FLOP per byte of memory: without caches, and with arrays moved once."""
        return (
            self.flops / self.sector_bytes if self.sector_bytes else None,
            self.flops / self.array_bytes if self.array_bytes else None,
        )

    def attainable(self, bound: RooflineBound | None) -> float | None:
        """FLOP/s of the launch, were it as fast as a bound lets it be."""
        if bound is None or not self.flops:
            return None
        return self.flops / bound.seconds

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; times in seconds, rates in FLOP/s."""
        return {
            "gpu": self.gpu.key,
            "peak_flops": self.gpu.fp32,
            "bandwidth": self.gpu.bandwidth,
            "source": self.gpu.source,
            "flops": self.flops,
            "sector_bytes": self.sector_bytes,
            "array_bytes": self.array_bytes,
            "multiprocessors": self.sms,
            "intensity_no_caches": self.intensities[0],
            "intensity_arrays_once": self.intensities[1],
            "bounds": [
                {
                    "name": bound.name,
                    "amount": bound.amount,
                    "unit": bound.unit,
                    "seconds": bound.seconds,
                    "flops": self.attainable(bound),
                }
                for bound in self.bounds
            ],
            "bound_by": self.best.name if self.best else None,
            "bound_by_no_caches": self.worst.name if self.worst else None,
        }


def roofline(
    gpu: Gpu, counters: Counters, args: Sequence[Any] = (), blocks: int | None = None
) -> Roofline:
    """Place a launch under a GPU's roofs.

    Args:
        gpu: Its peaks.
        counters: Of the launch, from the simulator.
        args: The launch's arguments: each array counts with all its bytes, once.
        blocks: Of the grid: where they are fewer than the GPU's multiprocessors, only so many
            compute. All of them do if left out.
    """
    sms = gpu.sms if blocks is None else min(gpu.sms, blocks)
    part = sms / gpu.sms
    given = map(array_of, args)
    arrays = {id(arg): arg.nbytes for arg in given if isinstance(arg, np.ndarray)}
    once = sum(arrays.values())
    single = counters.fma_f32 + counters.add_f32 + counters.mul_f32
    double = counters.fma_f64 + counters.add_f64 + counters.mul_f64
    # FP32 and FP64 have lanes of their own: the busier of the two takes the time.
    if double / gpu.fp64 > single / gpu.fp32:
        arithmetic = RooflineBound("arithmetic", double, "FP64 instructions", gpu.fp64 / 2 * part)
    else:
        arithmetic = RooflineBound("arithmetic", single, "FP32 instructions", gpu.fp32 / 2 * part)
    waves = (
        counters.shared_load.wavefronts
        + counters.shared_store.wavefronts
        + counters.shared_atomic.wavefronts
    )
    sectors = counters.global_sector_bytes
    return Roofline(
        gpu, counters.flops, sectors, once, sms, arithmetic,
        RooflineBound("shared memory", waves, "wavefronts", sms * gpu.clock),
        RooflineBound("memory, arrays once", once, "bytes", gpu.bandwidth),
        RooflineBound("memory, no caches", sectors, "bytes", gpu.bandwidth),
    )  # fmt: skip


def _longest(*bounds: RooflineBound) -> RooflineBound | None:
    longest = max(bounds, key=lambda bound: bound.seconds)
    return longest if longest.amount else None
