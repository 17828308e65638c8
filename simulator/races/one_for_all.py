"""Blocks that do alike are judged in one of them.

What is asked of shared memory that copies in bulk fill, and ``mbarrier`` hands to and fro, is asked
of each block by itself, and mostly all blocks of a batch do the same. As long as they do, the first
one alone is told to a set of checks of its own. If that finds nothing, there is nothing in any of
them. If it does, or as soon as blocks differ, the checks of the whole batch are told of all that
there was, in its order, and go on: what is reported they alone have seen. So nothing here has to
be right about more than that there is nothing to report.

For the same reason the loads of one ``wgmma`` are told to the first block's checks as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from kernels.ptx.module import Instruction

from ..events import Observer, Stall, Told
from ..geometry import Addresses, Geometry, Lanes, Mask
from ..memory.event import Event, PickedEvent, Spread
from ..memory.site import PHASE, Site
from .book import RaceBook
from .copies import CopyCheck
from .detector import RaceCheck
from .first_block import Apart, FirstBlock, cut
from .suspicion import Suspicion

_MOST = 1 << 28
"""Bytes of what was told that are kept, in case that it has to be told again."""
_AROUND = 256
"""Bytes of an event beside its arrays."""
Make = Callable[[type[RaceCheck], RaceBook, Callable[..., None]], list[Observer]]
"""Makes checks, ``RaceCheck`` first, of such a class; they report to a book, and to what takes
reads of what nothing wrote."""


@dataclass
class _Alike:
    """A batch of which all blocks do the same so far.

    Attributes:
        first: Cuts to the first block; ``checks``: of that; ``told``: them; ``book``: theirs.
        suspicious: Whether they found what does not stand in the book.
        before: What they were told of, as the checks of all blocks are to be.
        nbytes: Of that.
        parts: Loads of one ``wgmma``, not told yet.
    """

    first: FirstBlock
    book: RaceBook
    checks: list[Observer] = field(default_factory=list)
    told: Told = field(default_factory=lambda: Told(()))
    suspicious: bool = False
    before: list[tuple[str, tuple[object, ...], bool]] = field(default_factory=list)
    nbytes: int = 0
    parts: list[Event] = field(default_factory=list)

    def begin(self, make: Make) -> None:
        """The batch begins."""
        self.checks = make(Suspicion, self.book, self.suspect)
        self.told = Told(self.checks)
        for tell in self.told.start:
            tell(self.first.one)

    def suspect(self, *read: object) -> None:
        """Something may have to be reported."""
        self.suspicious = True

    def keep(
        self, name: str, what: tuple[object, ...], arrays: Sequence[object], tiled: bool
    ) -> None:
        """Keep what all are told; ``tiled``: the first block's part of an access in bulk.

        Raises:
            Apart: It would be too much.
        """
        self.nbytes += _AROUND + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        if self.nbytes > _MOST:
            raise Apart
        self.before.append((name, what, tiled))

    def keep_access(self, event: Event, first: Event, tiled: bool) -> None:
        """The same of an access."""
        arrays: list[object] = [*(event.values or ()), *(event.old or ())]
        if tiled:  # what copies in bulk touch is much
            event = event._replace(address=first.address)
        else:
            arrays += event.address if isinstance(event.address, Spread) else [event.address]
        self.keep("access", (event,), arrays, tiled)

    def tell(self, name: str, *what: object) -> bool:
        """Tell the first block's checks; whether there may be anything to report."""
        if self.parts:
            self._tell_parts()
        for tell in getattr(self.told, name):
            tell(*what)
        return self.suspicious or bool(self.book.groups)

    def add_part(self, event: Event) -> bool:
        """A load of a ``wgmma``; likewise."""
        if self.parts and self.parts[0].site.instruction is not event.site.instruction:
            self._tell_parts()
        self.parts.append(event)
        return self.suspicious or bool(self.book.groups)

    def _tell_parts(self) -> None:
        event, self.parts = self.first.together(self.parts), []
        for tell in self.told.access:
            tell(event)
        # What touches a copy under way is kept to be judged when it ends, up to some accesses:
        # by itself each of them counts, so that one for all may be less.
        copies = (check.open for check in self.checks if isinstance(check, CopyCheck))
        self.suspicious |= any(copy.touched for several in copies for copy in several)


class OneForAll(Observer):
    """Tells race checks of a launch, or those of one block as long as all do the same.

    Args:
        make: Makes the checks of one block.
        book: Where ``checks`` report to.
        checks: The whole launch's, ``RaceCheck`` first.
    """

    def __init__(self, make: Make, book: RaceBook, checks: Sequence[Observer]) -> None:
        self.make, self.book, self.checks = make, book, checks
        self.race, self.told = cast(RaceCheck, checks[0]), Told(checks)
        self.geometry: Geometry
        self.alike: _Alike | None = None

    # -- batches ----------------------------------------------------------------------------

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry, self.alike = geometry, None
        if self.book.groups:  # whose pairs are counted in all batches to come
            self._all("start", geometry)
            return
        self.race.start(geometry)
        book = RaceBook(self.book.sites, self.book.find_order, self.book.place, self.book.most)
        self.alike = _Alike(FirstBlock(geometry), book)
        self.alike.begin(self.make)

    def finish(self) -> None:
        """See ``Observer``."""
        if self.alike and self.alike.tell("finish"):
            self._tell_all()
        if self.alike:
            self.race.finish()
            self.race.synchronised |= cast(RaceCheck, self.alike.checks[0]).synchronised
        else:
            self._all("finish")
        self.alike = None

    def end(self) -> None:
        """See ``Observer``."""
        self._all("end")

    def merge(self, other: OneForAll) -> None:
        """See ``Observer``."""
        for mine, theirs in zip(self.checks, other.checks, strict=True):
            mine.merge(theirs)

    # -- all blocks, or one -----------------------------------------------------------------

    def _all(self, name: str, *what: object) -> None:
        for tell in getattr(self.told, name):
            tell(*what)

    def _tell_all(self) -> None:
        """Tell the checks of all blocks what there was; what is to come they are told at once."""
        assert self.alike
        alike, self.alike = self.alike, None
        for check in self.checks[1:]:
            check.start(self.geometry)
        for name, what, tiled in alike.before:
            self._all(name, *(map(alike.first.whole, cast(tuple[Event], what)) if tiled else what))

    def _each(self, name: str, *what: object) -> None:
        """What all blocks do, if they do the same: the first argument says which lanes."""
        if self.alike:
            try:
                mask = cast(Mask | None, what[0])
                first = [
                    cut(one, mask if number else None) if isinstance(one, np.ndarray) else one
                    for number, one in enumerate(what)
                ]
                self.alike.keep(name, what, what, False)
            except Apart:
                self._tell_all()
            else:
                if self.alike.tell(name, *first):
                    self._tell_all()
                return
        self._all(name, *what)

    # -- events -----------------------------------------------------------------------------

    def access(self, event: Event) -> None:
        """See ``Observer``."""
        site, alike = event.site, self.alike
        if alike and event.space not in ("shared", "cluster") and site.operation != PHASE:
            self.race.access(event)  # which asks nothing of the order in a block
            return
        if alike:
            try:
                first, tiled = alike.first.of(event)
                alike.keep_access(event, first, tiled)
            except Apart:
                self._tell_all()
            else:
                part = site.queue == "product" and not isinstance(first.address, Spread)
                if alike.add_part(first) if part else alike.tell("access", first):
                    self._tell_all()
                return
        self._all("access", event)

    def loads(self, sites: tuple[Site, ...], events: Sequence[Event]) -> None:
        """See ``Observer``."""
        one = events[0]
        if self.alike:
            try:
                first, _ = self.alike.first.of(one)
                self.alike.keep("loads", (sites, events), [one.address, one.mask], False)
            except Apart:
                self._tell_all()
            else:
                some = events
                if first.address is not one.address or first.mask is not one.mask:
                    some = [e._replace(address=first.address, mask=first.mask) for e in events]
                if self.alike.tell("loads", sites, some):
                    self._tell_all()
                return
        self._all("loads", sites, events)

    def picked(self, event: PickedEvent) -> None:
        """See ``Observer``."""
        if self.alike and event.space not in ("shared", "cluster"):
            self.race.picked(event)
        elif self.alike:
            self.access(event.full)
        else:
            self._all("picked", event)

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self._each("barrier", lanes, number, warps)

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """See ``Observer``."""
        self._each("arrive", lanes, number)

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """See ``Observer``."""
        self._each("warp_sync", lanes, members)

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """See ``Observer``."""
        self._each("fence", lanes, reach)

    def proxy_fence(self, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self._each("proxy_fence", lanes)

    def copies(
        self, lanes: Mask | None, left: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """See ``Observer``."""
        self._each("copies", lanes, left, queue, reads, wait)

    def copies_arrive(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """See ``Observer``."""
        self._each("copies_arrive", lanes, base, offset)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """See ``Observer``."""
        self._each("phase", lanes, base, offset, wait)

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> None:
        """See ``Observer``."""
        self._each("cluster_arrive", lanes, releases)

    def cluster_wait(self, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self._each("cluster_wait", lanes)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self._all("stuck", stall)
