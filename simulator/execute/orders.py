"""In which orders warps may come to block barriers, whatever the schedule of the run was.

One schedule shows one order. Where a barrier is met in several ways (``Key``), all orders are gone
through in which warps that do what they did could have come: a GPU stops if some come to a barrier
in one way before those of another have filled it (``docs/measured.md``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compile.program import CompiledBlock
from ..events import Apart
from ..geometry import WARP, Mask, as_mask
from ..isa.roles import roles
from ..memory.site import Site
from .waiting import Key

if TYPE_CHECKING:
    from .machine import Machine

_EVENTS = 256
"""Comings of a batch that are remembered; if there are more, none is judged."""
_STATES = 10_000
"""How far warps may have come, together, that is gone through."""


class _Event(NamedTuple):
    """Warps come to a barrier; ``place``: the number of its basic block."""

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


class Orders:
    """What came to the barriers of one batch.

    Attributes:
        watches: Whether anything has to be remembered of it; ``told``: blocks that have stopped.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._came: list[tuple[Key, CompiledBlock, Mask, Mask]] = []
        self.watches = machine.map.orders
        self.told = np.zeros(machine.geometry.columns, bool)

    def come(self, key: Key, block: CompiledBlock, lanes: Mask) -> None:
        """Lanes come to a barrier."""
        if len(self._came) == _EVENTS:
            self.watches, self._came = False, []
            return
        self._came.append((key, block, lanes, as_mask(self.machine.alive)))

    def look(self) -> bool:
        """Tell of blocks that could have stopped; whether there are any that had not ended."""
        numbers = Counter(number for number, _, _ in {key for key, *_ in self._came})
        if not self.watches or max(numbers.values(), default=0) < 2:
            return False
        g = self.machine.geometry
        came = np.zeros((len(self._came), g.warps, g.columns), bool)
        known = ~self.told
        for i, (_, _, lanes, alive) in enumerate(self._came):
            lanes = np.broadcast_to(lanes, g.shape)
            came[i] = g.any_of_warp(lanes)
            known &= ~(came[i] & g.any_of_warp(np.broadcast_to(alive, g.shape) & ~lanes)).any(0)
        more = np.zeros(came.shape[1:], bool)  # warps that wait still, and may do more
        for wait in self.machine.barriers.waiting:
            more |= g.any_of_warp(np.broadcast_to(as_mask(wait.mask), g.shape))
        kinds, of = np.unique(np.concatenate([came, more[None]]), axis=2, return_inverse=True)
        found = np.zeros(g.columns, bool)
        for kind in range(kinds.shape[2]):
            columns = known & (of.reshape(-1) == kind)
            if columns.any() and self._judge(kinds[:-1, :, kind], kinds[-1, :, kind], columns):
                found |= columns
        self.told |= found
        living = found & np.broadcast_to(as_mask(self.machine.alive), g.shape).any(axis=(0, 1, 2))
        if living.any():
            self.machine.stop(np.broadcast_to(living, g.shape))
        return bool(living.any())

    def _judge(self, came: Mask, more: Mask, columns: Mask) -> bool:
        """Whether blocks could have stopped, all of whose warps came as ``came`` says."""
        events = [
            _Event(key[0], key[1:], block.holds, block.number) for key, block, *_ in self._came
        ]
        warps = [tuple(events[i] for i in np.flatnonzero(did)) for did in came.T]
        clash = _clash(warps, more.tolist())
        if clash is None:
            return False
        g = self.machine.geometry
        there = []
        for i, (_, block, lanes, _) in enumerate(self._came):
            if events[i] in clash:
                there.append((block, np.broadcast_to(lanes, g.shape) & columns))
        (first, lanes), *elsewhere = sorted(there, key=lambda pair: pair[0].number)
        number = next(iter(clash)).number
        self.machine.barriers.divergence.tell(
            Apart("ways", first, lanes, None, elsewhere, value=number)
        )
        return True


def matter(blocks: Sequence[CompiledBlock], sites: Sequence[Site]) -> bool:
    """Whether a program's barriers may be met in several ways, and nothing but they orders warps.

    What a strong read waits for, say, is not known here.
    """
    ends = [block.block.end for block in blocks if block.ends == "barrier"]
    counted = any(end and len(end.operands) > 1 for end in ends)
    strong = any(site.strong and (site.access == "load" or site.returns) for site in sites)
    waits = any(
        roles(ins).row.phase or block.cluster
        for block in blocks
        for ins in block.block.instructions
    )
    return counted and not (strong or waits)


def _clash(warps: list[_Way], more: list[bool]) -> set[_Event] | None:
    """Events that do not go together, if warps can come to one in an order in which both meet.

    ``more``: warps that may do more than is known.
    """
    kinds = sorted({*zip(warps, more, strict=True)}, key=str)
    start = tuple(sorted((kinds.index(one), 0, False) for one in zip(warps, more, strict=True)))
    seen: set[_State] = set()
    todo: list[_State] = [(start, ())]
    while todo and len(seen) < _STATES:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        for kind, done, waits in set(state[0]):
            way = kinds[kind][0]
            if waits or done == len(way):
                continue
            event = way[done]
            there = next((fill for fill in state[1] if fill[0] == event.number), None)
            if there is not None and there[1] != event.way:
                return {event} | {e for one in warps for e in one if e[:2] == there[:2]}
            todo.append(_after(state, (kind, done, waits), event, there, kinds))
    return None


def _after(
    state: _State, warp: _Warp, event: _Event, there: _Fill | None,
    kinds: list[tuple[_Way, bool]],
) -> _State:  # fmt: skip
    """The state after a warp has come to a barrier."""
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
