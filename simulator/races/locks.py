"""Locks: locations that threads take with an atomic and let go of with a strong write.

A lock puts two critical sections in order whoever comes first; but only if each thread
fences on both sides of its own. What one run shows is one order of the two.
"""

import bisect
from typing import NamedTuple

from ..memory.site import Site
from .handover import Acquire, Release

NEVER = 1 << 62

Lock = tuple[int, int, bool]
"""The thread that takes it, its location, and whether it was taken over within a block."""


class Turn(NamedTuple):
    """A lock was taken or let go: when, and when a fence came (after, before), near and wide."""

    turn: int
    near: int
    wide: int


class Locks:
    """What threads (global numbers) may have taken, and let go of.

    Attributes:
        open: Threads that have taken one, with no fence of device scope since.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.open: set[int] = set()
        self._takes: dict[int, dict[int, list[Turn]]] = {}
        self._puts: dict[tuple[int, int], list[Turn]] = {}

    def take(self, site: Site, place: int, thread: int, turn: int, far: bool) -> None:
        """An atomic: perhaps it takes a lock; ``far``: its scope is more than the block."""
        takes = self._takes.setdefault(thread, {}).setdefault(place, [])
        near = turn if site.acquires else NEVER
        wide = near if far else NEVER
        if wide == NEVER:
            self.open.add(thread)
        if takes and takes[-1].near == NEVER:
            takes.pop()  # it tried in vain, or went on without a fence
        takes.append(Turn(turn, near, wide))

    def put(self, place: int, thread: int, turn: int, near: int, wide: int) -> None:
        """A strong write: perhaps it lets go of a lock."""
        if place in self._takes.get(thread, ()):
            self._puts.setdefault((thread, place), []).append(Turn(turn, near, wide))

    def fence(self, threads: set[int], now: int, wide: bool) -> None:
        """A fence or a barrier of some threads, after what they have taken."""
        for thread in threads & self.open:
            for takes in self._takes[thread].values():
                last = takes[-1]
                takes[-1] = Turn(
                    last.turn, min(last.near, now), min(last.wide, now if wide else NEVER)
                )
            if wide:
                self.open.discard(thread)

    def held(self, acquire: Acquire, release: Release, time: int, thread: int) -> Lock | None:
        """Both held the lock: in the other order, the one asking would have to let it go well."""
        place = acquire.content.place
        if acquire.site.access != "atomic" or release.thread != thread:
            return None
        takes = self._takes.get(thread, {}).get(place, ())
        if any(take.turn < time for take in takes) and time < release.end - 1:
            return acquire.thread, place, self._near(acquire, thread)
        return None

    def unprotected(self, acquire: Acquire, release: Release, time: int, thread: int) -> bool:
        """Whether the other took the same lock before its access, without a fence since.

        It came first this time; had it come second, nothing would have brought it what the
        first had done. So it races, whoever comes first.
        """
        if release.thread != thread or acquire.site.access != "atomic":
            return False
        takes = self._takes.get(thread, {}).get(acquire.content.place, ())
        last = next((take for take in reversed(takes) if take.turn < time), None)
        if last is None or time >= release.end - 1:
            return False
        return (last.near if self._near(acquire, thread) else last.wide) > time

    def let_go_unfenced(self, lock: Lock, time: int) -> bool:
        """Whether a thread let go of a lock with no fence after what it did at a time."""
        thread, place, near = lock
        puts = self._puts.get((thread, place), [])
        at = bisect.bisect_right(puts, time, key=lambda put: put.turn)
        return at < len(puts) and (puts[at].near if near else puts[at].wide) <= time

    def _near(self, acquire: Acquire, thread: int) -> bool:
        """Whether the lock's taker is in the block of a thread."""
        return acquire.thread // self.threads == thread // self.threads
