"""Locks: locations that threads take with an atomic and let go of with a strong write.

A lock puts two critical sections in order whoever comes first; but only if each thread
fences on both sides of its own. What one run shows is one order of the two.
"""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..geometry import Flat
from ..memory.site import Site
from ..memory.words import distinct
from .clocks import Blocks, Held

NEVER = 1 << 62
COUNTS = ("add", "inc", "dec")
"""Atomics that take no lock: arrivals are counted, and the last who comes may reset the count."""

_TIME = 44
"""Bits of a time below the number of a thread."""


class Lock(NamedTuple):
    """The thread that takes it, its location, and whether it was taken over within a block.

    ``both``: whether the other thread had taken it, too, when it did what came first;
    ``by_chance``: whether the one has let it go since, so that it might have had it first.
    """

    taker: int
    place: int
    near: bool
    both: bool
    by_chance: bool = False


class Turn(NamedTuple):
    """A lock was taken or let go: when, and when a fence came (after, before), near and wide.

    ``met``: when a barrier came after it was taken.
    """

    turn: int
    near: int
    wide: int
    met: int = NEVER


class Locks:
    """What threads (global numbers) may have taken, and let go of.

    Attributes:
        takers: Threads that have taken some.
        open: Those of them with no fence of a wider scope than the block since.
        sites: The numbers of instructions that have taken some.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.takers: set[int] = set()
        self.open: dict[int, set[int]] = {}
        self.sites: set[int] = set()
        self._free: set[int] = set()  # locations that were to take before anybody had written there
        # By block and location: of each thread.
        self._takes: dict[tuple[int, int], dict[int, list[Turn]]] = {}
        self._tables: dict[tuple[int, int], Flat] = {}
        self._puts: dict[tuple[int, int], list[Turn]] = {}

    def take(self, site: Site, place: int, thread: int, turn: int, far: bool, first: bool) -> None:
        """An atomic: perhaps it takes a lock.

        ``far``: its scope is more than the block; ``first``: nobody has written there before.
        """
        self.sites.add(site.number)
        self._free |= {place} if first else set()
        at = thread // self.threads, place
        takes = self._takes.setdefault(at, {}).setdefault(thread, [])
        self._tables.pop(at, None)
        self.takers.add(thread)
        near = turn if site.acquires else NEVER
        wide = near if far else NEVER
        if wide == NEVER:
            self.open.setdefault(thread, set()).add(place)
        if takes and takes[-1].near == takes[-1].met == NEVER:
            takes.pop()  # it tried in vain, or went on without a fence
        takes.append(Turn(turn, near, wide))

    def free(self, place: int) -> bool:
        """Whether somebody has taken a location as it was at first: it is a lock."""
        return place in self._free

    def put(self, place: int, thread: int, turn: int, near: int, wide: int) -> None:
        """A strong write: perhaps it lets go of a lock."""
        if thread in self._takes.get((thread // self.threads, place), ()):
            self._puts.setdefault((thread, place), []).append(Turn(turn, near, wide))

    def fence(self, threads: set[int], now: int, wide: bool) -> None:
        """A fence of some threads, after what they have taken."""
        for thread in threads & self.open.keys():
            for place in self.open[thread]:
                at = thread // self.threads, place
                takes = self._takes[at][thread]
                last = takes[-1]
                takes[-1] = last._replace(
                    near=min(last.near, now), wide=min(last.wide, now if wide else NEVER)
                )
                self._tables.pop(at, None)
            if wide:
                del self.open[thread]

    def meet(self, threads: Sequence[int], now: int) -> None:
        """Some threads meet at a barrier, after what they have taken."""
        for thread in self.open.keys() & set(threads) if self.open else ():
            for place in self.open[thread]:
                at = thread // self.threads, place
                takes = self._takes[at][thread]
                if takes[-1].met == NEVER:
                    takes[-1] = takes[-1]._replace(met=now)
                    self._tables.pop(at, None)

    def ordered(
        self, held: Mapping[Held, Flat], mine: Flat, time: Flat, thread: Flat, met: bool
    ) -> Iterator[tuple[Flat, Lock | None]]:
        """Which accesses at ``time`` by ``thread`` were handed over to ``mine`` with a lock.

        Both may have held it: in the other order, the one asking would have to let it go well.
        Then the lock is given (and where only the one asking has, for ``by_chance``). But what the
        other did between taking it and a fence does not come first: it did this time; had it come
        second, nothing would have brought it what the first had done. So that races, whoever comes
        first. (``met``: a barrier is enough for what the other did, as ``releases`` has it.)
        """
        block, lane = np.divmod(thread, self.threads)
        left = np.ones(len(time), bool)
        locked: list[tuple[int, bool, bool, Flat]] = []
        by_block = Blocks(block)
        for (number, place, near), row in held.items():
            at = by_block.of(number)
            at = at[left[at] & (time[at] <= row[lane[at]])]
            if not at.size:
                continue
            taken, fenced = self._last(number, place, near, time[at], thread[at], met)
            if (~taken).any() and place in self._free:
                locked.append((place, near, False, at[~taken]))
            elif (~taken).any():
                left[at[~taken]] = False
                yield at[~taken], None
            at = at[taken & (fenced <= time[at])]
            if at.size:
                locked.append((place, near, True, at))
        given: list[tuple[bool, Lock | None, Flat]] = []
        for place, near, both, at in locked:
            for taker, some in self._by_taker(place, mine, at):
                lock = taker if taker is None else Lock(taker, place, near, both)
                given.append((taker is not None and self._let_go(taker, place), lock, some))
        for by_chance, lock, at in sorted(given, key=lambda one: one[0]):
            at = at[left[at]]
            left[at] = False
            yield at, lock and lock._replace(by_chance=by_chance)

    def _by_taker(self, place: int, mine: Flat, at: Flat) -> Iterator[tuple[int | None, Flat]]:
        """Of those who ask, each time those for whom the same thread has taken a lock.

        Itself, or one of its block at last, which holds it for all of them.
        """
        asking = mine[at]
        first, last = (int(end) // self.threads for end in (asking.min(), asking.max()))
        blocks = [first] if first == last else distinct(asking // self.threads).tolist()
        for block in blocks:
            takes = self._takes.get((block, place), {})
            here = at if first == last else at[asking // self.threads == block]
            if len(takes) > 1:
                own = np.isin(mine[here], list(takes))
                for who in distinct(mine[here[own]]).tolist():
                    yield who, here[mine[here] == who]
                here = here[~own]
            if here.size:
                yield max(takes, key=lambda who: takes[who][-1].turn, default=None), here

    def _let_go(self, taker: int, place: int) -> bool:
        """Whether a thread has had a lock, that was free at first, and has it no more."""
        takes = self._takes.get((taker // self.threads, place), {}).get(taker)
        puts = self._puts.get((taker, place))
        return bool(place in self._free and takes and puts and puts[-1].turn > takes[-1].turn)

    def _last(
        self, block: int, place: int, near: bool, time: Flat, thread: Flat, met: bool
    ) -> tuple[Flat, Flat]:
        """Whether each thread took a lock before a time; when it fenced, or ``met``, after that."""
        takes = self._takes.get((block, place))
        if not takes:
            return np.zeros(len(time), bool), time
        table = self._tables.get((block, place))
        if table is None:
            turns = [(who << _TIME | t[0], *t[1:]) for who in takes for t in takes[who]]
            table = self._tables[block, place] = np.array([(0, 0, 0, 0), *sorted(turns)]).T
        keys, nears, wides, meetings = table
        last = np.searchsorted(keys, thread << _TIME | time) - 1
        fenced = (nears if near else wides)[last]
        fenced = np.minimum(fenced, meetings[last]) if met else fenced
        return (keys[last] >> _TIME == thread) & (last > 0), fenced

    def let_go_unfenced(self, lock: Lock, time: int) -> bool:
        """Whether a thread let go of a lock with no fence after what it did at a time."""
        puts = self._puts.get((lock.taker, lock.place), [])
        at = bisect.bisect_right(puts, time, key=lambda put: put.turn)
        fenced = at < len(puts) and (puts[at].near if lock.near else puts[at].wide)
        return lock.both and at < len(puts) and fenced <= time
