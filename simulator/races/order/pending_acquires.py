"""Strong reads whose values become acquires at the next fence or barrier."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .acquired import NONE, AcquiredClock
from .release_sequence import Taken
from .vector_clock import BOTTOM, VectorClock

AcquiredBySite = Mapping[int, Sequence[VectorClock]]
"""By the instruction that read: what a fence makes known, by levels of its scope."""


@dataclass(slots=True)
class ArrivalClock:
    """Contribution of an arriving thread: its pending acquires, and acquires from other blocks."""

    read: AcquiredBySite = field(default_factory=dict)
    acquired: AcquiredClock = NONE


class PendingAcquires:
    """Values that threads have read, or received by barriers, since their last fence.

    Threads are global numbers.
    """

    def __init__(self) -> None:
        self._of: dict[int, AcquiredBySite | Taken] = {}

    @property
    def any(self) -> bool:
        """Whether any thread has a pending acquire."""
        return bool(self._of)

    def hear(self, thread: int, taken: Taken) -> None:
        """Record a strong read."""
        before = self._of.get(thread)
        if before is None or (isinstance(before, Taken) and before.source == taken.source):
            self._of[thread] = taken
        else:
            self._of[thread] = _both(_made(before), taken.observed_writes)

    def share(self, threads: Sequence[int], more: AcquiredBySite | None = None) -> AcquiredBySite:
        """Handle a barrier: a fence of any participant then acquires the others' reads as well.

        ``more``: contributions of threads that only arrived. Returns the join of all.
        """
        found = self.of(threads, more or {})
        if found:
            self._of.update(dict.fromkeys(threads, found))
        return found

    def drop(self, threads: Iterable[int], is_covered: Callable[[int, int], bool]) -> None:
        """Remove the strong writes (``VectorClock.without_writes``) that a barrier covers."""
        made: dict[int, AcquiredBySite] = {}
        for thread in threads:
            if (found := self._of.get(thread)) is None:
                continue
            if id(found) not in made:
                made[id(found)] = _without(_made(found), is_covered)
            if made[id(found)]:
                self._of[thread] = made[id(found)]
            else:
                del self._of[thread]

    def of(self, threads: Iterable[int], more: AcquiredBySite) -> AcquiredBySite:
        """Return the join of some threads' pending acquires and ``more``."""
        if not self._of:
            return more
        mine = (self._of.get(thread) for thread in threads)
        for found in {id(one): one for one in mine if one}.values():
            more = _both(more, _made(found))
        return more

    def take(self, thread: int, covered: int) -> dict[int, VectorClock]:
        """Remove and return what a fence covering so many scope levels acquires.

        The rest stays pending.
        """
        brought: dict[int, VectorClock] = {}
        remaining: dict[int, Sequence[VectorClock]] = {}
        for site, clocks in _made(self._of.pop(thread, {})).items():
            clock = clocks[:covered][-1]
            if clock is not BOTTOM:
                brought[site] = clock
            if clock is not clocks[-1]:
                remaining[site] = clocks
        if remaining:
            self._of[thread] = remaining
        return brought


def _made(found: AcquiredBySite | Taken) -> AcquiredBySite:
    return found.observed_writes if isinstance(found, Taken) else found


def _without(found: AcquiredBySite, is_covered: Callable[[int, int], bool]) -> AcquiredBySite:
    """Return the clocks without the strong writes that are covered."""
    made = {
        site: [clock.without_writes(is_covered) for clock in clocks]
        for site, clocks in found.items()
    }
    return {site: clocks for site, clocks in made.items() if clocks[-1] is not BOTTOM}


def _both(known: AcquiredBySite, more: AcquiredBySite) -> AcquiredBySite:
    """Return the join of two, level by level."""
    if not (known and more):
        return known or more
    made = dict(known)
    for site, clocks in more.items():
        old = made.get(site)
        made[site] = [a.merge(b) for a, b in zip(old, clocks, strict=True)] if old else clocks
    return made
