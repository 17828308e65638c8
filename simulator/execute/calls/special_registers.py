"""Special registers (PTX ISA, "Special Registers")."""

import time
from collections.abc import Callable

import numpy as np

from ...core.clusters import coordinates
from ...core.geometry import WARP, Flat, Geometry, Lanes
from ...isa.decoded import OWN
from ...memory.storage.layout import RESERVED

_UNIT = 128
"""Bytes in which shared memory is handed out (these four as an H200 has them)."""


class SpecialRegisters(dict[str, Lanes | np.generic]):
    """Values by name; profiler registers read as zero, clocks advance.

    A value is a scalar if all lanes of a batch share it, else a broadcastable array. It is computed
    at the first read.

    Attributes:
        reads: Number of clock reads.
        stopped: Time at which clocks are stopped.
    """

    reads = 0
    stopped: int | None = None
    _ahead = 0
    geometry: Geometry

    def start(self, g: Geometry, shared: int, dynamic: int, clustered: bool = False) -> None:
        """Begin a batch.

        ``shared``, ``dynamic``: bytes of shared memory, in total and dynamic. ``clustered``:
        whether launch or kernel specify clusters.
        """
        self.clear()
        self.geometry = g
        self["%total_smem_size"] = np.int32(-(-shared // _UNIT) * _UNIT)
        self["%aggr_smem_size"] = np.int32(shared + RESERVED)
        self["%dynamic_smem_size"] = np.int32(dynamic)
        self["%is_explicit_cluster"] = np.bool_(clustered)

    def stop(self, later: int = 0) -> None:
        """Stop clocks, now or so many ticks later."""
        self._ahead += later
        if self.stopped is None or later:
            self.stopped = time.perf_counter_ns() + self._ahead

    def __missing__(self, name: str) -> Lanes | np.generic:
        word, _, axis = name.partition(".")
        if axis and word in _BY_AXIS:
            value = self[name] = _BY_AXIS[word](self.geometry, "xyz".index(axis))
            return value
        if word in _WHOLE:
            value = self[name] = _WHOLE[word](self.geometry)
            return value
        now = time.perf_counter_ns() + self._ahead if self.stopped is None else self.stopped
        self.reads += "clock" in name or "timer" in name
        if name in ("%clock64", "%globaltimer"):
            return np.int64(now)
        if name == "%globaltimer_hi":
            return np.int32(now >> 32)
        if name in ("%clock", "%clock_hi", "%globaltimer_lo"):
            return np.int64(now).astype(np.int32)
        if name in _RESERVED:
            return _RESERVED[name]
        if name == "%gridid":
            return np.int64(0)
        return np.int32(0)


def _tid(g: Geometry, axis: int) -> Lanes | np.generic:
    shape = [1, 1, 1, 1]
    shape[2 - axis] = g.block[axis]
    ids = np.arange(g.block[axis], dtype=np.int32).reshape(shape)
    return ids if ids.size > 1 else np.int32(0)


def _by_block(numbers: Flat) -> Lanes | np.generic:
    """Broadcast one value for each block."""
    numbers = numbers.astype(np.int32)
    same = bool((numbers == numbers[0]).all())
    return numbers[0] if same else numbers.reshape(1, 1, 1, -1)


def _ctaid(g: Geometry, axis: int) -> Flat:
    numbers: Flat = coordinates(g.blocks, g.grid)[axis]
    return numbers


def _rank_along(g: Geometry, axis: int) -> Lanes | np.generic:
    if g.cluster[axis] == 1:
        return np.int32(0)
    ranks: Flat = coordinates(g.clusters.rank, g.cluster)[axis]
    return ranks.astype(np.int32).reshape(1, 1, 1, -1)


def _rank(g: Geometry, first: int = 0) -> Lanes | np.generic:
    """Return each block's rank in its cluster, relative to ``first``."""
    if g.clusters.size == 1:
        return np.int32(0)
    return (g.clusters.rank + first).astype(np.int32).reshape(1, 1, 1, -1)


def _below(g: Geometry) -> Lanes:
    """Return the bits of the lanes below each lane, uint64."""
    below: Lanes = (np.uint64(1) << g.lane_ids.astype(np.uint64)) - np.uint64(1)
    return below


def _word(mask: Lanes) -> Lanes:
    return mask.astype(np.uint32).view(np.int32)


_RESERVED = {
    "%reserved_smem_offset_end": np.int32(288), "%reserved_smem_offset_cap": np.int32(RESERVED),
}  # fmt: skip
"""Where the system's part of shared memory ends; it begins at 0, and so do its parts."""
_BY_AXIS: dict[str, Callable[[Geometry, int], Lanes | np.generic]] = {
    "%tid": _tid,
    "%ntid": lambda g, axis: np.int32(g.block[axis]),
    "%ctaid": lambda g, axis: _by_block(_ctaid(g, axis)),
    "%nctaid": lambda g, axis: np.int32(g.grid[axis]),
    "%clusterid": lambda g, axis: _by_block(_ctaid(g, axis) // np.int32(g.cluster[axis])),
    "%nclusterid": lambda g, axis: np.int32(g.grid[axis] // g.cluster[axis]),
    "%cluster_ctaid": _rank_along,
    "%cluster_nctaid": lambda g, axis: np.int32(g.cluster[axis]),
}
_ONE = np.uint64(1)
_WHOLE: dict[str, Callable[[Geometry], Lanes | np.generic]] = {
    "%lanemask_eq": lambda g: _word(_below(g) + _ONE),
    "%lanemask_lt": lambda g: _word(_below(g)),
    "%lanemask_le": lambda g: _word((_below(g) << _ONE) + _ONE),
    "%lanemask_gt": lambda g: _word(~((_below(g) << _ONE) + _ONE)),
    "%lanemask_ge": lambda g: _word(~_below(g)),
    "%laneid": lambda g: g.lane_ids,
    "%warpid": lambda g: g.warp_ids,
    "%nwarpid": lambda g: np.int32(-(-g.threads // WARP)),
    "%nsmid": lambda g: np.int32(1),
    "%cluster_nctarank": lambda g: np.int32(g.clusters.size),
    "%cluster_ctarank": _rank,
    OWN: lambda g: _rank(g, 1),
}
