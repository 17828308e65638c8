"""Synchronisation without barriers: who released a location, and who acquired it after.

A release is a strong write after a fence (or one that is a release itself). It hands on what
its thread had done by the fence, what barriers had brought to it by then, and what it had
acquired. An acquire is a strong read that finds the released value (or what atomics made of
it), with a fence or a block barrier after it, or that is an acquire itself; it counts for the
accesses that the value found decides on: who does not look at the flag has waited for nobody.
Scopes: a fence or an access of block scope serves within its block alone. (PTX ISA, "Memory
Consistency Model": release and acquire patterns, observation and causality order.)

What happens is noted down, and gone through only when two accesses may race.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ..analysis.steering import Steering
from ..clusters import Clusters
from ..geometry import Flat
from ..isa.table import BLOCK, CLUSTER, DEVICE
from ..memory.site import Site
from .handover import Acquire, Content, Fence, Meeting, Noted, Release, Seen, StrongAccess, covers
from .locks import Lock, Locks

_MUCH = 1 << 20
"""Lanes that are noted down at most before they are gone through."""


class Releases:
    """What strong accesses of a launch put in order.

    Args:
        everyone: Threads of the launch; ``threads``: of a block; ``clusters``: of blocks.
    """

    def __init__(self, steering: Steering, everyone: int, threads: int, clusters: Clusters) -> None:
        self.steering, self.threads, self.clusters = steering, threads, clusters
        self.acquiring = {
            site.number
            for site in steering.program.sites
            if site.strong and site.access != "store" and steering.steers(site)
        }
        self.fences = False
        self._noted: list[Noted] = []
        self._lanes = 0
        self._fenced = np.zeros((DEVICE + 1, everyone if self.acquiring else 0), np.int64)
        self._known: dict[int, Seen | None] = {}
        self._published: dict[int, tuple[Flat, ...]] = {}
        self._barrier: dict[int, int] = {}
        self._contents: dict[int, Content] = {}
        self._pending: dict[int, list[Acquire]] = {}
        self._acquired: dict[int, list[Acquire]] = {}
        self._locks = Locks(threads)
        self.lock: Lock | None = None

    @property
    def active(self) -> bool:
        """Whether there is anything that a barrier could hand on or complete."""
        return bool(self._noted or self._pending or self._locks.open or self.fences)

    # -- what happens -------------------------------------------------------------------

    def fence(self, threads: Flat, now: int, reach: int, known: Sequence[Seen] | None) -> None:
        """A fence of some threads.

        ``threads`` are global numbers, ``reach``: of its scope; ``known``: up to when
        each of them has seen each thread of its block; ``None``: the times of its block's and its
        warp's last barriers say all.
        """
        if self.acquiring:
            self.fences = True
            self._note(Fence(now, threads, reach, known))

    def barrier(self, threads: Flat, now: int, blocks: Flat) -> None:
        """A block barrier let threads go; ``blocks``: those of which all threads came."""
        if (self.acquiring and self._noted) or self._pending or self.fences:
            self._note(Meeting(now, threads, blocks))

    def access(
        self, site: Site, places: Flat, threads: Flat, turns: Flat, met: Flat, warp: Flat,
        known: Sequence[Seen] | None,
        vain: Flat | None = None,
    ) -> None:  # fmt: skip
        """A strong access.

        ``threads`` are global numbers, ``turns`` when each lane has its turn; ``met``, ``warp``:
        times of the last barrier of each thread's block, of its warp; ``known``: as ``fence`` takes
        it, for an access that is a release itself; ``vain``: lanes of a compare-and-swap that wrote
        nothing.
        """
        if not self.acquiring:
            return
        if not (self.fences or site.releases or site.acquires) and self._lanes > _MUCH:
            return  # with no fence it can order but its own location
        if site.releases:
            self.fences = True
        turn = np.argsort(turns, kind="stable")
        noted = StrongAccess(
            int(turns.max()), threads[turn], site,
            places[turn], turns[turn], met[turn], warp[turn],
            None if known is None else [known[i] for i in turn],
            None if vain is None else vain[turn].tolist(),
        )  # fmt: skip
        self._note(noted)

    def _note(self, noted: Noted) -> None:
        self._noted.append(noted)
        self._lanes += 64 if isinstance(noted, Meeting) else len(noted.threads)
        if self._lanes > _MUCH and self.fences:
            self._catch_up()

    # -- going through it -----------------------------------------------------------------

    def _catch_up(self) -> None:
        noted, self._noted, self._lanes = self._noted, [], 0
        for event in noted:
            if isinstance(event, Fence):
                self._fence(event)
            elif isinstance(event, Meeting):
                self._publish(event)
                if self._pending or self._locks.open:
                    self._effective(event.threads, event.time, DEVICE)
            else:
                self._strong(event)

    def _fence(self, event: Fence) -> None:
        self._fenced[: event.reach + 1, event.threads] = event.time
        if event.known is not None or self._known:
            for i, thread in enumerate(event.threads.tolist()):
                self._known[thread] = None if event.known is None else event.known[i]
        self._effective(event.threads, event.time, event.reach)

    def _publish(self, event: Meeting) -> None:
        """What threads had fenced before a barrier, others may release after it."""
        for block in event.blocks.tolist():
            before = self._barrier.get(block, 0)
            self._barrier[block] = event.time
            mine = slice(block * self.threads, (block + 1) * self.threads)
            if not (self._fenced[BLOCK, mine] > before).any():
                continue
            old = self._published.get(block)
            made = []
            for i, fences in enumerate(self._fenced[:, mine]):
                known = fences.copy() if old is None else np.maximum(fences, old[i])
                if fences.max() > before:  # a fence hands on what the thread knows of others
                    known = np.maximum(known, before)
                made.append(known)
            self._published[block] = tuple(made)

    def _effective(self, threads: Flat, now: int, reach: int) -> None:
        """A fence or a barrier after strong reads makes acquires of them."""
        if not (self._pending or self._locks.open):
            return
        those = set(threads.tolist())
        for thread in those & self._pending.keys():
            left = []
            for acquire in self._pending.pop(thread):
                if acquire.reach > reach:
                    left.append(acquire)
                    acquire = dataclasses.replace(acquire, reach=reach)
                acquire.time = now
                self._acquired.setdefault(thread // self.threads, []).append(acquire)
            if left:
                self._pending[thread] = left
        self._locks.fence(those, now, reach >= self._far)

    def _strong(self, event: StrongAccess) -> None:
        site = event.site
        reads = site.number in self.acquiring
        columns = (event.places, event.threads, event.turns, event.met, event.warp)
        end = event.time + 1
        rows = zip(*(c.tolist() for c in columns), strict=True)
        for i, (place, thread, turn, met, warp) in enumerate(rows):
            content = self._contents.get(place)
            if reads:
                self._read(site, place, thread, turn, content)
            if site.access == "load" or (event.vain and event.vain[i]):
                continue
            if content is None or site.access == "store":
                content = self._contents[place] = Content(place)
            fenced: list[int] = self._fenced[:, thread].tolist()
            known = self._known.get(thread)
            if site.releases:
                known = None if event.known is None else event.known[i]
                fenced[: site.reach + 1] = [turn] * (site.reach + 1)
            self._locks.put(place, thread, turn, fenced[BLOCK], fenced[self._far])
            fenced[site.reach + 1 :] = [-1] * (DEVICE - site.reach)
            block = thread // self.threads
            published = self._published.get(block)
            content.add(
                Release(site, thread, block, end, tuple(fenced), met, warp, published, known)
            )

    def _read(
        self, site: Site, place: int, thread: int, turn: int, content: Content | None
    ) -> None:
        if site.access == "atomic":
            self._locks.take(site, place, thread, turn, site.reach >= self._far)
        if content is None or not content.releases:
            return
        acquire = Acquire(site, thread, content, len(content.releases), site.reach, turn)
        if site.acquires:
            self._acquired.setdefault(thread // self.threads, []).append(acquire)
            return
        pending = self._pending.setdefault(thread, [])
        if pending and pending[-1].content is content and pending[-1].site is site:
            pending[-1] = acquire
        else:
            pending.append(acquire)

    @property
    def _far(self) -> int:
        """The reach that another block of those needs that may share a lock."""
        return CLUSTER if self.clusters.size > 1 else DEVICE

    def _distance(self, one: int, other: int) -> int:
        """The reach that a scope needs from one block to another."""
        if one == other:
            return BLOCK
        return CLUSTER if self.clusters.together(one, other) else DEVICE

    # -- asking ------------------------------------------------------------------------------

    def blocks(self) -> set[int]:
        """The blocks in which something has been acquired."""
        if self._noted:
            self._catch_up()
        return set(self._acquired)

    def ordered(self, time: int, thread: int, site: Site, mine: int, known: Seen) -> bool:
        """Whether an access comes before one that ``mine`` makes now at ``site``.

        If it is a lock that brings them in order, ``lock`` says which, and who takes it.
        ``thread``, a global number as ``mine``, made the access at ``time``; ``known``: up to when
        the asker has seen each thread of its block.
        """
        block = mine // self.threads
        self.lock = None
        seen: set[tuple[int, int]] = set()
        for acquire in self._acquired.get(block, ()):
            met = acquire.thread == mine or acquire.time <= known[acquire.thread % self.threads]
            if not (met and self.steering.guards(acquire.site, site)):
                continue
            if self._through(acquire, time, thread, seen):
                return True
        return False

    def handed(self, time: int, thread: int, block: int) -> bool:
        """Whether anybody of a block has acquired what a thread did at a time."""
        if block not in self.blocks():
            return False
        return any(self._through(one, time, thread, set()) for one in self._acquired[block])

    def _through(
        self, acquire: Acquire, time: int, thread: int, seen: set[tuple[int, int]]
    ) -> bool:
        """Whether an acquire takes over what a thread did; on through what others acquired."""
        todo = [acquire]
        while todo:
            acquire = todo.pop()
            if (id(acquire.content), acquire.count) in seen:
                continue
            seen.add((id(acquire.content), acquire.count))
            taker = acquire.thread // self.threads
            block = thread // self.threads
            its = acquire.content.by_end.get((thread, time))
            for number, release in (
                *acquire.content.by_block.get(block, ()), *([its] if its else ())
            ):  # fmt: skip
                if number >= acquire.count:
                    continue
                far = self._distance(taker, block)
                if far > acquire.reach:
                    continue
                handed = covers(release, time, thread, far, self.threads)
                if handed and not self._locks.unprotected(acquire, release, time, thread):
                    self.lock = self._locks.held(acquire, release, time, thread)
                    return True
            for number, release in acquire.content.distinct:
                if number >= acquire.count:
                    break
                far = self._distance(taker, release.block)
                if release.fenced[far] <= 0 or far > acquire.reach:
                    continue
                for before in self._acquired.get(release.block, ()):
                    # One fence may complete the acquire and begin the release.
                    at = before.time - 1
                    known = covers(release, at, before.thread, far, self.threads)
                    if known and self.steering.guards(before.site, release.site):
                        todo.append(before)
        return False

    def let_go_unfenced(self, lock: Lock, time: int) -> bool:
        """Whether a thread let go of a lock with no fence after what it did at a time."""
        if self._noted:
            self._catch_up()
        return self._locks.let_go_unfenced(lock, time)
