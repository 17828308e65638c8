"""Bulk copies out of shared memory: accesses to their destination before it is written.

``cp.async.bulk``, ``cp.reduce.async.bulk`` and tensor copies write global memory at any time until
a ``cp.async.bulk.wait_group`` of their thread; with ``.read`` that waits for the source only (PTX
ISA, "cp.async.bulk.wait_group"). This check reports accesses that are ordered after the copy's
start but not after such a wait. Accesses that are not ordered after the start are ordinary races
with a write, which the other checks report.
"""

from dataclasses import replace

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import WARP, Flat, Geometry, Mask, Rows, as_mask
from ...events import Observer
from ...memory.event import AccessEvent
from ...memory.site import Site
from ...memory.storage.spaces import Allocation
from ...memory.storage.word_ops import unique
from ..accesses import Accesses, Race, lanes_of
from ..check.detector import RaceCheck
from ..report.race_log import SENT, RaceLog
from ..shadow.conflicts import race_kind
from ..shadow.lookups import Clocks
from ..shadow.shadow_memory import Conflict
from .in_flight import TOUCHES, InFlightAccess

_THREAD, _COLUMN, _SITE, _GROUP, _BEGUN, _DONE, _WAIT = range(7)
"""Rows of a record of a lane's copy: its thread, column, site, group, times and wait."""

_LAYERS = 8
"""Copies to one location that are followed: those whose completion some thread may not know."""


def sends(site: Site) -> bool:
    """Whether a site is the destination of a bulk copy out of shared memory."""
    return site.bulk is not None and site.queue == "bulk"


class BulkStoreCheck(Observer):
    """Check of the destinations of a batch's copies, until the completion is known.

    Args:
        race_log: The race log.
        granule: Bytes of a location.
        race: The other race checks, which have the happens-before order.
    """

    def __init__(self, race_log: RaceLog, granule: int, race: RaceCheck) -> None:
        self.race_log, self.granule, self.race = race_log, granule, race
        self.order = race.order
        self.geometry: Geometry
        self.groups: Rows

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry
        self.groups = np.zeros((geometry.threads, geometry.columns), np.int64)
        self.wait_times = np.zeros((_WAIT + 1, 64), np.int64)
        self.count, self.waits = 0, list[Instruction]()
        self.touched: list[
            InFlightAccess
        ] = []  # by lanes of the warps; the issuers are copies' numbers
        # Of each array that copies write: a copy to write each location, or -1; in layers, for
        # there are several where somebody does not know yet that one before is done.
        self.last: dict[int, list[Flat]] = {}

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        home, site = event.home, event.site
        if event.space != "global" or not isinstance(home, Allocation) or not site.counted:
            return
        last, sending = self.last.get(home.number), sends(site)
        if last is None and not sending:
            return
        lanes = lanes_of(self.geometry, event)
        parts = np.arange(max(1, site.nbytes // self.granule))
        places: Rows = ((lanes.address - home.base) // self.granule)[:, None] + parts
        if last is None:
            last = self.last[home.number] = [self._nobody(home)]
        stack = [layer[places] for layer in last]
        for copies in stack:
            lane, part = np.nonzero((copies >= 0) & ~self._replaced(site, lanes, copies, stack))
            if lane.size:
                place = places[lane, part]
                self._check(event, lanes, lane, place, copies[lane, part])
        if sending:
            numbers = np.broadcast_to(self._begin(site, lanes)[:, None], places.shape)
            self._keep(home, places.reshape(-1), numbers.reshape(-1))
            self._came_before(event, lanes, places, numbers[:, 0])

    def _replaced(self, site: Site, lanes: Accesses, copies: Rows, stack: list[Rows]) -> Mask:
        """Whether a later copy of the same thread is known at each location.

        Such a copy completes together with the earlier one.
        """
        out = np.zeros(copies.shape, bool)
        for others in stack if len(stack) > 1 else ():
            one, other = self.wait_times[:, copies], self.wait_times[:, others]
            same = (one[[_THREAD, _COLUMN]] == other[[_THREAD, _COLUMN]]).all(axis=0)
            later = (copies >= 0) & (others >= 0) & same & (one[_BEGUN] < other[_BEGUN])
            lane, part = np.nonzero(later)
            if lane.size:
                _, _, knows = self._knows(site, lanes, lane, others[lane, part], _BEGUN)
                out[lane, part] |= knows
        return out

    def _knows(
        self, site: Site, lanes: Accesses, lane: Flat, copies: Flat, what: int
    ) -> tuple[Flat, Flat, Mask]:
        """Return the threads of copies and of lanes, and which lanes know of an event of the copy.

        ``what``: the event, such as the copy's start. Threads are global numbers.
        """
        g, found = self.geometry, self.wait_times[:, copies]
        earlier = g.blocks[found[_COLUMN]] * g.threads + found[_THREAD]
        mine = g.blocks[lanes.column[lane]] * g.threads + lanes.thread[lane]
        ordered = self.race.shadow_checker.ordered(site, site, lanes, [], Clocks())
        return earlier, mine, (earlier == mine) | ordered(found[what], earlier, lane)

    def _nobody(self, home: Allocation) -> Flat:
        return np.full(len(home.buffer) // self.granule, -1, np.int32)

    def _keep(self, home: Allocation, place: Flat, number: Flat) -> None:
        """Record copies as the latest of their threads at their locations."""
        layers = self.last[home.number]
        newest = np.full(len(place), -1, np.int64)  # that all know of, of each one's thread
        for layer in layers:
            there, same, everybody = self._others(layer[place], number)
            known = same & (there[_BEGUN] <= everybody)
            newest = np.maximum(newest, np.where(known, there[_BEGUN], -1))
        for level in range(2 * _LAYERS):
            if level == len(layers) < _LAYERS:
                layers.append(self._nobody(home))
            layer = layers[level % _LAYERS]
            old = layer[place]
            there, same, everybody = self._others(old, number)
            # Threads that have not acquired a copy's completion race with it, but not with the
            # next copy of its thread, which completes no sooner.
            done = (there[_DONE] > 0) & (there[_DONE] <= everybody)
            free = (old < 0) | done | same & (there[_BEGUN] < newest)
            if level >= _LAYERS:  # there is no room but where somebody has waited
                free |= there[_DONE] > 0
            layer[place[free]] = number[free]
            is_other = layer[place] != number
            place, number, newest = place[is_other], number[is_other], newest[is_other]
            if not place.size:
                return

    def _others(self, old: Flat, number: Flat) -> tuple[Rows, Mask, Flat]:
        """Return copies, a mask of those by other threads, and the epochs known to all."""
        there, mine = self.wait_times[:, old], self.wait_times[:, number]
        same = (old >= 0) & (there[[_THREAD, _COLUMN]] == mine[[_THREAD, _COLUMN]]).all(axis=0)
        return there, same, self.order.happens_before.block_barrier_epoch[there[_COLUMN]]

    def async_group(
        self, lanes: Mask | None, pending: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """See ``Observer``."""
        if queue != "bulk" or reads:
            return
        on = self.geometry.full(as_mask(lanes))
        if pending is None:
            self.groups += on
            return
        self.order.now += 1
        wait_times = self.wait_times[:, : self.count]
        who = wait_times[_THREAD], wait_times[_COLUMN]
        done = (
            on[who] & (wait_times[_GROUP] < self.groups[who] - pending) & (wait_times[_DONE] == 0)
        )
        wait_times[_DONE, done] = self.order.now
        if done.any():
            self.waits += [wait] if wait not in self.waits else []
            wait_times[_WAIT, done] = self.waits.index(wait)
        text, left_over = self.race_log.find_order(), []
        for touch in self.touched:
            completed = done[touch.issuer]
            if not text.waits_between(touch.race.other, touch.race.site, wait):
                self._log(touch.race, touch.conflict.some(completed))
            if not completed.all():
                left_over.append(touch.some(~completed))
        self.touched = left_over

    def finish(self) -> None:
        """See ``Observer``; copies without a wait are in flight until the end."""
        for touch in self.touched:
            self._log(touch.race, touch.conflict)

    def _came_before(
        self, event: AccessEvent, lanes: Accesses, places: Rows, numbers: Flat
    ) -> None:
        """Report unordered lanes that accessed a copy's destination before it began.

        They come after the copy in program order; another schedule has them while it is in flight.
        """
        g, site, home = self.geometry, event.site, event.home
        shadow, text = self.race.shadows.get(home.number), self.race_log.find_order()
        if shadow is None:
            return
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        ordered = self.race.shadow_checker.ordered(site, site, lanes, [], Clocks())
        for history, how in shadow.conflicting_histories(site):
            other = history.site
            known = self.race_log.knows(self._race(event, other, site, how, "lane"))
            if not known or text.first(other, site, SENT):
                continue
            race = self._race(event, site, other, SENT, SENT)
            for place in places.T:
                asked = shadow.asked(place, thread)
                for pairs in shadow.races(history, asked, ordered, "lane"):
                    found = replace(pairs, earlier=pairs.later, later=pairs.earlier)
                    self._beside(race, found, numbers[pairs.lane])

    def _beside(self, race: Race, conflict: Conflict, copies: Flat) -> None:
        """Report a lane that may come on either side of another's wait, by program order."""
        unwaited = self.race_log.find_order().unwaited(race.other, race.site)
        if unwaited or len(self.touched) >= TOUCHES:
            self._log(race, conflict)
        elif conflict.place.size:
            who = conflict.later % self.geometry.threads
            self.touched.append(InFlightAccess(race, conflict, 0, who, copies, copies, near=True))

    def _begin(self, site: Site, lanes: Accesses) -> Flat:
        """Record the start of lanes' copies; return the copy number of each element."""
        threads = self.geometry.threads
        number = lanes.column * threads + lanes.thread  # all elements of a lane, then the next
        starts = np.diff(number, prepend=-1) != 0
        who = number[starts]
        column, thread = np.divmod(who, threads)
        first, self.count = self.count, self.count + len(who)
        if self.count > self.wait_times.shape[1]:
            more = max(self.count, 2 * self.wait_times.shape[1]) - self.wait_times.shape[1]
            self.wait_times = np.pad(self.wait_times, ((0, 0), (0, more)))
        new = self.wait_times[:, first : self.count]
        new[_THREAD], new[_COLUMN], new[_SITE] = thread, column, site.number
        new[_GROUP], new[_BEGUN], new[_DONE] = self.groups[thread, column], self.order.now, 0
        numbers: Flat = first - 1 + np.cumsum(starts)
        return numbers

    def _check(
        self, event: AccessEvent, lanes: Accesses, lane: Flat, place: Flat, copies: Flat
    ) -> None:
        """Report lanes that know of a copy to their location, and not of its completion."""
        g, site, order = self.geometry, event.site, self.race_log.find_order()
        found = self.wait_times[:, copies]
        waited = found[_DONE] > 0
        earlier, mine, knows = self._knows(site, lanes, lane, copies, _BEGUN)
        late = np.flatnonzero(~(waited & self._knows(site, lanes, lane, copies, _DONE)[2]))
        near = earlier // g.threads == mine // g.threads
        near &= found[_THREAD] // WARP == lanes.thread[lane] // WARP
        for number in unique(found[_SITE, late]).tolist():
            other = self.race_log.sites[number]
            if not (how := race_kind(other, site)):
                continue
            # Lanes of a warp that nothing orders: those of a later instruction come later.
            after = near & (not order.first(site, other, SENT))
            at = late[(found[_SITE, late] == number) & (knows | after)[late]]
            conflict = Conflict(place, earlier, mine, lane, copies)
            # Another warp may come before the wait as well as behind it; a warp's lanes, in step.
            waits_between = [order.waits_between(other, site, wait) for wait in self.waits]
            between = waited[at] & np.array([*waits_between, False])[found[_WAIT, at]]
            behind, others = between & near[at], earlier[at] != mine[at]
            beside = near[at] & others & ~waited[at]
            race = self._race(event, other, site, SENT, SENT)
            self._log(race, conflict.some(at[~behind & ~beside]))
            self._beside(race, conflict.some(at[beside]), copies[at[beside]])
            race = self._race(event, other, site, how, "lane")
            self._log(race, conflict.some(at[behind]))

    def _race(self, event: AccessEvent, one: Site, two: Site, how: str, distance: str) -> Race:
        g = self.geometry
        return Race(
            one, two, "global", event.home, self.granule, how, distance, g.threads, g.columns
        )

    def _log(self, race: Race, conflict: Conflict) -> None:
        if not conflict.place.size or (race.how == "scope" and race.distance != "block"):
            return
        ones = np.ones(len(conflict.place), bool)
        self.race_log.add(race, conflict, ones, ~ones)
