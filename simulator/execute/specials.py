"""Special registers (PTX ISA, "Special Registers")."""

import time

import numpy as np

from ..clusters import coordinates
from ..geometry import WARP, Geometry, Lanes
from ..isa.roles import OWN


class SpecialRegisters(dict[str, Lanes | np.generic]):
    """Values by name; unknown ones of the profiler kind read as zero, clocks as they run.

    Attributes:
        reads: How often a clock has been read.
    """

    reads = 0

    def __missing__(self, name: str) -> np.generic:
        now = time.perf_counter_ns()
        self.reads += "clock" in name or "timer" in name
        if name in ("%clock64", "%globaltimer"):
            return np.int64(now)
        if name == "%globaltimer_hi":
            return np.int32(now >> 32)
        if name in ("%clock", "%clock_hi", "%globaltimer_lo"):
            return np.int64(now).astype(np.int32)
        if name == "%gridid":
            return np.int64(0)
        return np.int32(0)


def special_registers(
    g: Geometry, shared: int, dynamic: int, clustered: bool = False
) -> SpecialRegisters:
    """The registers of a batch: scalars where all lanes agree, else broadcastable arrays.

    ``shared``, ``dynamic``: bytes of shared memory, in all and of the launch; ``clustered``:
    whether launch or kernel say a shape of clusters.
    """
    made = SpecialRegisters()
    one = np.int32(1)
    ranks = coordinates(g.clusters.rank, g.cluster)
    for axis, (name, extent, blocks) in enumerate(zip("xyz", g.block, g.grid, strict=True)):
        shape = [1, 1, 1, 1]
        shape[2 - axis] = extent
        ids = np.arange(extent, dtype=np.int32).reshape(shape)
        made[f"%tid.{name}"] = ids if extent > 1 else np.int32(0)
        made[f"%ntid.{name}"] = np.int32(extent)
        made[f"%nctaid.{name}"] = np.int32(blocks)
        before = int(np.prod(g.grid[:axis], dtype=np.int64))
        numbers = (g.blocks // before % blocks).astype(np.int32)
        same = bool((numbers == numbers[0]).all())
        made[f"%ctaid.{name}"] = numbers[0] if same else numbers.reshape(1, 1, 1, -1)
        of = g.cluster[axis]
        numbers = numbers // np.int32(of)
        same = bool((numbers == numbers[0]).all())
        made[f"%clusterid.{name}"] = numbers[0] if same else numbers.reshape(1, 1, 1, -1)
        made[f"%nclusterid.{name}"] = np.int32(blocks // of)
        made[f"%cluster_nctaid.{name}"] = np.int32(of)
        if of > 1:
            made[f"%cluster_ctaid.{name}"] = ranks[axis].astype(np.int32).reshape(1, 1, 1, -1)
    lane = g.lane_ids.astype(np.uint64)
    bit = np.uint64(1) << lane
    masks = {
        "eq": bit, "lt": bit - np.uint64(1), "le": (bit << np.uint64(1)) - np.uint64(1),
        "gt": ~((bit << np.uint64(1)) - np.uint64(1)), "ge": ~(bit - np.uint64(1)),
    }  # fmt: skip
    for name, mask in masks.items():
        made[f"%lanemask_{name}"] = mask.astype(np.uint32).view(np.int32)
    made["%laneid"] = g.lane_ids
    made["%warpid"] = g.warp_ids
    made["%nwarpid"] = np.int32(-(-g.threads // WARP))
    made["%nsmid"] = one
    made["%cluster_nctarank"] = np.int32(g.clusters.size)
    if g.clusters.size > 1:
        rank = g.clusters.rank.astype(np.int32).reshape(1, 1, 1, -1)
        made["%cluster_ctarank"], made[OWN] = rank, rank + one
    made["%is_explicit_cluster"] = np.bool_(clustered)
    made["%total_smem_size"] = np.int32(shared)
    made["%dynamic_smem_size"] = np.int32(dynamic)
    return made
