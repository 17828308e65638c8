"""Counters: which instructions ran, and how many threads and warps executed them."""

from __future__ import annotations

from ..events import Observer
from ..geometry import Geometry, Mask


class InstructionCounter(Observer):
    """Counts what runs.

    Args:
        blocks: How many basic blocks there are; ``arithmetic``: floating-point instructions.

    Attributes:
        threads, warps: That executed each basic block, by its number.
        guarded: Threads that executed each guarded floating-point instruction, by its tally.
        divergent_branches: Warps that a branch sent both ways; ``barriers``: that barriers let go.
    """

    def __init__(self, blocks: int, arithmetic: int) -> None:
        self.threads, self.warps = [0] * blocks, [0] * blocks
        self.guarded = [0] * arithmetic
        self.divergent_branches = self.barriers = 0
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def ran(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.threads[block] += threads
        self.warps[block] += warps

    def arithmetic(self, number: int, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self.guarded[number] += self.geometry.active(lanes)[0]

    def diverged(self, warps: int) -> None:
        """See ``Observer``."""
        self.divergent_branches += warps

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self.barriers += warps

    def merge(self, other: InstructionCounter) -> None:
        """See ``Observer``."""
        for mine, theirs in (
            (self.threads, other.threads), (self.warps, other.warps), (self.guarded, other.guarded),
        ):  # fmt: skip
            mine[:] = [a + b for a, b in zip(mine, theirs, strict=True)]
        self.divergent_branches += other.divergent_branches
        self.barriers += other.barriers
