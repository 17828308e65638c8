"""Asynchronous copies and products: accesses to their bytes while they are in flight.

A ``cp.async`` reads its source at once and writes its destination at any time until a wait for it
(PTX ISA, "Asynchronous Data Movement"). The other race checks see it as two writes, at either end;
this check reports accesses in between. Accesses to other bytes are excluded first by the extents of
the copies, at almost no cost. A bulk copy completes with the phase of the mbarrier at which its
bytes arrive; one that reads shared memory completes when its group has been waited for. A ``wgmma``
reads shared memory until it has been waited for: it counts as two reads, and writes in between are
reported.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import EVERY_LANE, WARP, Addresses, Flat, Geometry, Mask, Rows, as_mask
from ...events import Observer
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import PHASE, Site
from ...memory.storage.word_ops import among, unique
from ..accesses import Race, rows_of
from ..check.detector import RaceCheck
from ..order.mbarrier_phases import barrier_number
from ..report.race_log import READING, SENT, RaceLog
from ..shadow.shadow_memory import Conflict
from .in_flight import TOUCHES, Copy, InFlightAccess, overlapping_lanes, places_of, whole_warps
from .late_waits import LateWaits

_SITES = 2
"""Of a copy in bulk, besides its arrival: what it reads and what it writes."""
UNDER_WAY = ("copy", "transaction", SENT, *READING)
"""How an access races with what is under way: a name for all that the same waits are for."""
_NOBODY = np.zeros((1, 1), bool)
_FINISHED = 32
"""Copies that are done, but not known to all as such, that are kept."""


class AsyncCopyCheck(Observer):
    """Check of the copies of a batch, until a wait for each.

    Args:
        race_log: The race log.
        granule: Bytes of a location.
        race: The other race checks, which receive the completion of a copy as a write.
    """

    def __init__(self, race_log: RaceLog, granule: int, race: RaceCheck) -> None:
        self.race_log, self.granule, self.race = race_log, granule, race
        self.order, self.astray = race.order, LateWaits(race_log)
        self.geometry: Geometry
        self.open: list[Copy] = []
        # Copies done by a wait in the text behind what may touch their bytes; may there be such?
        self.over: list[tuple[Copy, Instruction]] = []
        self.groups: dict[str, Rows]

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry, self.open, self.over = geometry, [], []
        self.groups = {queue: np.zeros((), np.int32) for queue in UNDER_WAY}

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        g, site = self.geometry, event.site
        followed = self.open or self.over or site.asynchronous
        if event.space not in ("shared", "cluster") or not followed:
            return
        if site.operation == PHASE:
            self._arrived(event)
        if not site.asynchronous and self._far((site,), event):
            return
        lanes = rows_of(g, event)
        whole = lanes is g.everyone_on
        if not (whole or lanes.any()):
            return
        low, high = self.race.reaches.of(event)
        for copy in self.open:
            reads = copy.event.site.access == site.access == "load"
            if low < copy.high and copy.low < high and not reads:
                self._check(copy, event, lanes)
        for copy, wait in self.over:
            strays = self.race_log.find_order().wait_follows_access(copy.event.site, site, wait)
            if strays and low < copy.high and copy.low < high:
                self._meet(copy, event)
        if site.asynchronous:
            self._replaced(event, low, high, lanes)
            since = np.array(self.order.now)
            lanes = lanes if whole else lanes.copy()
            copy = Copy(event, lanes, self.groups[site.queue], low, high, since)
            self.open.append(copy)
            self._came_before(copy)

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        if (self.open or self.over) and not self._far(sites, events[0]):
            super().grouped_loads(sites, events)

    def _far(self, sites: tuple[Site, ...], event: AccessEvent) -> bool:
        """Whether accesses cannot overlap any copy, even with inactive lanes included."""
        if isinstance(event.address, LaneAddressList):
            return False
        low, high = self.race.reaches.of_all(sites, event.address)
        copies = self.open + [copy for copy, _ in self.over] if self.over else self.open
        return not any(low < copy.high and copy.low < high for copy in copies)

    def async_group(
        self, lanes: Mask | None, pending: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """See ``Observer``."""
        on = EVERY_LANE if lanes is None else self.geometry.full(lanes)
        if pending is None:
            self.groups[queue] = self.groups[queue] + on
            return
        awaited, everyone = self.groups[queue] - pending, self.geometry.everyone_on
        for copy in self.open:
            if copy.event.site.queue != queue:
                continue
            late = on & (copy.group < awaited)
            copy.awaits(on, pending, self.groups[queue], self.order.now)
            if not late.any():
                continue
            done = copy.lanes & late if late.ndim else copy.lanes
            if done is copy.lanes or done.any():
                if copy.touched:
                    self._complete(copy, done, wait)
                if copy.barrier is not None:  # complete for threads that see the phase's end
                    self.order.now += 1
                    copy.complete(done & (copy.barrier >= 0), self.order.now)
                    done = done & (copy.barrier < 0)
                copy.lanes = _NOBODY if done is copy.lanes else copy.lanes & ~done
                mask = None
                if done is not everyone and not done.all():
                    mask = self.geometry.from_rows(done)
                self.race.access(copy.event._replace(mask=mask, repeated=False))
                if copy.barrier is None and self.astray.any(copy.event.site, wait):
                    over = replace(copy, lanes=done, touched=[], done=self.order.now)
                    self.over = [*self.over[1 - _FINISHED :], (over, wait)]
        self.open = [c for c in self.open if c.lanes is not _NOBODY and c.lanes.any()]

    def copies_arrive(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """See ``Observer``; to threads that wait at the barrier, the copies are written now."""
        on = self.geometry.full(as_mask(lanes))
        at = self.geometry.full(base) + offset
        for copy in self.open:
            if copy.event.site.queue != "copy":
                continue
            which = copy.lanes & on
            copy.arrives(which, barrier_number(np.arange(self.geometry.columns), at))
            mask = self.geometry.from_rows(which)
            self._complete(copy, which)
            self.race.access(copy.event._replace(mask=mask, repeated=False))
            copy.since = np.where(which, self.order.now, copy.since)

    def finish(self) -> None:
        """See ``Observer``; copies without a wait are in flight until the end."""
        for copy in self.open:
            for touch in copy.touched:
                self._log(touch.race, touch.conflict)

    def _complete(self, copy: Copy, done: Rows, wait: Instruction | None = None) -> None:
        """Complete the copies of some lanes; recorded accesses preceded that, or race elsewhere.

        The other race checks treat the completion as a write. They report an access that nothing
        orders with it, whichever came first under this schedule.
        """
        open_touches = []
        for touch in copy.touched:
            completed = done[touch.issuer, touch.column]
            if touch.near and wait is None:  # it arrives: a wait for the phase covers the copy
                completed = np.zeros(len(completed), bool)
            if touch.near:  # behind its wait in the text: then it is a race of two lanes
                is_known = completed & (wait is None or not self._between(touch, wait))
            else:
                known = self.order.happens_before.known_epoch(
                    touch.mine, touch.issuer, touch.column
                )
                is_known = completed & (known >= touch.time)
            self._log(touch.race, touch.conflict.some(is_known))
            if not completed.all():
                open_touches.append(touch.some(~completed))
        copy.touched = open_touches

    def _between(self, touch: InFlightAccess, wait: Instruction) -> bool:
        """Whether a wait lies between a copy and an access to its bytes in program order."""
        return self.race_log.find_order().waits_between(touch.race.other, touch.race.site, wait)

    def _log(self, race: Race, conflict: Conflict) -> None:
        if conflict.place.size:
            ones = np.ones(len(conflict.place), bool)
            self.race_log.add(race, conflict, ones, ~ones)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """See ``Observer``; a lane that observes a complete phase does so for its warp."""
        self.order.now += 1
        on = self.geometry.full(as_mask(lanes))
        numbers = barrier_number(np.arange(on.shape[1]), self.geometry.full(base) + offset)
        clusters = self.order.happens_before.cluster is not None
        few = unique(numbers[on])
        names, columns = set(few.tolist()), np.flatnonzero(on.any(axis=0)).tolist()
        for copy in self.open:  # those that are split off among them
            if names.isdisjoint(copy.barriers) or not copy.over_at(few).any():
                continue
            assert copy.barrier is not None
            for column in columns:
                places = numbers[:, column]
                done = copy.over_at(places[on[:, column]], None if clusters else column)
                mine = copy.lanes & (np.arange(on.shape[1]) == column)
                some = done & mine
                if some.any() and not done[mine].all():  # others' arrive elsewhere, or nowhere
                    self.open.append(copy.split(some[:, column]))
                    continue
                if mine.any() and not (copy.lanes & done & ~mine).any() and done[mine].all():
                    of_copy = among(places, copy.barrier[mine])
                    self._see(copy, column, on[:, column] & of_copy, wait)
                    self._waited(copy, column, on[:, column] & of_copy)
                else:
                    self._see(copy, column, on[:, column] & done.any(), wait)
                    copy.leave(done)
        self._forget()

    def _see(self, copy: Copy, column: int, threads: Flat, wait: Instruction) -> None:
        """Handle threads that learn, for their warps, that a copy is complete.

        Their own recorded accesses preceded the wait. Another lane of the warp may access the bytes
        on either side of the wait; program order decides.
        """
        if not copy.touched:
            return
        warps, remaining = whole_warps(threads), []
        for touch in copy.touched:
            own = (touch.column == column) & threads[touch.mine] & touch.near
            mates = (touch.column == column) & warps[touch.mine] & touch.near
            self._log(touch.race, touch.conflict.some(own))
            remaining.append(touch.some(~own & ~(mates & self._between(touch, wait))))
        copy.touched = [touch for touch in remaining if touch.mine.size]

    def _forget(self) -> None:
        """Stop tracking completed copies; all recorded accesses preceded the completion."""
        for copy in self.open:
            if not copy.lanes.any():
                for touch in copy.touched:
                    known = np.full(len(touch.mine), touch.near)
                    self._log(touch.race, touch.conflict.some(known))
        self.open = [copy for copy in self.open if copy.lanes.any()]

    def _waited(self, copy: Copy, column: int, threads: Flat) -> None:
        """Handle threads of a block that have waited for a copy."""
        if copy.waited is None or copy.known is None:
            copy.waited = np.zeros(copy.lanes.shape, np.int64)
            copy.known = np.zeros(copy.lanes.shape, bool)
        times = copy.waited[:, column]
        times[threads & (times == 0)] = self.order.now
        copy.known[:, column] |= whole_warps(threads)
        if copy.known[:, column].all():
            copy.leave((slice(None), column))

    def _check(self, copy: Copy, event: AccessEvent, lanes: Rows) -> None:
        """Report accesses to a copy's destination by threads that do not know of its completion."""
        if copy.waited is not None and copy.known is not None:
            finished = copy.finished
            for column in np.flatnonzero((lanes & ~copy.known & finished).any(axis=0)).tolist():
                mine = np.flatnonzero(lanes[:, column] & ~copy.known[:, column])
                other = np.flatnonzero(copy.waited[:, column])
                pairs = [a.reshape(-1) for a in np.meshgrid(other, mine, indexing="ij")]
                where = np.full(pairs[0].size, column)
                known = self.order.happens_before.known_epoch(pairs[0], pairs[1], where)
                is_known = known.reshape(len(other), -1) >= copy.waited[other, column][:, None]
                copy.known[mine[is_known.any(axis=0)], column] = True
            lanes = lanes & ~(copy.known & finished)
            if not lanes.any():
                return
            if not isinstance(event.address, LaneAddressList):
                event = event._replace(mask=self.geometry.from_rows(lanes))
        self._meet(copy, event)

    def _replaced(self, event: AccessEvent, low: int, high: int, lanes: Rows) -> None:
        """Report threads that do not know of the completion of an instruction's last copy.

        A new copy to the same bytes begins.
        """
        done = [copy for copy in self.open if copy.waited is not None]
        last = [copy for copy in done if copy.within(event.site.instruction, low, high)]
        for copy in last:
            copy.leave((slice(None), copy.finished & lanes.any(axis=0)))
        for copy in done[:-_FINISHED]:
            copy.leave((slice(None), copy.finished))
        ended = [copy for copy in self.open if copy.ended is not None]
        for copy in ended[:-_FINISHED]:
            copy.leave(copy.waits_ended)
        if last or max(len(done), len(ended)) > _FINISHED:
            self._forget()

    def _arrived(self, event: AccessEvent) -> None:
        """Handle arrivals at mbarriers, which may be bytes of a copy or complete a phase."""
        g, site = self.geometry, event.site
        if site.queue == "transaction" and not isinstance(event.address, LaneAddressList):
            on, at = g.full(as_mask(event.mask)), g.full(event.address) + site.offset
            homes: Rows = np.arange(g.columns)
            if event.columns is not None:
                homes = g.full(event.columns)
            for copy in self.open:
                one = copy.event.site  # whose sites come just before this one
                if one.instruction is site.instruction and 0 < site.number - one.number <= _SITES:
                    copy.arrives(copy.lanes & on, barrier_number(homes, at))
        for arrival in self.order.arrivals(event):
            for copy in self.open:
                if arrival.end is not None and copy.barrier is not None and copy.over is not None:
                    copy.over |= copy.barrier == barrier_number(*arrival.place)

    def _came_before(self, copy: Copy) -> None:
        """Report unordered lanes that accessed a copy's bytes before it began.

        They come after the copy in program order and need not wait for what its lanes waited for.
        Under another schedule they access the bytes while the copy is in flight.
        """
        g, site, shadow = self.geometry, copy.event.site, self.race.shared.shadow
        if shadow is None or site.queue == "transaction" or not self.race_log.groups:
            return
        text = self.race_log.find_order()
        for history, how in shadow.conflicting_histories(site):
            other = history.site
            race = Race(
                other, site, "shared", None, self.granule, how, "lane", g.threads, g.columns
            )
            if (
                other is site
                or not self.race_log.knows(race)
                or text.first(other, site, site.queue)
            ):
                continue
            race = replace(race, other=site, site=other, how=site.queue, distance=site.queue)
            lanes, places = places_of(g, copy.event, self.granule)
            ordered = self.order.happens_before.before(lanes.thread, lanes.column)
            thread = g.blocks[lanes.column] * g.threads + lanes.thread
            for place in places.T if not text.unwaited(site, other) else ():
                for pairs in shadow.races(history, shadow.asked(place, thread), ordered, "lane"):
                    found = replace(pairs, earlier=pairs.later, later=pairs.earlier)
                    mine, issuer = pairs.earlier % g.threads, pairs.later % g.threads
                    column = lanes.column[pairs.lane]
                    touch = InFlightAccess(race, found, self.order.now, mine, issuer, column, True)
                    copy.touched.append(touch)

    def _meet(self, copy: Copy, event: AccessEvent) -> None:
        """Record the accesses to a copy's destination."""
        g = self.geometry
        under_way = copy.event._replace(mask=g.from_rows(copy.lanes))
        lanes, places = places_of(g, event, self.granule)
        others, theirs = places_of(g, under_way, self.granule)
        lane, entry, place = overlapping_lanes(places, theirs)
        if not place.size:
            return
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        their = g.blocks[others.column] * g.threads + others.thread
        how = copy.event.site.queue
        race = Race(
            copy.event.site, event.site, "shared", None, self.granule, how, how,
            g.threads, g.columns,
        )  # fmt: skip
        mine, issuer, column = lanes.thread[lane], others.thread[entry], lanes.column[lane]
        near = mine // WARP == issuer // WARP
        by_one = how == "transaction"  # one thread begins it for all
        # (What is in no order with the begin is a race of the two, seen before or behind it.)
        text = self.race_log.find_order()
        first = race.other is not event.site and text.first(event.site, race.other, race.distance)
        if by_one or first:
            near = mine == issuer
        elif race.other is event.site:  # lanes of one copy race with each other, in step or not
            near &= mine == issuer
        far = others.column[entry] != column
        since = np.broadcast_to(copy.since, (g.threads, g.columns))[issuer, column]
        horizon = self.order.happens_before.known_epoch(issuer, mine, column)
        is_known = horizon >= since
        self.race_log.waits |= copy.waited_short(event.site, horizon, issuer, others.column[entry])
        conflict = Conflict(place, their[entry], thread[lane], lane, entry)
        if copy.done is not None:
            known = horizon >= copy.done
            self._log(race, conflict.some(near & (mine != issuer) & ~known))
            return
        # A thread that did not wait for the copy to begin races with its start: reported as such.
        later = is_known & ~near & ~far & (not by_one)
        if copy.barrier is not None:
            later &= copy.barrier[issuer, column] < 0
        if copy.ended is not None:
            ended = copy.ended[issuer, column]
            completes = (ended > 0) & is_known & (mine != issuer) & (horizon < ended)
            same = mine // WARP == issuer // WARP
            self._log(replace(race, how="race", distance="lane"), conflict.some(completes & same))
            # Another warp may come before the issuer's wait as well as behind it.
            near, is_known, far = (which & (ended == 0) for which in (near, is_known, far))
            is_known |= completes & ~same
        # Another lane comes before the issuer's wait, or behind it: it may be the text that says;
        # likewise for lanes around another lane of their warp that sees an mbarrier's phase.
        beside = near & (mine != issuer)
        if copy.barrier is not None:
            beside |= (near | is_known) & ~far & (copy.barrier[issuer, column] >= 0)
        if not beside.any() or text.unwaited(race.other, event.site):
            beside[:] = False
        self._log(race, conflict.some((near | is_known | far) & ~later & ~beside))
        touch = InFlightAccess(race, conflict, self.order.now, mine, issuer, column)
        for which, is_near in ((later, False), (beside, True)):
            if not which.any():
                continue
            if len(copy.touched) < TOUCHES:
                copy.touched.append(replace(touch, near=is_near).some(which))
            elif is_near:
                self._log(race, conflict.some(which))
