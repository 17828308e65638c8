"""Block barriers: which lanes are blocked where, and when they are released.

``bar.sync``, ``barrier``, ``bar.red`` and ``bar.arrive`` follow PTX ISA, "Parallel Synchronization
and Communication Instructions: bar, barrier". A barrier belongs to a block and is identified by its
number, wherever it is in the code. Whole warps are counted, each at every arrival. A barrier
without a count waits for all live threads of the block. Until it is full, all arrivals must agree
on the count and on the reduction; otherwise an H200 stops with error 715.

A thread that only arrives continues, and may arrive again before others. In programs that do this,
waiting threads are scheduled as late as possible, so that a barrier that fills too early hangs
under every schedule.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import EVERY_LANE, WARP, Flat, Mask, Shape, as_mask, blocks_of
from ...events import BarrierDivergence, Dispatcher
from ..lane_state import LaneState
from .barrier_divergence import Divergence, is_aligned
from .barrier_interleavings import BarrierInterleavings
from .blocked_lanes import BlockedLanes, Key, Operands, WarpArrivals
from .branch_history import BranchHistory
from .lane_groups import Splits

NUMBERS = 16
"""Barriers of a block."""


class Barriers:
    """The block barriers of one batch.

    Attributes:
        waiting: Blocked lanes.
    """

    def __init__(
        self, state: LaneState, dispatcher: Dispatcher, paths: BranchHistory, splits: Splits
    ) -> None:
        self.state, self.dispatcher, self.paths, self.splits = state, dispatcher, paths, splits
        self.waiting: list[BlockedLanes] = []
        self.arrivals: dict[Key, WarpArrivals] = {}
        self.signatures: dict[int, set[Key]] = {}
        self.orders = BarrierInterleavings(state, dispatcher, paths.map.orders)
        self.divergence = Divergence(state, dispatcher, paths, self.orders)

    def arrive(
        self, block: CompiledBlock, out: Operands, mask: Mask | None, alone: bool
    ) -> int | None:
        """Handle lanes that reach a barrier.

        Returns:
            Their successor, or ``None`` if they were moved or are blocked.
        """
        state = self.state
        number, count, predicate = out
        wait = BlockedLanes(block, mask, number, count.view(np.uint32), predicate, state.step)
        self._check_operands(wait)
        for key in self._keys(wait) if self.orders.watches else ():
            self.orders.record_arrival(key, block, self._lanes(key, wait))
        if not block.holds:
            mask = self._arrive(wait)
            if alone and mask is wait.mask:
                return block.block.follow
            if mask is None or mask.any():
                state.go(block.number, block.block.follow, mask)
            return None
        if alone and number.ndim == 0 and count.ndim == 0 and not count and not self.arrivals:
            self._release([wait], mask)
            return block.block.follow
        self.waiting.append(wait)
        for key in self._keys(wait):
            self.signatures.setdefault(key[0], set()).add(key)
        if np.any(count) and not self._some_arrive:  # it may be complete without the others
            self.release()
        return None

    @functools.cached_property
    def _some_arrive(self) -> bool:
        blocks = self.paths.map.blocks
        return any(block.terminator_kind == "barrier" and not block.holds for block in blocks)

    def _check_operands(self, wait: BlockedLanes) -> None:
        """Check that the barrier's number is below 16 and its count a multiple of the warp size."""
        number, count = wait.number, wait.count
        if not (number.ndim or count.ndim) and 0 <= number < NUMBERS and not count % WARP:
            return  # the usual ones, at a tenth of the time
        wrong = (number < 0) | (number >= NUMBERS)
        for how, value, bad in (("number", number, wrong), ("count", count, count % WARP != 0)):
            if np.any(bad):
                lanes = bad if wait.mask is None else bad & wait.mask
                if lanes.any():
                    which = np.broadcast_to(value, lanes.shape)[lanes]
                    self.divergence.notify(
                        BarrierDivergence(how, wait.block, lanes, value=int(which.flat[0]))
                    )

    def _arrive(self, wait: BlockedLanes) -> Mask | None:
        """Handle ``bar.arrive``, which counts lanes without blocking.

        Return those that continue.
        """
        for key in self._keys(wait):
            lanes = self._lanes(key, wait)
            self.signatures.setdefault(key[0], set()).add(key)
            if key not in self.arrivals:
                self.arrivals[key] = WarpArrivals(self.state, -(-key[1] // WARP) or 1)
            if self._differ(key[0], (key, wait, lanes)):
                living = as_mask(self.state.alive)
                wait = dataclasses.replace(wait, mask=as_mask(wait.mask) & living)
                lanes = self._lanes(key, wait)
            self.arrivals[key].add(wait, lanes)
            for callback in self.dispatcher.arrive:
                callback(lanes, key[0])
        return wait.mask

    def _differ(self, number: int, *coming: tuple[Key, BlockedLanes, Mask]) -> bool:
        """Stop blocks whose threads reach a barrier with incompatible operands.

        Return if any did.
        """
        if len(self.signatures[number]) == 1:
            return False
        here = [(key, *member) for key in self.signatures[number] for member in self._members(key)]
        for key in self.signatures[number] & self.arrivals.keys():
            here += [(key, *came) for came in self.arrivals[key].came()]
        return self.divergence.differ(number, [*here, *coming])

    def _keys(self, wait: BlockedLanes) -> list[Key]:
        """Return the barriers that lanes address."""
        number, count = wait.number, wait.count
        if number.ndim == 0 and count.ndim == 0:
            return [(int(number), int(count), wait.operation)]
        on = np.broadcast_to(as_mask(wait.mask), self.state.geometry.shape)
        pairs = [np.broadcast_to(value, on.shape)[on] for value in (number, count)]
        found = set(zip(*(values.tolist() for values in pairs), strict=True))
        return [(*pair, wait.operation) for pair in sorted(found)]

    def _lanes(self, key: Key, wait: BlockedLanes) -> Mask:
        """Return the lanes that address one barrier, in the batch's full shape."""
        lanes, shape = as_mask(wait.mask), self.state.geometry.shape
        if wait.number.ndim or wait.count.ndim:
            lanes = (wait.number == key[0]) & (wait.count == key[1]) & lanes
            lanes = lanes & (key[2] == wait.operation)
        elif key != (int(wait.number), int(wait.count), wait.operation):
            lanes = np.zeros((), bool)  # the usual ones, at a tenth of the time
        return lanes if lanes.shape == shape else np.broadcast_to(lanes, shape)

    # -- letting go -----------------------------------------------------------------

    def release(self, loose: bool = False) -> bool:
        """Release the barriers that are full; return whether there were any.

        ``loose``: nothing else can run, so that a warp counts if any of its lanes has arrived.
        """
        if not self.waiting:
            return False
        state = self.state
        if (
            len(self.waiting) == 1
            and not state.groups
            and not self.arrivals
            and not np.any(self.waiting[0].count)
            and self.waiting[0].number.ndim == 0
            and self._covers(self.waiting[0].mask)
        ):
            wait = self.waiting.pop()
            self._release([wait], wait.mask)
            state.go(wait.block.number, wait.block.block.follow, wait.mask)
            return True
        released = False
        keys = sorted({k for w in self.waiting for k in self._keys(w)})
        for number in sorted({key[0] for key in keys}):
            released |= self._differ(number)
        for key in keys:
            while self._counted(key, loose) if key[1] else self._whole(key):
                released = True
        self.waiting = [w for w in self.waiting if w.mask is None or np.count_nonzero(w.mask)]
        return released

    def _members(self, key: Key) -> list[tuple[BlockedLanes, Mask]]:
        """Return the lanes blocked at one barrier, in order of arrival."""
        return [(w, lanes) for w in self.waiting if np.count_nonzero(lanes := self._lanes(key, w))]

    def _whole(self, key: Key) -> bool:
        """Release a barrier of the whole block if all live threads have arrived."""
        g = self.state.geometry
        members = self._members(key)
        union = _union([lanes for _, lanes in members], g.shape)
        absent = np.broadcast_to(as_mask(self.state.alive), g.shape) & ~union
        done = blocks_of(union) & ~blocks_of(absent)
        if done.any():
            self._go(members, union & done)
        return bool(done.any())

    def _counted(self, key: Key, loose: bool) -> bool:
        """Release a counted barrier if enough threads have arrived."""
        g = self.state.geometry
        members = self._members(key)
        union = _union([lanes for _, lanes in members], g.shape)
        ready = g.any_of_warp(union)
        if not loose:  # a warp has come when its living lanes have
            absent = np.broadcast_to(as_mask(self.state.alive), g.shape) & ~union
            ready = ready & ~g.any_of_warp(absent)
        come = np.zeros((g.warps, g.columns), np.int64)
        if arrivals := self.arrivals.get(key):
            arrivals.settle(loose)
            come = arrivals.phase
        wanted = -(-key[1] // WARP) - come.sum(axis=0)
        taken = np.zeros(come.shape, bool)
        # One that waits as well as arrives may do both before anybody else comes.
        for again, (_, lanes) in itertools.product((come > 0, come == 0), members):
            new = g.any_of_warp(lanes) & ready & again & ~taken
            taken |= new & (np.cumsum(new, axis=0) + taken.sum(axis=0) <= wanted)
        done = taken.sum(axis=0) == wanted
        if not done.any():
            return False
        come[:, done] = 0
        go = union & g.spread(taken & done)
        self.divergence.check_warps(members, go)
        self._go(members, go)
        return True

    def _go(self, members: list[tuple[BlockedLanes, Mask]], lanes: Mask) -> None:
        """Release lanes that are blocked at one barrier."""
        waits: list[BlockedLanes] = []
        for wait, here in members:
            leaving = here & lanes
            if leaving.any():
                waits.append(dataclasses.replace(wait, mask=leaving))
                wait.mask = as_mask(wait.mask) & ~leaving
        self._release(waits, lanes)
        for wait in waits:
            self.state.go(wait.block.number, wait.block.block.follow, wait.mask)

    def _covers(self, mask: Mask | None) -> bool:
        return mask is None or bool((mask | ~as_mask(self.state.alive)).all())

    def _release(self, waits: list[BlockedLanes], lanes: Mask | None) -> None:
        if is_aligned(waits[0].block):
            self.splits.meet(lanes)
        if not waits[0].count.any():
            self.divergence.look_at(waits)
        for wait in waits:
            if wait.block.reduction:
                self._reduce(wait, waits, lanes)
        number, warps = _number(waits[0]), self.state.count(lanes)[1]
        for callback in self.dispatcher.barrier:
            callback(lanes, number, warps)
        for callback, wait in itertools.product(self.dispatcher.barrier_passed, waits):
            callback(wait.block.number, self.state.count(wait.mask)[1])

    def _reduce(self, wait: BlockedLanes, waits: list[BlockedLanes], lanes: Mask | None) -> None:
        """Compute ``bar.red`` over all arrived threads and give each the result."""
        g = self.state.geometry
        operation, index = wait.block.reduction  # type: ignore[misc]
        true = np.zeros(g.shape, bool)
        for other in waits:
            if other.predicate is not None:
                true |= np.broadcast_to(other.predicate & as_mask(other.mask), g.shape)
        on = np.broadcast_to(as_mask(lanes), g.shape)
        if operation == "popc":
            result: Flat = (true & on).sum(axis=(0, 1, 2), dtype=np.int32)
        elif operation == "or":
            result = blocks_of(true & on)
        else:
            result = ~blocks_of(~true & on)
        registers = self.state.registers
        here, result = as_mask(wait.mask), result.reshape(1, 1, 1, -1)
        registers[index] = np.where(here, result, registers[index])

    def check_orders(self) -> Mask:
        """Check the possible orders of arrival; return the blocks that end because of them."""
        leads_on = self.paths.map.leads_on
        return self.orders.check([w.mask for w in self.waiting if leads_on(w.block.number)])

    def unsatisfied(self) -> list[BarrierDivergence]:
        """Return, when nothing can run, the blocked lanes with the lanes that are missing."""
        state, shape, found = self.state, self.state.geometry.shape, []
        alive = np.broadcast_to(as_mask(state.alive), shape)
        for wait in self.waiting:
            for key in self._keys(wait):
                lanes = self._lanes(key, wait)
                union = _union([here for _, here in self._members(key)], shape)
                blocks = blocks_of(lanes)
                missing = ~union & blocks & (alive if not key[1] else EVERY_LANE)
                elsewhere = [
                    (other.block, there)
                    for other in self.waiting
                    if (there := as_mask(other.mask) & missing).any()
                ]
                branches = self.paths.diverging_branches(wait.block, missing, lanes)
                how = "arrivals" if key in self.arrivals else "never"
                found.append(
                    BarrierDivergence(how, wait.block, lanes, missing, elsewhere, branches, key[1])
                )
        return found


def _number(wait: BlockedLanes) -> int:
    """Return the barrier's number, which all released lanes share."""
    if wait.number.ndim == 0 or wait.mask is None:
        return int(wait.number.reshape(-1)[0])
    number, mask = np.broadcast_arrays(wait.number, wait.mask)
    return int(number[mask][0])


def _union(masks: list[Mask], shape: Shape) -> Mask:
    union: Mask = np.logical_or.reduce([np.zeros(shape, bool), *masks])
    return union
