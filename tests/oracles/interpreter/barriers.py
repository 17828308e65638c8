"""The barriers of a block."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.oracles.interpreter import decode

if TYPE_CHECKING:
    from tests.oracles.interpreter.machine import Block, Thread


class Deadlock(Exception):
    """Threads wait for what never comes, or come to a barrier where a GPU stops."""


class Barriers:
    """Who is on the way through each of a block's barriers.

    Attributes:
        phases: By number: the way in which threads come, and the warps that have arrived.
        arriving: How often each thread has arrived, by its number, and by -1 less its number each
            warp, which arrives with the last of its lanes.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.phases: dict[int, tuple[tuple[int, str], list[int]]] = {}
        self.arriving: Counter[tuple[int, int, int]] = Counter()

    def waiting(self) -> dict[int, list[Thread]]:
        """The threads at each barrier of the block."""
        found: dict[int, list[Thread]] = {}
        for t in self.block.threads:
            if t.wait and not decode.of_warp(t.wait.ins) and not t.wait.ins.has("cluster"):
                found.setdefault(t.wait.values[0], []).append(t)
        return found

    def living(self, warp: int) -> list[Thread]:
        """The threads of a warp that have not ended."""
        return [t for t in self.block.threads if t.warp == warp and not t.done]

    def arrive(self, thread: Thread, number: int, count: int) -> None:
        """A thread arrives at a barrier, and does not wait; its warp does with its last lane."""
        self.arriving[thread.linear, number, count] += 1
        mine = (self.arriving[t.linear, number, count] for t in self.living(thread.warp))
        key = -1 - thread.warp, number, count
        if min(mine) == self.arriving[key]:
            return
        self.arriving[key] += 1
        way, warps = self.phases.setdefault(number, ((count, ""), []))
        others = (t for t in self.waiting().get(number, []) if t.warp != thread.warp)
        if {way, (count, ""), *(t.wait.way for t in others if t.wait)} != {way}:
            raise Deadlock(f"barrier {number} in several ways")
        warps.append(thread.warp)
        if len(warps) * 32 >= count:
            del self.phases[number]

    def release(self) -> bool:
        """Let threads go whose barrier is complete."""
        moved = False
        everybody = sum(not t.done for t in self.block.threads)
        for number, group in self.waiting().items():
            way, warps = self.phases.get(number, (None, []))
            ways = {t.wait.way for t in group if t.wait} | ({way} if way else set())
            if len(ways) != 1:
                raise Deadlock(f"barrier {number} in several ways")
            ((count, _),) = ways
            if count:
                here = [w for w in sorted({t.warp for t in group})
                        if all(t in group for t in self.living(w))]  # fmt: skip
                here.sort(key=lambda warp: warp not in warps)
                here = here[: -(-count // 32) - len(warps)]
                group = [t for t in group if t.warp in here]
                full = (len(here) + len(warps)) * 32 >= count
            else:
                full = len(group) == everybody
            if not full:
                continue
            self.phases.pop(number, None)
            votes = [t.wait.values[2] for t in group if t.wait]
            for t in group:
                assert t.wait is not None
                if t.wait.finish:
                    t.wait.finish(t.stack[-1], votes)
                t.wait = None
            moved = True
        return moved
