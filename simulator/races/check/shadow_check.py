"""Full check: accesses against shadow memory."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from ...analysis.influence import ForwardSlices
from ...core.geometry import GROUP, Flat, Geometry, Mask
from ...memory.event import AccessEvent
from ...memory.site import Granules, Site
from ...memory.storage.spaces import Allocation
from ..accesses import SHARED, Accesses, Race
from ..first_of import Firsts
from ..order.happens_before import HappensBefore
from ..order.locks import Lock
from ..order.release_acquire import ReleaseAcquireTracker
from ..order.stale_reads import Reads, Sectors, cached, needed
from ..order.vector_clock import BOTTOM, Ordered, VectorClock
from ..report.pairs import DISTANCES, distances
from ..report.race_log import UNACQUIRED, RaceLog
from ..shadow.access_history import AccessHistory
from ..shadow.conflicts import race_kind
from ..shadow.lookups import Clocks, EqualRows
from ..shadow.pair_limit import PairBound
from ..shadow.shadow_memory import Conflict, ShadowMemory
from ..shadow.stored_values import compare, found_bits, in_steps, other_values, out_of_scope
from .combined_lookup import Locked, all_before
from .lockstep import InStep

_DOUBTS = 100_000
"""Pairs in a lock's order that are looked at again when it is let go."""


class ShadowChecker:
    """Detects races of accesses with earlier ones in shadow memory, location by location.

    Attributes:
        lock_ordered_pairs: Lock, time of the second access, and the pairs that this lock orders; it
            is open whether the lock would also order them the other way.
        is_replay: Whether events arrive later than their accesses took place.
    """

    geometry: Geometry
    happens_before: HappensBefore
    releases: ReleaseAcquireTracker

    def __init__(self, granules: Granules, race_log: RaceLog, steering: ForwardSlices) -> None:
        self.granules, self.race_log, self.steering = granules, race_log, steering
        self.lock_ordered_pairs: list[
            tuple[Lock, int, tuple[Race, Conflict, Flat, Flat, Flat]]
        ] = []
        self._doubted = 0
        self.is_replay = False
        self.in_step = InStep()
        self.first: dict[tuple[int, object], Firsts] = {}  # by array and line
        self.sectors: dict[int, Sectors] = {}
        self.now = 0

    def start(
        self, g: Geometry, happens_before: HappensBefore, releases: ReleaseAcquireTracker
    ) -> None:
        """Begin a batch."""
        self.geometry, self.happens_before, self.releases = g, happens_before, releases

    def check_and_record(
        self,
        shadow: ShadowMemory,
        event: AccessEvent,
        now: int,
        lanes: Accesses,
        place: Flat,
        thread: Flat,
        values: Flat | None,
        again: bool = False,
    ) -> None:
        """Check accesses, one location a lane, against shadow memory, and record them there.

        ``place``: the location of each lane. ``thread``: its global number. ``values``: see
        ``stored_values``. ``again``: the same lanes raced before, except with other stores.
        """
        self.now = now
        if self.releases.acquiring and event.site.access != "load":
            array = event.home.number if event.space == "global" else SHARED
            first = self.first.setdefault((array, event.site.line), Firsts())
            first.add(place * self.geometry.everyone + thread, np.full_like(place, now))
        site, since = event.site, self.happens_before.block_barrier_epoch[lanes.column]
        all_of_them = site, place, thread, now, values, since
        if again and site.access == "load":
            shadow.record(*all_of_them)
            return
        if shadow.newest is not None:
            known = shadow.newest.access(site, place, lanes, now, self.happens_before.known_epoch)
            if site.access == "load" and known.any():
                rest = np.flatnonzero(~known)
                lanes, since = lanes.some(rest), since[rest]
                place, thread = place[rest], thread[rest]
                values = None if values is None else values[rest]
        if len(place):
            self._check(shadow, event, now, lanes, place, thread, values, since, again)
        shadow.record(*all_of_them)

    def _check(
        self,
        shadow: ShadowMemory,
        event: AccessEvent,
        now: int,
        lanes: Accesses,
        place: Flat,
        thread: Flat,
        values: Flat | None,
        since: Flat,
        again: bool,
    ) -> None:
        """Log the races of lanes with recorded accesses, and with each other."""
        site = event.site
        asked = shadow.asked(place, thread)
        locked: list[Locked] = []
        clocks = Clocks()
        together: EqualRows | None = None

        clusters = event.space != "global" and self.happens_before.cluster is not None
        own = event.space == "shared" and self.happens_before.cluster is None
        own = own or bool(shadow.threads <= shadow.block)  # no other block comes here
        met = int(since.min(initial=now)) if own else -1
        rivals = [
            (history, how)
            for history, how in shadow.conflicting_histories(site, clusters, met)
            if not (how == "volatile" and self.polled(site, history.site))
            # Those are a matter of other blocks; or known.
            and not (own and (how in ("scope", "steps") or (again and history.loads)))
        ]
        early: dict[int, list[Locked]] = {}
        if not own and self.releases.acquiring and self.releases.blocks():
            few = itertools.takewhile(lambda rival: not shadow.many(rival[0], place), rivals)
            unknown = [one for one, how in few if not self._known(event, one.site, how)]
            ask = functools.partial(self.ordered, site, lanes=lanes, clocks=clocks)
            early = all_before(unknown, asked, ask)
        for history, how in rivals:
            writes = history.site.strong and not history.loads
            before = self.ordered(site, history.site, lanes, locked, clocks, strong=writes)
            if history.site.queue == "product":
                before = self._by_group(lanes, before)
            far = event.space != "shared" and together is None and bool(self.releases.blocks())
            if far and shadow.many(history, place):
                together = self._equal_rows(site, lanes, place, thread, clocks)

            def races(
                distance: str, bound: PairBound | None = None, history: AccessHistory = history,
                before: Ordered = before, equal_rows: EqualRows | None = together,
            ) -> Iterator[Conflict]:  # fmt: skip
                free = None
                stores = site.access == history.site.access == "store"
                if stores and values is not None and bound and not bound.learnt():
                    free = other_values(history, asked.start, shadow.threads, values)
                return shadow.races(history, asked, before, distance, equal_rows, bound, free)

            one_look = "near" if own else "any" if together is None else ""
            known = not one_look or self._known(event, history.site, how)
            if not known and history.site.whole in early:
                locked += early[history.site.whole]
            elif known or any(True for _ in races(one_look)):  # else one look is enough
                locked.clear()
                self._write_down(event, history.site, how, races, history, values, lanes)
            for lane, earlier, lock, _ in self._all_locked(locked, thread, together):
                for distance, at in distances(earlier, thread[lane], self.geometry.threads):
                    self._doubted += at.size
                    conflict = self._conflict(shadow, history, place, thread, lane[at], earlier[at])
                    race = self._race(event, history.site, how, distance)
                    race.same_execution = history.site is site  # they took turns
                    found = self._compared(event, conflict, history, history.site, values, distance)
                    self.lock_ordered_pairs.append((lock, now, (race, conflict, *found)))
            locked.clear()
        if how := race_kind(site, site, clusters):
            self._write_down(
                event,
                site,
                how,
                lambda distance, bound: shadow.intra_instruction_conflicts(
                    place, thread, distance, bound, values
                ),
                None,
                values,
                lanes,
            )

    def _granule(self, space: str) -> int:
        return self.granules.array if space == "global" else self.granules.shared

    def _equal_rows(
        self, site: Site, lanes: Accesses, place: Flat, thread: Flat, clocks: Clocks
    ) -> EqualRows | None:
        """Return lanes of a block, at one location, with equal clocks of other blocks."""
        if self.happens_before.cluster is not None:
            return None
        number = np.zeros(len(thread), np.int64)
        groups = self._by_clock(site, lanes, np.arange(len(thread)), clocks, needed(site))
        for i, (_, which) in enumerate(groups, 1):
            number[which] = i
        alone = np.flatnonzero(np.isin(thread, list(self.releases.locks.takers)))
        number[alone] = -1 - alone  # a thread with a lock is looked up by itself
        return EqualRows(number, thread // self.geometry.threads, place)

    def _all_locked(
        self, locked: list[Locked], thread: Flat, equal_rows: EqualRows | None
    ) -> Iterator[Locked]:
        """Expand lanes to those that they represent, up to ``_DOUBTS``."""
        for lane, earlier, lock, pair in locked:
            if self._doubted >= _DOUBTS:
                return
            far = earlier // self.geometry.threads != thread[lane] // self.geometry.threads
            far &= equal_rows is not None
            yield lane[~far], earlier[~far], lock, pair[~far]
            for those, member in (
                equal_rows.members(equal_rows.group[lane[far]]) if equal_rows else ()
            ):
                yield member, earlier[far][those], lock, pair[far][those]

    def _conflict(
        self,
        shadow: ShadowMemory,
        history: AccessHistory,
        place: Flat,
        thread: Flat,
        lane: Flat,
        earlier: Flat,
    ) -> Conflict:
        entry = np.searchsorted(history.table.keys, place[lane] * shadow.threads + earlier)
        return Conflict(place[lane], earlier, thread[lane], lane, entry)

    def _race(self, event: AccessEvent, other: Site, how: str, distance: str) -> Race:
        g = self.geometry
        allocation = event.home if isinstance(event.home, Allocation) else None
        space = "shared" if event.space == "cluster" else event.space
        return Race(
            other, event.site, space, allocation, self._granule(space), how, distance,
            g.threads, g.columns, g.blocks if space == "shared" else None,
        )  # fmt: skip

    def polled(self, *sites: Site) -> bool:
        """Whether a ``volatile`` flag is written by one thread and only read by the other."""
        return any(site.access == "load" and self.steering.is_polled(site) for site in sites)

    def _known(self, event: AccessEvent, other: Site, how: str) -> bool:
        """Whether a race of these sites has been logged already."""
        return any(self.race_log.knows(self._race(event, other, how, far)) for far in DISTANCES)

    def _write_down(
        self, event: AccessEvent, other: Site, how: str,
        races: Callable[[str, PairBound | None], Iterator[Conflict]],
        history: AccessHistory | None, values: Flat | None, lanes: Accesses,
    ) -> None:  # fmt: skip
        site = event.site
        for distance in DISTANCES:
            per_block = event.space == "shared" and self.happens_before.cluster is None
            if (distance == "block" and per_block) or (how == "scope" and distance != "block"):
                continue
            race = self._race(event, other, how, distance)
            for conflict in races(distance, self.race_log.bound(race)):
                if how == "scope":
                    conflict = conflict.some(out_of_scope(self.geometry, conflict, site, other))
                elif how == "steps":
                    home = lanes.home[conflict.lane]
                    conflict = conflict.some(in_steps(self.geometry, conflict, home, site, other))
                found = self._compared(event, conflict, history, other, values, distance)
                for race.same_execution, some in self.in_step.unordered_lanes(
                    site, other, conflict, history
                ):
                    behind = self._behind(race, conflict, history, lanes)
                    for race.behind in (False, True) if behind.any() else (False,):
                        at = np.flatnonzero(some & (behind == race.behind))
                        for one, part in self._by_looks(race, conflict.some(at), history, lanes):
                            if part.any():
                                remaining = conflict.some(at[part])
                                self.race_log.add(
                                    one, remaining, *(column[..., at[part]] for column in found)
                                )
                    race.behind = False

    def _compared(
        self, event: AccessEvent, conflict: Conflict, history: AccessHistory | None, other: Site,
        values: Flat | None, distance: str,
    ) -> tuple[Flat, Flat, Flat]:  # fmt: skip
        """Return what ``compare`` does, with the bits that a load finds, if it executes now."""
        unequal, silent, bits = compare(conflict, history, event.site, other, values, distance)
        if not self.is_replay:
            granule = self._granule(event.space)
            found = found_bits(event, granule, self.geometry.columns, conflict.place)
            bits[1] = bits[1] if found is None else found
        return unequal, silent, bits

    def _behind(
        self, race: Race, conflict: Conflict, history: AccessHistory | None, lanes: Accesses
    ) -> Mask:
        """Return the reads that follow an earlier write of the same thread to the same location."""
        site, other, out = race.site, race.other, np.zeros(len(conflict.lane), bool)
        late = site.access == "load"
        if history is None or late == (other.access == "load"):
            return out
        array = race.allocation.number if race.allocation else SHARED
        first = self.first.get((array, (other if late else site).line))
        if first is None:
            return out
        writer = conflict.earlier if late else conflict.later
        began = first.of(conflict.place * self.geometry.everyone + writer)
        if not late:
            out[:] = (began >= 0) & (began < history.table.times[conflict.entry])
            return out
        at = np.flatnonzero(began >= 0)
        ordered = self.ordered(site, other, lanes, [], Clocks())
        out[at] = ordered(began[at], writer[at], conflict.lane[at])
        return out

    def _by_looks(
        self, race: Race, conflict: Conflict, history: AccessHistory | None, lanes: Accesses
    ) -> Iterator[tuple[Race, Mask]]:
        """Separate races that a fence after a relaxed read would order from the others.

        The former name the sectors that L1 would have to contain (``looks``).
        """
        one, other, every = race.site, race.other, np.ones(len(conflict.lane), bool)
        read = next((s for s in (one, other) if s.access == "load" and not s.strong), None)
        blocks = self.releases.blocks() if self.releases.acquiring else ()
        copied = one.asynchronous or other.asynchronous
        if race.how != "race" or history is None or read is None or copied or not blocks:
            yield race, every
            return
        times, g = history.table.times[conflict.entry], self.geometry
        rest = every
        for reads in (Reads.MET, Reads.ALL) if len(every) else ():
            before = self.ordered(one, other, lanes, [], Clocks(), reads)
            found = np.zeros_like(rest)
            found[rest] = before(times[rest], conflict.earlier[rest], conflict.lane[rest])
            rest = rest & ~found
            if not found.any():
                continue
            thread = conflict.later if read is one else conflict.earlier
            sectors = self.sectors.get(race.allocation.number) if race.allocation else None
            far = found & (conflict.later // g.threads != conflict.earlier // g.threads)
            loaded = None
            if sectors is not None and cached(read) and far.any():
                known, block = self.looks(thread[far]), thread[far] // g.threads
                loaded = sectors.asked(conflict.place[far], block, known)
            met = reads is Reads.MET
            yield dataclasses.replace(race, how=UNACQUIRED, met=met, loaded=loaded), found
        yield race, rest

    def looks(self, thread: Flat) -> Flat:
        """Return how many relaxed reads of their block threads (global numbers) know of."""
        g = self.geometry

        def horizon(other: Flat, mine: Flat) -> Flat:
            block, lane = np.divmod(mine, g.threads)
            return self.happens_before.known_epoch_in_block(
                other, lane, np.searchsorted(g.blocks, block)
            )

        return self.releases.looks.known(thread, horizon, self.now)

    def ordered(
        self, site: Site, other: Site, lanes: Accesses, locked: list[Locked], clocks: Clocks,
        reads: Reads | None = None, strong: bool = True,
    ) -> Ordered:  # fmt: skip
        """Return a function: which accesses of ``other`` happen before lanes of ``site``.

        ``locked``: receives lock-ordered pairs. ``reads``: strong reads that count; default: those
        that each access needs. ``strong``: see ``VectorClock.happens_after``.
        """
        g, releases = self.geometry, self.releases
        mine = needed(site) if reads is None else reads
        met = (needed(other) if reads is None else reads) >= Reads.MET

        def ordered(time: Flat, earlier: Flat, which: Flat) -> Mask:
            column, lane = lanes.column[which], lanes.thread[which]
            own = g.blocks[column]
            out = self.happens_before.happens_before_any_block(time, earlier, lane, column)
            if not releases.acquiring or out.all() or not releases.guards_of(site):
                return out
            those = np.flatnonzero(~out)
            asking = which[those]
            each, place = np.unique(asking, return_inverse=True)
            for clock, lots in self._by_clock(site, lanes, each, clocks, mine):
                at = those[lots[place]]
                known = clock.happens_after(time[at], earlier[at], g.threads, strong)
                out[at] = known
                if not clock.lock_clocks or known.all():
                    continue
                at = at[~known]
                who = own[at] * g.threads + lane[at]
                out[at], given = releases.locks.ordered(clock, who, time[at], earlier[at], met)
                for some, lock in given if self._doubted < _DOUBTS else ():
                    locked.append((which[at[some]], earlier[at[some]], lock, at[some]))
            return out

        return ordered

    def _by_clock(
        self, site: Site, lanes: Accesses, asking: Flat, clocks: Clocks, reads: Reads
    ) -> Iterator[tuple[VectorClock, Mask]]:
        """Yield the clocks that lanes' threads have acquired, with the lanes of each."""
        missing = clocks.missing(asking, len(lanes.thread))
        if missing.size:
            g, happens_before, blocks = self.geometry, self.happens_before, self.releases.blocks()
            lane, column = lanes.thread[missing], lanes.column[missing]
            columns = (
                missing,
                lane,
                column,
                g.blocks[column],
                *happens_before.last_barrier_epochs(lane, column),
            )
            rows = zip(*(c.tolist() for c in columns), strict=True)
            for i, me, at, block, met, warp in rows:
                asker = block * g.threads + me
                clock = clocks.of.get(asker) if block in blocks else BOTTOM
                if clock is None:
                    known = (
                        happens_before.known(me, at)
                        if happens_before.has_partial_barriers
                        else None
                    )
                    clock = self.releases.known(site, asker, met, warp, known, reads)
                clocks.add(i, asker, clock)
        yield from clocks.groups(asking)

    def _by_group(self, lanes: Accesses, ordered: Ordered) -> Ordered:
        """Extend ``ordered`` to reads of a ``wgmma``, an operation of its whole warpgroup.

        A thread of the warpgroup that has waited for it represents all ("wgmma.wait_group": the
        groups that are waited for are the warpgroup's), as in CUTLASS. A lane's own wait is checked
        in ``async_copies.py``.
        """
        g = self.geometry

        def together(time: Flat, earlier: Flat, which: Flat) -> Mask:
            out = ordered(time, earlier, which)
            rest = np.flatnonzero(~out)
            (block, other), lane = np.divmod(earlier[rest], g.threads), which[rest]
            mine, column = lanes.thread[lane], lanes.column[lane]
            own = (block == g.blocks[column]) & (mine // GROUP == other // GROUP)
            known = self.happens_before.known_epoch_of_warpgroup(other, mine, column)
            out[rest] = own | (time[rest] <= known)
            return out

        return together

    def resolve_lock_ordered_pairs(self) -> None:
        """At the end of the launch, log the lock-ordered pairs that race in the other order."""
        for lock, time, raced in self.lock_ordered_pairs:
            race = raced[0]
            if self.releases.doubtful(lock, time, race.other, race.site):
                self.race_log.add(*raced)
        for group in self.race_log.groups.values():
            group.fresh &= not any(loaded.is_valid() for loaded in group.loaded)
            group.loaded = []
