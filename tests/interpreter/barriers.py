"""The barriers of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import decode

if TYPE_CHECKING:
    from .machine import Block, Thread


class Deadlock(Exception):
    """Threads wait for what never comes, or come to a barrier where a GPU stops."""


class Barriers:
    """Who is on the way through each of a block's barriers."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.phases: dict[int, tuple[tuple[int, str], list[int]]] = {}

    def waiting(self) -> dict[int, list[Thread]]:
        """The threads at each barrier of the block."""
        found: dict[int, list[Thread]] = {}
        for t in self.block.threads:
            if t.wait and not decode.of_warp(t.wait.ins):
                found.setdefault(t.wait.values[0], []).append(t)
        return found

    def arrive(self, thread: Thread, number: int, count: int) -> None:
        """A thread arrives at a barrier, and does not wait; its warps' numbers are kept."""
        way, warps = self.phases.setdefault(number, ((count, ""), []))
        ways = {t.wait.way for t in self.waiting().get(number, []) if t.wait}
        if {way, (count, "")} | ways != {way}:
            raise Deadlock(f"barrier {number} in several ways")
        warps.append(thread.warp)
        if len(warps) >= count:
            del self.phases[number]

    def release(self) -> bool:
        """Let threads go whose barrier is complete."""
        moved = False
        living = sum(not t.done for t in self.block.threads)
        for number, group in self.waiting().items():
            way, warps = self.phases.get(number, (None, []))
            ways = {t.wait.way for t in group if t.wait} | ({way} if way else set())
            if len(ways) != 1:
                raise Deadlock(f"barrier {number} in several ways")
            ((count, _),) = ways
            left = (count or living) - len(warps)
            if len(group) < left:
                continue
            self.phases.pop(number, None)
            group = sorted(group, key=lambda t: t.warp not in warps)[:left]
            votes = [t.wait.values[2] for t in group if t.wait]
            for t in group:
                assert t.wait is not None
                if t.wait.finish:
                    t.wait.finish(t.stack[-1], votes)
                t.wait = None
            moved = True
        return moved
