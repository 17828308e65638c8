"""Possible interleavings of warps at block barriers, beyond the schedule of the run.

One schedule shows one order. This module enumerates all orders in which warps with the same events
could arrive. A GPU stops if a warp arrives with other operands (``Key``) before a barrier is full
(``docs/measured.md``), and hangs if arrivals fill it too early. Even if no order does that, warps
may meet by chance at barriers that count fewer warps than arrive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import WARP, Mask, as_mask
from ...events import BarrierDivergence, Dispatcher, Stall
from ...isa.decoded import roles
from ...memory.site import Site
from ..lane_state import LaneState
from .blocked_lanes import Key

_EVENTS = 1024
"""Comings of warps of a block that are remembered; if there are more, none is judged."""
_STATES = 10_000
"""How far warps may have come, together, that is gone through."""


class _Event(NamedTuple):
    """Arrival of warps at a barrier; ``place``: number of its basic block."""

    number: int
    way: tuple[int, str]
    holds: bool
    place: int


_Way = tuple[_Event, ...]
"""What one warp does."""
_Warp = tuple[int, int, bool]
"""What a warp does, by number; how much of it is done; whether it waits for the last of that."""
_Fill = tuple[int, tuple[int, str], int]
"""A barrier that is not full: its number, and how and how often warps have come to it."""
_State = tuple[tuple[_Warp, ...], tuple[_Fill, ...]]


class BarrierInterleavings:
    """Arrivals at the barriers of one batch.

    Attributes:
        watches: Whether arrivals have to be recorded.
        reported: Blocks that have stopped.
    """

    def __init__(self, state: LaneState, dispatcher: Dispatcher, watches: bool) -> None:
        self.state, self.observers, self.watches = state, dispatcher, watches
        self._came: list[tuple[Key, CompiledBlock, Mask, Mask]] = []
        self.reported = np.zeros(state.geometry.columns, bool)
        self._many = np.zeros(state.geometry.columns, np.int64)

    def record_arrival(self, key: Key, block: CompiledBlock, lanes: Mask) -> None:
        """Record lanes that reach a barrier."""
        self._many += self.state.geometry.any_of_warp(lanes).sum(axis=0)
        if self._many.max() > _EVENTS:
            self.watches, self._came = False, []
            return
        self._came.append((key, block, lanes, as_mask(self.state.alive)))

    def check(self, blocked: Sequence[Mask | None]) -> Mask:
        """Report blocks that could have stopped; return those of them that had not ended.

        ``blocked``: lanes blocked at barriers that others may still reach.
        """
        return self._check([as_mask(lanes) for lanes in blocked], None)

    def look_at(self, clashing: Mask) -> Mask:
        """Check blocks in which warps meet at a barrier with incompatible operands."""
        return self._check([as_mask(self.state.alive)], clashing)

    def _check(self, unfinished: Sequence[Mask], clashing: Mask | None) -> Mask:
        """Check all blocks, or the clashing ones; ``unfinished``: lanes with further arrivals."""
        state = self.state
        g = state.geometry
        if not self.watches or not self._came:
            return np.zeros(g.columns, bool)
        came = np.zeros((len(self._came), g.warps, g.columns), bool)
        known = ~self.reported if clashing is None else clashing & ~self.reported
        for i, (_, _, lanes, alive) in enumerate(self._came):
            lanes = np.broadcast_to(lanes, g.shape)
            came[i] = g.any_of_warp(lanes)
            known &= ~(came[i] & g.any_of_warp(np.broadcast_to(alive, g.shape) & ~lanes)).any(0)
        more = np.zeros(came.shape[1:], bool)  # warps that may do more
        living = np.broadcast_to(as_mask(state.alive), g.shape)
        for lanes in unfinished:
            more |= g.any_of_warp(np.broadcast_to(lanes, g.shape))
        kinds, of = np.unique(np.concatenate([came, more[None]]), axis=2, return_inverse=True)
        found = np.zeros(g.columns, bool)
        for kind in range(kinds.shape[2]):
            columns = known & (of.reshape(-1) == kind)
            if not columns.any():
                continue
            if self._judge(kinds[:-1, :, kind], kinds[-1, :, kind], columns):
                found |= columns
            elif clashing is None:
                self._chance(kinds[:-1, :, kind], columns)
        self.reported |= found
        stops = found & living.any(axis=(0, 1, 2))
        if stops.any():
            state.stop(np.broadcast_to(stops, g.shape))
        return stops

    def _chance(self, came: Mask, columns: Mask) -> None:
        """Report chance meetings; one block represents those with equal arrivals."""
        g, column = self.state.geometry, int(np.argmax(columns))
        met = by_chance(
            InterleavedArrival(
                key[0], key[1], block.holds, tuple(np.flatnonzero(warps).tolist()),
                int(g.any_of_warp(np.broadcast_to(alive, g.shape))[:, column].sum()),
            )
            for (key, block, _, alive), warps in zip(self._came, came, strict=True)
        )  # fmt: skip
        if met is None:
            return
        self.reported |= columns
        (key, one, first, _), (_, other, then, _) = sorted(
            (self._came[i] for i in met), key=lambda came: came[1].number
        )
        lanes, others = (np.broadcast_to(some, g.shape) & columns for some in (first, then))
        elsewhere = [(other, others)] if other is not one else []
        lanes = lanes if elsewhere else lanes | others
        self._report(BarrierDivergence("chance", one, lanes, None, elsewhere, value=key[0]))

    def _report(self, divergence: BarrierDivergence) -> None:
        for callback in self.observers.barrier_divergence:
            callback(divergence)

    def _judge(self, came: Mask, more: Mask, columns: Mask) -> bool:
        """Whether blocks with the arrivals ``came`` could have stopped."""
        events = [
            _Event(key[0], key[1:], block.holds, block.number) for key, block, *_ in self._came
        ]
        did = [np.flatnonzero(one) for one in came.T]
        found = _faults(tuple(tuple(events[i] for i in one) for one in did), tuple(more.tolist()))
        if not (found.clash or (found.blocked and found.may_finish)):
            return False
        g, there = self.state.geometry, []
        for warp, place in found.clash or found.blocked:
            key, block, lanes, _ = self._came[did[warp][place]]
            mine = g.spread((np.arange(g.warps) == warp)[:, None] & columns)
            there.append((block, np.broadcast_to(lanes, g.shape) & mine, key[0]))
        there.sort(key=lambda one: one[0].number)
        parts = [(block, lanes) for block, lanes, _ in there]
        if found.clash:
            (first, lanes), *elsewhere = parts
            self._report(
                BarrierDivergence("ways", first, lanes, None, elsewhere, value=there[0][2])
            )
            return True
        waiting = [
            BarrierDivergence("orders", block, lanes, None, parts, value=n)
            for block, lanes, n in there
        ]
        for callback in self.observers.stuck:
            callback(Stall("waits", waiting, [], self.state.step))
        return True


class InterleavedArrival(NamedTuple):
    """Arrival of warps at a barrier.

    Attributes:
        threads: Thread count of the barrier; 0: the block, of which ``living`` warps are alive.
        living: Number of live warps.
        holds: Whether the warps wait.
    """

    number: int
    threads: int
    holds: bool
    warps: tuple[int, ...]
    living: int


class _Met(NamedTuple):
    """Arrivals of warps that filled a barrier.

    Attributes:
        wait: Whether each warp waits.
        aware: The warps that know of it.
        at: Position of the last arrival.
    """

    members: set[int]
    wait: bool
    aware: set[int]
    at: int


def by_chance(comings: Iterable[InterleavedArrival]) -> tuple[int, int] | None:
    """Return two arrivals of which the later could have filled the barrier in place of the earlier.

    This is possible if a warp fills a barrier that others filled before, and has met none of the
    warps that know of that since. In another order it could have arrived first. Where some warps
    only arrive, their arrivals may serve any waiting warp.
    """
    last: dict[int, _Met] = {}
    filling: dict[int, list[tuple[int, bool]]] = {}
    for i, coming in enumerate(comings):
        needed = -(-coming.threads // WARP) if coming.threads else coming.living
        for warp in coming.warps:
            there = filling.setdefault(coming.number, [])
            if (warp, True) in there:  # others left, which has let it go
                there.clear()
            there.append((warp, coming.holds))
            if len(there) < needed:
                continue
            members = {one for one, _ in there}
            blocked = {one for one, waits in there if waits}
            # A warp that is all a barrier waits for meets nobody in any order.
            wait = all(waits for _, waits in there) and coming.threads > 0 and needed > 1
            there.clear()
            before = last.get(coming.number)
            if wait and before and before.wait and members - before.members - before.aware:
                return before.at, i
            for met in last.values():
                if met.aware & members:
                    met.aware.update(blocked)
            last[coming.number] = _Met(members, wait, blocked, i)
    return None


def matter(blocks: Sequence[CompiledBlock], sites: Sequence[Site]) -> bool:
    """Whether barriers can be met in several ways, and only barriers order the warps.

    Order by strong reads is not considered.
    """
    terminators = [block.block.end for block in blocks if block.terminator_kind == "barrier"]
    counted = any(end and len(end.operands) > 1 for end in terminators)
    strong = any(site.strong and (site.access == "load" or site.returns) for site in sites)
    waits = any(
        roles(ins).row.phase or block.cluster
        for block in blocks
        for ins in block.block.instructions
    )
    return counted and not (strong or waits)


_Place = tuple[int, int]
"""A warp, and which of its events."""


class _Faults(NamedTuple):
    """Possible faults over all orders.

    Attributes:
        clash: Two incompatible events, if they can meet.
        blocked: Waits of warps that no other warp releases in some order.
        may_finish: Whether some known order lets every warp continue.
    """

    clash: list[_Place]
    blocked: list[_Place]
    may_finish: bool


@functools.lru_cache(64)
def _faults(warps: tuple[_Way, ...], more: tuple[bool, ...]) -> _Faults:
    """Return the faults that some interleaving of the warps' barriers can cause.

    Each warp reaches its barriers in program order. ``more``: warps that may execute more than is
    known. Of several faults of one kind the one with the fewest events is reported, so that the
    report does not depend on the progress of the run.
    """
    kinds = sorted({*zip(warps, more, strict=True)}, key=str)
    start = tuple(sorted((kinds.index(one), 0, False) for one in zip(warps, more, strict=True)))
    level: set[_State] = {(start, ())}
    stops: list[_State] = []
    may_finish, looked = False, 0
    while level and looked < _STATES:
        looked += len(level)
        following: set[_State] = set()
        clashes: list[tuple[list[_Event], list[_Place]]] = []
        here: list[_State] = []
        for state in level:
            goes = False
            for kind, done, waits in set(state[0]):
                way, on = kinds[kind]
                if waits or done == len(way):
                    goes |= not waits and on
                    may_finish |= not waits and on
                    continue
                goes, event = True, way[done]
                there = next((fill for fill in state[1] if fill[0] == event.number), None)
                if there is not None and there[1] != event.way:
                    like, at = _latest(state, there, kinds)
                    clashes.append(([event, like], [(kind, done), at]))
                    continue
                following.add(_after(state, (kind, done, waits), event, there, kinds))
            is_blocked = any(waits for _, _, waits in state[0])
            may_finish |= not (goes or is_blocked)
            here += [state] if is_blocked and not goes else []
        if clashes:
            return _Faults(_places(min(clashes)[1], kinds, warps, more), [], may_finish)
        stops, level = stops or here, following

    def so_far(state: _State) -> list[tuple[_Way, bool]]:
        return sorted((kinds[kind][0][:done], waits) for kind, done, waits in state[0])

    last = min(stops, key=so_far)[0] if stops else ()
    waiting = [(kind, done - 1) for kind, done, waits in last if waits]
    return _Faults([], _places(waiting, kinds, warps, more), may_finish)


def _latest(state: _State, fill: _Fill, kinds: list[tuple[_Way, bool]]) -> tuple[_Event, _Place]:
    """Return one event that filled a barrier, with the kind of its warp."""
    found = []
    for kind, done, _ in state[0]:
        like = [at for at in range(done) if kinds[kind][0][at][:2] == fill[:2]]
        found += [(kinds[kind][0][like[-1]], (kind, like[-1]))] if like else []
    return min(found)


def _places(
    places: list[_Place], kinds: list[tuple[_Way, bool]], warps: tuple[_Way, ...],
    more: tuple[bool, ...],
) -> list[_Place]:  # fmt: skip
    """Map events of kinds of warps to events of warps."""
    used: list[int] = []
    for kind, _ in places:  # two events may be one warp's own
        like = [w for w in range(len(warps)) if (warps[w], more[w]) == kinds[kind]]
        used.append(next((w for w in like if w not in used), like[0]))
    return [(warp, at) for warp, (_, at) in zip(used, places, strict=True)]


def _after(
    state: _State, warp: _Warp, event: _Event, there: _Fill | None,
    kinds: list[tuple[_Way, bool]],
) -> _State:  # fmt: skip
    """Return the state after a warp has reached a barrier."""
    warps = list(state[0])
    warps.remove(warp)
    warps.append((warp[0], warp[1] + 1, event.holds))
    come = 1 + (there[2] if there else 0)
    fills = {fill[0]: fill for fill in state[1]} | {event.number: (event.number, event.way, come)}
    living = sum(
        waits or done < len(kinds[kind][0]) or kinds[kind][1] for kind, done, waits in warps
    )
    for number, (count, _), come in list(fills.values()):
        if come < (-(-count // WARP) if count else living):
            continue
        del fills[number]
        warps = [
            (kind, done, waits and kinds[kind][0][done - 1].number != number)
            for kind, done, waits in warps
        ]
    return tuple(sorted(warps)), tuple(sorted(fills.values()))
