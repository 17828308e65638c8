"""Race detection: which accesses no barrier, warp barrier or release puts in order.

Cheap where nothing is wrong. Shared memory is judged once for each *interval* (what is
accessed between two barriers), and intervals that repeat are remembered; a global array
costs a look only when it is written, unless it is read as well. Where a quick look finds
something suspicious it raises ``LookCloser``, and the launch starts again with the
``Shadow`` table on for that array, which tells who raced with whom.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .access import Event
from .geometry import Geometry
from .intervals import Intervals
from .lanes import SHARED, Lanes, LookCloser, Race, lanes_of
from .memory import Allocation
from .order import Order, Releases
from .shadow import Conflict, Shadow
from .site import Site


class RaceCheck:
    """Observer of accesses, barriers and fences.

    Args:
        closer: Arrays (and ``SHARED``) whose table is on.
        granule: Bytes of a location: 4, or the narrowest access of the program.
        found: Called with each batch of conflicts.
        uninitialised: Called with reads of shared memory that nothing wrote.
        memo: What is known of intervals, for this shape of block and these checks.
    """

    def __init__(
        self,
        closer: set[int],
        granule: int,
        shared_bytes: int,
        found: Callable[[Race], None],
        uninitialised: Callable[[Site, Any, Any, Any], None],
        races: bool,
        initialised: bool,
        memo: dict[Any, Any],
    ) -> None:
        self.closer, self.granule, self.shared_bytes = closer, granule, shared_bytes
        self.found, self.uninitialised = found, uninitialised
        self.races, self.initialised = races, initialised
        self.now = 0
        self.releases = Releases()
        self.shadows: dict[int, Shadow] = {}
        self.touched: dict[int, Any] = {}
        self.uses: dict[int, str] = {}
        self.intervals = Intervals(self, memo)

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = geometry
        self.order = Order(geometry)
        self.shared_shadow: Shadow | None = None
        if SHARED in self.closer and self.shared_bytes:
            places = -(-self.shared_bytes // self.granule) * geometry.columns
            self.shared_shadow = Shadow(geometry.everyone)
            self.written = np.zeros(places, bool)
        self.intervals.start(geometry)

    def finish(self) -> None:
        """The batch is done."""
        if self.shared_shadow is None:
            self.intervals.close()

    # -- events -------------------------------------------------------------------

    def access(self, event: Event) -> None:
        """See ``AccessObserver``."""
        site, space = event.site, event.space
        if not site.counted:
            return
        self.now += 1
        if site.strong and self.races and space in ("shared", "global"):
            self._synchronise(event)
        if space == "shared":
            if self.shared_shadow is None:
                self.intervals.add(site, event.address, event.mask)
            else:
                self._shared(event)
        elif space == "global" and self.races:
            self._global(event)

    def barrier(self, lanes: Any) -> None:
        """A block barrier let lanes go."""
        self.now += 1
        whole = self.order.barrier(lanes, self.now)
        if self.shared_shadow is not None:
            if whole:
                self.shared_shadow.clear()
        elif whole:
            self.intervals.close()
        elif self.shared_bytes:
            raise LookCloser(SHARED)

    def arrive(self, lanes: Any, number: int) -> None:
        """``bar.arrive``."""
        self.now += 1
        self.order.arrive(lanes, number, self.now)
        if self.shared_bytes and self.shared_shadow is None:
            raise LookCloser(SHARED)

    def warp_sync(self, lanes: Any, members: Any) -> None:
        """``bar.warp.sync``; each lane meets those of its member mask."""
        self.now += 1
        self.order.warp_sync(lanes, members, self.now)
        if self.shared_shadow is None:
            self.intervals.add(None, members, lanes)

    def fence(self, lanes: Any, wide: bool) -> None:
        """``membar``, ``fence`` or a releasing access; ``wide``: at device scope or more."""
        self.now += 1
        g = self.geometry
        on = np.broadcast_to(np.bool_(True) if lanes is None else lanes, g.shape)
        thread, column = np.nonzero(on.reshape(g.threads, g.columns))
        self.releases.fence(g.blocks[column] * g.threads + thread, self.now, wide)

    # -- shared memory, with the table ------------------------------------------------

    def _shared(self, event: Event) -> None:
        g, shadow, site = self.geometry, self.shared_shadow, event.site
        assert shadow is not None
        lanes = lanes_of(g, site, event.address, event.mask, g.columns)
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        for part in range(max(1, site.width // self.granule)):
            place = (lanes.address // self.granule + part) * g.columns + lanes.column
            if self.initialised and site.kind != "store":
                missing = ~self.written[place]
                if missing.any():
                    at = np.flatnonzero(missing)
                    self.uninitialised(site, lanes.address[at], lanes.thread[at], lanes.column[at])
            if site.kind != "load":
                self.written[place] = True
            if self.races:
                self._look_up(shadow, event, lanes, place, thread, part)

    def _look_up(
        self, shadow: Shadow, event: Event, lanes: Lanes, place: Any, thread: Any, part: int
    ) -> None:
        g, site = self.geometry, event.site

        def ordered(time: Any, earlier: Any, which: Any) -> Any:
            block, other = np.divmod(earlier, g.threads)
            column = lanes.column[which]
            mine = lanes.thread[which]
            same = block == g.blocks[column]
            out = np.zeros(len(time), bool)
            out[same] = self.order.ordered(time[same], other[same], mine[same], column[same])
            if self.releases.fences:
                met, warp = self.order.met(mine, column)
                for i in np.flatnonzero(~out).tolist():
                    my_block = int(g.blocks[column[i]])
                    out[i] = self.releases.ordered(
                        int(time[i]), int(earlier[i]), int(block[i]),
                        my_block * g.threads + int(mine[i]), my_block, int(met[i]), int(warp[i]),
                    )  # fmt: skip
            return out

        for conflict in shadow.access(site, place, thread, self.now, ordered):
            same_value = None
            if conflict.kind == "waw" and event.values is not None:
                same_value = self._same_value(conflict, event, lanes, part)
            allocation = event.home if isinstance(event.home, Allocation) else None
            self.found(
                Race(
                    conflict, site, event.space, allocation, g.threads, self.granule, same_value,
                    lanes.column[conflict.lane], part,
                )
            )  # fmt: skip

    def _same_value(self, conflict: Conflict, event: Event, lanes: Lanes, part: int) -> Any:
        """Whether both writes of a pair leave the same bits."""
        g, site, home, values = self.geometry, event.site, event.home, event.values
        element = part * self.granule // site.size
        value = np.broadcast_to(values[min(element, len(values) - 1)], g.shape)
        mine = value.reshape(g.threads, g.columns)[
            lanes.thread[conflict.lane], lanes.column[conflict.lane]
        ]
        bits = np.ascontiguousarray(mine).view(f"u{mine.dtype.itemsize}")
        if conflict.same_instruction:
            block, other = np.divmod(conflict.earlier, g.threads)
            column = np.searchsorted(g.blocks, block)
            theirs = value.reshape(g.threads, g.columns)[other, column]
            return bits == np.ascontiguousarray(theirs).view(bits.dtype)
        address = lanes.address[conflict.lane] + element * site.size
        if isinstance(home, Allocation):
            stored = home.view(site.type, 1)[(address - home.base) // site.size]
        else:
            raw = home.flat.view(np.uint8)
            start = (address // 4 * home.count + lanes.column[conflict.lane]) * 4 + address % 4
            picked = [
                raw[start + (i if i < 4 else i - 4 + 4 * home.count)] for i in range(site.size)
            ]
            stored = np.stack(picked, axis=-1).copy().view(bits.dtype)[..., 0]
        return bits == np.ascontiguousarray(stored).view(bits.dtype)

    # -- global memory ---------------------------------------------------------------

    def _global(self, event: Event) -> None:
        site, home, g = event.site, event.home, self.geometry
        number = home.number
        if number not in self.closer:
            self._quick_look(event)
            return
        lanes = lanes_of(g, site, event.address, event.mask, g.columns)
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        shadow = self.shadows.get(number)
        if shadow is None:
            shadow = self.shadows[number] = Shadow(g.everyone)
        places = (lanes.address - home.base) // self.granule
        for part in range(max(1, site.width // self.granule)):
            self._look_up(shadow, event, lanes, places + part, thread, part)

    def _quick_look(self, event: Event) -> None:
        """Only read, only written with one thread an element, or only strong: no race."""
        number, site = event.home.number, event.site
        kind = "strong" if site.strong else "read" if site.kind == "load" else "written"
        if self.uses.setdefault(number, kind) != kind:
            raise LookCloser(number)
        if kind == "written":
            self._first_touch(event)

    def _synchronise(self, event: Event) -> None:
        """A strong access releases and acquires; its lanes take turns.

        Block by block, threads ascending, as ``atomics`` has it.
        """
        g, site = self.geometry, event.site
        if not self.releases.fences:  # nothing is released before a fence
            return
        lanes = lanes_of(g, site, event.address, event.mask, g.columns)
        blocks = g.blocks[lanes.column]
        thread = blocks * g.threads + lanes.thread
        place = lanes.address if event.space == "global" else -1 - (blocks << 32 | lanes.address)
        turn = np.empty(len(thread), np.int64)
        turn[np.lexsort((lanes.thread, lanes.column))] = np.arange(len(thread))
        times = self.now + turn
        if site.kind != "load":  # first, since a lane may acquire from one before it
            met, warp = self.order.met(lanes.thread, lanes.column)
            end = self.now + len(thread)
            self.releases.release(place, thread, blocks, met, warp, times, end)
        if site.kind != "store":
            self.releases.acquire(place, thread, blocks, times)
        self.now += len(thread)

    def _first_touch(self, event: Event) -> None:
        """A write to an array that is only written: is each location written once?"""
        site, home, g = event.site, event.home, self.geometry
        if event.repeated:
            raise LookCloser(home.number)
        lanes = lanes_of(g, site, event.address, event.mask, g.columns)
        touched = self.touched.get(home.number)
        if touched is None:
            touched = self.touched[home.number] = np.zeros(len(home.buffer) // self.granule, bool)
        places = (lanes.address - home.base) // self.granule
        if not _all_different(places, len(touched)):
            raise LookCloser(home.number)
        for part in range(max(1, site.width // self.granule)):
            where = places + part
            if touched[where].any():
                raise LookCloser(home.number)
            touched[where] = True


def _all_different(places: Any, size: int) -> bool:
    if len(places) < 2:
        return True
    if (np.diff(places) > 0).all():
        return True
    mark = np.empty(size, np.int32)
    number = np.arange(len(places), dtype=np.int32)
    mark[places] = number
    return bool((mark[places] == number).all())
