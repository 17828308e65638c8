"""Barrier divergence: threads of a block that do not reach a barrier together."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import NO_LANE, Mask, Rows, as_mask, blocks_of
from ...events import BarrierDivergence, Dispatcher
from ...isa.decoded import roles
from ..lane_state import LaneState
from .barrier_interleavings import BarrierInterleavings
from .blocked_lanes import BlockedLanes, Key
from .branch_history import BranchHistory


class Divergence:
    """Check of barriers when they release lanes: did the threads belong together?

    If threads of a block met from different places or loop iterations, the block is marked: its
    threads stay one barrier out of step, and later divergence follows from the first. For such a
    block only the same meeting is reported again, so that all of its threads are named.
    """

    def __init__(
        self,
        state: LaneState,
        dispatcher: Dispatcher,
        paths: BranchHistory,
        orders: BarrierInterleavings,
    ) -> None:
        self.state, self.dispatcher, self.paths, self.orders = state, dispatcher, paths, orders
        self._gone: dict[int, Mask] = {}
        self._reported: dict[int, Mask | None] = {}
        self._astray: Mask = NO_LANE
        self._met: dict[tuple[int, int], Mask] = {}
        self._turned: dict[object, Mask] = {}

    def notify(self, divergence: BarrierDivergence) -> None:
        """Report threads of a block that do not reach a barrier together."""
        for callback in self.dispatcher.barrier_divergence:
            callback(divergence)

    def look_at(self, waits: list[BlockedLanes]) -> None:
        """Check the lanes that a barrier of whole blocks releases."""
        state = self.state
        g, paths = state.geometry, self.paths
        places: dict[int, BlockedLanes] = {}
        for wait in waits:  # those that came to one place at several times
            known = places.setdefault(wait.block.number, wait)
            if known is not wait:
                places[wait.block.number] = dataclasses.replace(
                    wait, mask=as_mask(known.mask) | as_mask(wait.mask)
                )
        waits = [places[number] for number in sorted(places)]
        for wait in waits:
            differ = paths.different_paths(wait.block, wait.mask, state.registers)
            if differ is None:
                continue
            again = self._turned.get(line := _line(wait.block), NO_LANE)
            differ = differ & (again | ~self._astray)
            here = np.broadcast_to(as_mask(wait.mask), g.shape) & differ
            if here.any():
                branches = paths.between(wait.block, here)
                self.notify(BarrierDivergence("rounds", wait.block, here, branches=branches))
                self._turned[line] = again | differ
        for turned in self._turned.values():
            self._astray = self._astray | turned
        alive = state.alive
        for wait in waits:
            if alive is None:
                break
            if self._reported.get(wait.block.number) is not alive:
                self._look_for_gone(wait, alive)
            if wait.mask is alive:  # as they will be next time
                self._reported[wait.block.number] = alive
        if len(waits) > 1:
            self._compare_places(waits)

    def _look_for_gone(self, wait: BlockedLanes, alive: Mask) -> None:
        """Report threads of a block that have exited without reaching its barrier."""
        state = self.state
        here = np.broadcast_to(as_mask(wait.mask), state.geometry.shape)
        gone = blocks_of(here) & ~alive & ~self._astray
        before = self._gone.get(wait.block.number, NO_LANE)
        new = gone & ~before
        if new.any():
            self._gone[wait.block.number] = gone | before
            here = here & blocks_of(new)
            branches = self.paths.diverging_branches(wait.block, new, here)
            self.notify(BarrierDivergence("gone", wait.block, here, new, branches=branches))

    def _compare_places(self, waits: list[BlockedLanes]) -> None:
        """Report threads of one block that reach its barrier at several places of the code.

        CUDA C++ forbids this for ``__syncthreads()`` (barrier 0). A PTX barrier has no place, but
        the lanes of a warp have to reach it together.
        """
        g = self.state.geometry
        reported: Mask = NO_LANE
        for i, wait in enumerate(waits):
            for first in waits[:i]:
                here, there = as_mask(first.mask), as_mask(wait.mask)
                met = self._met.get(pair := (first.block.number, wait.block.number), NO_LANE)
                line = _line(first.block)
                if line == _line(wait.block):
                    met = met | self._turned.get(line, NO_LANE)
                both = blocks_of(here) & blocks_of(there) & ~reported & (met | ~self._astray)
                if not both.any():
                    continue
                reported = reported | both
                here, there = here & both, there & both
                warps = g.any_of_warp(here) & g.any_of_warp(there)
                divided = bool(warps.any()) and (is_aligned(first.block) or is_aligned(wait.block))
                named = bool((first.number != 0).any())
                if named and not divided:
                    continue
                how = "warp" if named else "places"
                if not named and line == _line(wait.block) and (line or not divided):
                    how = "rounds"  # copies of one place, or PTX that is not from C++
                branches = self.paths.nearest_differences(first.block, there, here)
                self.notify(
                    BarrierDivergence(
                        how, first.block, here, there, [(wait.block, there)], branches
                    )
                )
                if how != "warp" and not self._in_step(*pair):
                    self._met[pair] = met | both
                    if how == "rounds":
                        self._turned[line] = self._turned.get(line, NO_LANE) | both
        for met in self._met.values():
            self._astray = self._astray | met

    def _in_step(self, first: int, second: int) -> bool:
        """Whether two barriers are the two sides of one branch: each thread reaches one of them."""
        one, two = (self.paths.map.near(number)[:1] for number in (first, second))
        return bool(one and two and one[0] & two[0])

    def differ(self, number: int, members: list[tuple[Key, BlockedLanes, Mask]]) -> bool:
        """Report threads that reach a barrier with different operands, where a GPU stops."""
        g = self.state.geometry
        blocks = {key: np.zeros(g.columns, bool) for key, *_ in members}
        for key, _, here in members:
            blocks[key] |= blocks_of(here)
        wrong = np.sum(list(blocks.values()), axis=0) > 1
        if not wrong.any():
            return False
        wrong &= ~self.orders.look_at(wrong)
        if not wrong.any():
            return True
        there = [(wait.block, here) for _, wait, lanes in members if (here := lanes & wrong).any()]
        (first, lanes), *elsewhere = sorted(there, key=lambda pair: pair[0].number)
        self.notify(BarrierDivergence("ways", first, lanes, None, elsewhere, value=number))
        self.orders.reported |= wrong
        self.state.stop(np.broadcast_to(wrong, g.shape))
        return True

    def check_warps(self, members: list[tuple[BlockedLanes, Mask]], go: Mask) -> None:
        """Report lanes of a warp that do not reach an aligned barrier together."""
        g = self.state.geometry
        absent = np.broadcast_to(as_mask(self.state.alive), g.shape) & ~go
        before: Rows = NO_LANE
        places: dict[int, tuple[BlockedLanes, Mask]] = {}
        for wait, lanes in members:  # a schedule may have brought them to one place in turns
            known = places.get(wait.block.number)
            places[wait.block.number] = (wait, lanes if known is None else known[1] | lanes)
        for wait, lanes in (places[number] for number in sorted(places)):
            warps = g.any_of_warp(lanes & go)
            if is_aligned(wait.block):
                split_warps = warps & (g.any_of_warp(absent) | before)
                if split_warps.any():
                    here = lanes & go & g.spread(split_warps)
                    others = ~here & g.spread(split_warps)
                    branches = self.paths.nearest_differences(wait.block, others, here)
                    self.notify(
                        BarrierDivergence("warp", wait.block, here, others, branches=branches)
                    )
            before = before | warps


def _line(block: CompiledBlock) -> tuple[str, int] | None:
    """Return the source line of a barrier; ``None`` for PTX without lines."""
    location = block.block.end.location if block.block.end else None
    return (location.user.file, location.user.line) if location else None


def is_aligned(block: CompiledBlock) -> bool:
    """Whether all lanes of a warp have to execute a barrier together."""
    end = block.block.end
    return end is not None and (roles(end).row.aligned or end.has("aligned"))
