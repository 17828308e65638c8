"""Clusters: blocks that run together, their barrier, and addresses in each other's shared memory.

From its bit ``RANK`` on, an address in shared memory has one more than the rank of the block whose
it is, or zero: then it is the thread's own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernels.ptx.module import Instruction
from tests.oracles.interpreter.memory import RANK, SHARED
from tests.oracles.interpreter.values import mask

if TYPE_CHECKING:
    from tests.oracles.interpreter.decode import Code, Step
    from tests.oracles.interpreter.machine import Block, Frame, Thread


class Cluster:
    """The blocks of one cluster, by rank; without clusters, a block by itself."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.threads = [thread for block in blocks for thread in block.threads]
        self.came = [0] * len(self.threads)
        for rank, block in enumerate(blocks):
            block.cluster, block.rank = self, rank

    def run(self, order: random.Random | None, steps: int) -> None:
        """Run all threads to their end, which may take so many steps a block.

        Raises:
            Deadlock: Some wait for ever.
        """
        from tests.oracles.interpreter.barriers import Deadlock

        left = steps * len(self.blocks)
        while True:
            ready = [t for t in self.threads if not t.done and t.wait is None]
            if order:
                order.shuffle(ready)
            for thread in ready:
                left = thread.go(left)
            if all(t.done for t in self.threads):
                return
            moved = [block.warps() or block.barriers.release() for block in self.blocks]
            moved.append(self.release())
            if not any(moved) and all(t.done or t.wait for t in self.threads):
                raise Deadlock(f"block {self.blocks[0].ctaid}: threads wait for ever")

    def release(self) -> bool:
        """Let threads go that wait for as many arrivals of all others as they have made."""
        fewest = min(n for n, t in zip(self.came, self.threads, strict=True) if not t.done)
        moved = False
        for n, t in zip(self.came, self.threads, strict=True):
            if t.wait and t.wait.ins.has("cluster") and n <= fewest:
                t.wait, moved = None, True
        return moved


def barrier(ins: Instruction) -> Step:
    """``barrier.cluster``."""
    from tests.oracles.interpreter.machine import Wait

    def arrive(t: Thread, f: Frame) -> None:
        first = t.block.cluster.threads[0]
        t.block.cluster.came[t.block.rank * len(first.block.threads) + t.linear] += 1

    return arrive if ins.has("arrive") else lambda t, f: Wait(ins, (), None)


def mapped(code: Code, ins: Instruction) -> Step:
    """``mapa`` and ``getctarank``."""
    kind, start = ins.types[-1], 0 if ins.has("shared::cluster") else SHARED
    source = code.read(ins.operands[1], kind)
    if ins.opcode == "getctarank":
        put = code.write(ins.operands[0], "u32")

        def rank_of(t: Thread, f: Frame) -> None:
            whose = source(t, f) - start >> RANK
            put(t, f, whose - 1 if whose else t.block.rank)

        return rank_of
    rank, put = code.read(ins.operands[2], "u32"), code.write(ins.operands[0], kind)
    inside = mask(RANK)
    return lambda t, f: put(
        t, f, start + (source(t, f) - start & inside) + (rank(t, f) + 1 << RANK)
    )


def place(t: Thread, name: str, axis: int) -> int:
    """A special register of clusters; these lie side by side along x."""
    block, size = t.block, len(t.block.cluster.blocks)
    along = {
        "%cluster_ctaid": block.rank, "%cluster_nctaid": size, "%clusterid": block.ctaid[0] // size,
        "%nclusterid": block.launch.grid[0] // size,
    }  # fmt: skip
    if axis == 0:
        return along[name]
    plain = {"%clusterid": block.ctaid, "%nclusterid": block.launch.grid}
    return plain[name][axis] if name in plain else int(name == "%cluster_nctaid")


SPECIAL: dict[str, Any] = {
    "%cluster_ctarank": lambda t: t.block.rank,
    "%cluster_nctarank": lambda t: len(t.block.cluster.blocks),
    "%is_explicit_cluster": lambda t: int(t.block.launch.entry.explicit_cluster),
}
