"""Branch history of each thread: directions taken at branches, and loop trip counts.

It is recorded per thread along its own path, so that it is the same under every schedule. Only
branches that control a barrier, and heads of loops that contain one, are recorded.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...compile.cfg.basic_blocks import EXIT, successors
from ...compile.cfg.cfg import loops_of, transitive_control_dependence
from ...compile.program import CompiledBlock
from ...core.geometry import Lanes, Mask, as_mask
from ...events import Branch
from ...memory.site import Site
from . import barrier_interleavings
from .convergence_regions import Convergence
from .independent_loops import own_loops
from .loop_waits import may_spin, may_wait


class ControlFlowMap:
    """Static control-flow facts about barriers and loops.

    Attributes:
        after: Successors of each block.
        convergence: Convergence points.
        pollers: Blocks that read what other threads may change.
        may_wait: Whether a loop may wait for other warps: fairness is for such programs alone.
        orders: Whether warps may reach barriers in orders of which some are wrong.
        branches: Blocks whose terminator decides whether a barrier is reached.
        heads: Heads of loops that contain barriers, each with the heads of inner loops.
        entries: For the first block of each called function, the heads in that function.
    """

    def __init__(self, blocks: Sequence[CompiledBlock], sites: Sequence[Site]) -> None:
        self.blocks, self.sites = blocks, sites
        self.convergence = Convergence(blocks, sites)
        shared = [site for site in sites if site.counted and site.space != "local"]
        self.pollers = {site.block for site in shared if site.access == "atomic" or site.strong}
        self.may_wait = bool(self.convergence.yields) or may_wait(blocks, sites)
        self.orders = barrier_interleavings.matter(blocks, sites)
        self._calls = [b.number for b in blocks if b.terminator_kind == "call"]
        barriers = [b.number for b in blocks if b.terminator_kind == "barrier"]
        self.after = self._ways()
        self._bit = {number: 1 << i for i, number in enumerate(barriers)}
        self._reach = self._reachable() if barriers else {}
        nearest = transitive_control_dependence([b.block for b in blocks])
        self._near = {number: nearest(number) for number in barriers}
        for number in barriers:  # a guard decides as well, and first
            if len(self.after[number]) > 1:
                self._near[number].insert(0, {number})
        self.branches: set[int] = set()
        for levels in self._near.values():
            self.branches.update(*levels)
        for number, ways in enumerate(self.after):
            if len({self._reach.get(to, 0) for to in ways}) > 1:
                self.branches.add(number)
        self.heads: dict[int, list[int]] = {}
        self.entries: dict[int, list[int]] = {}
        self._about: dict[int, list[int]] = {}
        self._find_loops(barriers)

    def _ways(self) -> list[list[int]]:
        """Return the successors of each block: of the taken branch first."""
        ways: list[list[int]] = []
        returns: dict[str, list[int]] = {}
        for number in self._calls:
            block = self.blocks[number]
            callee = self.blocks[block.call_entry].block.function.name
            returns.setdefault(callee, []).append(block.block.follow)
        for block in self.blocks:
            end = block.block.end
            if block.terminator_kind == "call":
                ways.append([block.call_entry])
            elif block.terminator_kind == "return":
                back = returns.get(block.block.function.name, [])
                ways.append([*back, *([block.block.follow] if end and end.guard else [])])
            elif block.terminator_kind in ("exit", "trap", "assert"):
                ways.append([EXIT, *([block.block.follow] if end and end.guard else [])])
            elif block.terminator_kind == "barrier" and end and end.guard:
                ways.append([block.block.follow, block.block.follow])
            else:
                ways.append(successors(block.block))
        return ways

    @functools.cached_property
    def may_spin(self) -> bool:
        """Whether a loop may repeat with equal registers until something else changes."""
        return may_spin(self.blocks, self.sites)

    @functools.cached_property
    def own_loops(self) -> dict[int, frozenset[int]]:
        """Loops whose lanes are independent of others and that contain no barrier."""
        others = {*self.heads, *self.branches, *self.pollers}
        lanes = self.convergence
        return own_loops(self.blocks, others | lanes.affected | lanes.saves.keys())

    def _reachable(self) -> dict[int, int]:
        """Return the barriers reachable from each block, itself included, as bits."""
        reach = {n: self._bit.get(n, 0) for n in range(len(self.blocks))} | {EXIT: 0}
        changed = True
        while changed:
            changed = False
            for number in reversed(range(len(self.after))):
                found = reach[number]
                for to in self.after[number]:
                    found |= reach[to]
                if found != reach[number]:
                    reach[number] = found
                    changed = True
        return reach

    def leads_on(self, number: int) -> bool:
        """Whether further barriers may follow the one at the end of a block."""
        return any(self._reach[to] for to in self.after[number])

    def _find_loops(self, barriers: list[int]) -> None:
        functions: dict[str, list[CompiledBlock]] = {}
        for block in self.blocks:
            functions.setdefault(block.block.function.name, []).append(block)
        # A call stands for the barriers of what it calls.
        holders = set(barriers)
        size = -1
        while size != len(holders):
            size = len(holders)
            names = {self.blocks[n].block.function.name for n in holders}
            holders |= {
                n
                for n in self._calls
                if self.blocks[self.blocks[n].call_entry].block.function.name in names
            }
        for blocks in functions.values():
            if not any(b.number in holders for b in blocks):
                continue
            loops = loops_of([b.block for b in blocks])
            relevant = {head: members for head, members in loops.items() if members & holders}
            for head, members in relevant.items():
                self.heads[head] = [h for h in relevant if h != head and h in members]
                for number in members & holders:
                    self._about.setdefault(number, []).append(head)
            self.entries[blocks[0].number] = list(relevant)

    def about(self, number: int) -> list[int]:
        """Return the heads of the loops around a barrier or call, within its function."""
        return self._about.get(number, [])

    def callers(self, number: int) -> list[CompiledBlock]:
        """Return the calls of a block's function."""
        name = self.blocks[number].block.function.name
        return [
            self.blocks[n]
            for n in self._calls
            if self.blocks[self.blocks[n].call_entry].block.function.name == name
        ]

    def losing(self, barrier: int) -> list[tuple[int, int]]:
        """Return branches and directions (as bits) from which a barrier is no longer reachable."""
        bit = self._bit[barrier]
        found = []
        for number, ways in enumerate(self.after):
            if len(ways) > 1 and self._reach[number] & bit:
                lost = sum(1 << i for i, to in enumerate(ways) if not self._reach[to] & bit)
                if number == barrier:  # its guard: those that come do not lose it
                    lost &= ~1
                if lost:
                    found.append((number, lost))
        return found

    def near(self, barrier: int) -> list[set[int]]:
        """Return the branches that control a barrier, nearest first."""
        return self._near[barrier]

    def leaves(self, number: int, way: int) -> bool:
        """Whether a direction of a branch leads straight out of the kernel (an early return)."""
        ways = self.after[number]
        at = ways[way]
        for _ in self.blocks:
            if at == EXIT:
                return True
            block = self.blocks[at]
            if block.block.body or len(self.after[at]) != 1:
                return False
            at = self.after[at][0]
        return False


class BranchHistory:
    """Paths of one batch's threads, as far as barriers need them."""

    def __init__(self, where: ControlFlowMap, shape: tuple[int, ...]) -> None:
        self.map, self.shape = where, shape
        self._ways: dict[int, Any] = {}
        self._last: dict[int, tuple[Mask | None, int]] = {}
        self._rounds: dict[int, Lanes | int] = dict.fromkeys(where.heads, 0)

    def went(self, number: int, way: int, lanes: Mask | None) -> None:
        """Record the direction that lanes (``None``: all) took at the end of a block."""
        last = self._last.get(number)
        if last is not None and last[1] == way and last[0] is lanes:
            return
        self._last[number] = lanes, way
        bits = np.uint8 if len(self.map.after[number]) <= 8 else np.uint64
        old = self._ways.get(number, bits(0))
        new = old | bits(1 << min(way, 63))
        self._ways[number] = new if lanes is None else np.where(lanes, new, old)

    def enter(self, number: int, lanes: Mask | None) -> None:
        """Record that lanes (``None``: all live ones) reach the head of a loop."""
        if lanes is None:
            self._rounds[number] = self._rounds[number] + 1
        else:
            self._rounds[number] = self._rounds[number] + lanes.astype(np.int32)
        self._again(self.map.heads[number], lanes)

    def call(self, entry: int, lanes: Mask | None) -> None:
        """Record that lanes (``None``: all live ones) call a function."""
        self._again(self.map.entries.get(entry, ()), lanes)

    def _again(self, heads: Sequence[int], lanes: Mask | None) -> None:
        for head in heads:
            old = self._rounds[head]
            if lanes is None or (isinstance(old, int) and not old):
                self._rounds[head] = 0
            else:
                self._rounds[head] = np.where(lanes, np.int32(0), old)

    def different_paths(
        self, barrier: CompiledBlock, lanes: Mask | None, registers: Sequence[Lanes]
    ) -> Mask | None:
        """Return the blocks whose threads reached a barrier in different iterations or calls.

        Returns:
            Boolean array ``(blocks,)``, or ``None`` if there are certainly none.
        """
        found: Mask | None = None
        todo: list[tuple[int, Mask | None]] = [(barrier.number, None)]
        while todo:
            number, via = todo.pop()
            values = [self._rounds[head] for head in self.map.about(number)]
            callers = self.map.callers(number)
            if callers:
                back = registers[callers[0].return_register]
                values.append(back)
                todo += [(c.number, back == c.block.follow) for c in callers]
            for value in values:
                if isinstance(value, int) or value.ndim == 0:
                    continue
                on = np.broadcast_to(as_mask(lanes), self.shape)
                on = on if via is None else on & via
                full = np.broadcast_to(value, self.shape)
                furthest = np.where(on, full, -1).max(axis=(0, 1, 2))
                least = np.where(on, full, np.iinfo(full.dtype).max).min(axis=(0, 1, 2))
                differ = (furthest != least) & on.any(axis=(0, 1, 2))
                if differ.any():
                    found = differ if found is None else found | differ
        return found

    def _took(self, number: int) -> Lanes:
        return np.broadcast_to(self._ways.get(number, np.uint8(0)), self.shape)

    def diverging_branches(
        self, barrier: CompiledBlock, missing: Mask, present: Mask
    ) -> list[Branch]:
        """Return the branches that keep lanes of a block away from a barrier at which others wait.

        Each thread bypasses a barrier for good at one branch. A thread that may still reach it
        differs from the waiting ones at the nearest branch with another direction.
        """
        found: list[Branch] = []
        unexplained = missing
        for number, lost in self.map.losing(barrier.number):
            took = self._took(number)
            lanes = unexplained & ((took & took.dtype.type(lost)) != 0)
            if lanes.any():
                way = (int(took[lanes][0]) & lost).bit_length() - 1
                leaves = self.map.leaves(number, way)
                found.append(Branch(self.map.blocks[number], lanes, leaves))
                unexplained = unexplained & ~lanes
        if unexplained.any():
            found += self.nearest_differences(barrier, unexplained, present)
        return found

    def nearest_differences(self, barrier: CompiledBlock, some: Mask, others: Mask) -> list[Branch]:
        """Return the nearest branches at which lanes of a block differ from others at a barrier."""
        for level in self.map.near(barrier.number):
            found = []
            for number in sorted(level):
                took = self._took(number)
                theirs = np.bitwise_or.reduce(np.where(others, took, 0), axis=(0, 1, 2))
                other = some & (took != 0) & (theirs != 0) & (took != theirs)
                if other.any():
                    found.append(Branch(self.map.blocks[number], other, False))
            if found:
                return found
        return []

    def between(self, barrier: CompiledBlock, lanes: Mask) -> list[Branch]:
        """Return the nearest branches at which lanes differ from the first lane of their block."""
        rows = lanes.reshape(-1, self.shape[3])
        first = np.arange(len(rows))[:, None] == rows.argmax(axis=0)
        return self.nearest_differences(barrier, lanes, lanes & first.reshape(self.shape))
