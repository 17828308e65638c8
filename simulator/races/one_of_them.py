"""The first of blocks that all do the same, and the checks that look at it alone.

At first they only have to suspect (``Suspicion``); if they do, exact ones are told of what there
was. A read and a write that race in the first block do so in each: the same threads of it, at the
same places of its memory. Of two writes that is not so, as the values may be the same in one block
and others in another; nor is it of reads of what nothing wrote, which somebody else reports.

As the first checks only suspect, the loads of one ``wgmma`` are told to them as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..events import Observer, Told
from ..geometry import Geometry
from ..memory.event import Event, Spread
from .book import RaceBook
from .copies import CopyCheck
from .detector import RaceCheck
from .first_block import Apart, FirstBlock
from .suspicion import Suspicion

_MOST = 1 << 28
"""Bytes of what was told that are kept, in case that it has to be told again."""
_AROUND = 256
"""Bytes of an event beside its arrays."""
Make = Callable[[type[RaceCheck], RaceBook, Callable[..., None]], list[Observer]]
"""Makes checks, ``RaceCheck`` first, of such a class; they report to a book, and to what takes
reads of what nothing wrote."""


class _Told(NamedTuple):
    """What observers are told, with the event's name.

    Attributes:
        what: As those of all blocks are; ``first``: as those of the first one.
        tiled: Whether ``what`` is the first block's part of an access in bulk.
    """

    name: str
    what: tuple[object, ...]
    tiled: bool
    first: Sequence[object]


class OneOfThem:
    """A batch of which all blocks do the same so far.

    Args:
        make: Makes the checks.
        known: Where races of earlier batches are written down: exact checks at once.

    Attributes:
        first: Cuts to the first block; ``checks``: of that.
        before: What they were told of.
    """

    def __init__(self, make: Make, geometry: Geometry, known: RaceBook) -> None:
        self.first, self._make, self._geometry = FirstBlock(geometry), make, geometry
        self.before: list[_Told] = []
        self._nbytes = 0
        self._parts: list[Event] = []
        self._empty = known.like
        self._exact = bool(known.groups)
        self._begin()

    def _begin(self) -> None:
        self._suspicious, self._book = False, self._empty()
        self.checks = self._make(RaceCheck if self._exact else Suspicion, self._book, self._suspect)
        self._told = Told(self.checks)
        for tell in self._told.start:
            tell(self.first.one)

    def _suspect(self, *read: object) -> None:
        """Something may have to be reported that does not stand in the book."""
        self._suspicious = True

    def keep(
        self, name: str, what: tuple[object, ...], first: Sequence[object],
        arrays: Sequence[object], tiled: bool,
    ) -> None:  # fmt: skip
        """Keep what all are told; ``tiled``: the first block's part of an access in bulk.

        Raises:
            Apart: It would be too much.
        """
        self._nbytes += _AROUND + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        if self._nbytes > _MOST:
            raise Apart
        self.before.append(_Told(name, what, tiled, first))

    def keep_access(self, event: Event, first: Event, tiled: bool) -> None:
        """The same of an access."""
        arrays: list[object] = [*(event.values or ()), *(event.old or ())]
        if tiled:  # what copies in bulk touch is much
            event = event._replace(address=first.address)
        else:
            arrays += event.address if isinstance(event.address, Spread) else [event.address]
        self.keep("access", (event,), (first,), arrays, tiled)

    def tell(self, name: str, *what: object) -> bool:
        """Tell the checks what was kept; whether those of all blocks have to be told."""
        if self._parts:
            self._tell_parts()
        for tell in getattr(self._told, name):
            tell(*what)
        return self._closer(name)

    def access(self, event: Event) -> bool:
        """An access; likewise."""
        part = event.site.queue == "product" and not isinstance(event.address, Spread)
        if self._exact or not part:
            return self.tell("access", event)
        if self._parts and self._parts[0].site.instruction is not event.site.instruction:
            self._tell_parts()
        self._parts.append(event)
        return self._closer()

    def _tell_parts(self) -> None:
        event, self._parts = self.first.together(self._parts), []
        for tell in self._told.access:
            tell(event)
        # What touches a copy under way is kept to be judged when it ends, up to some accesses:
        # by itself each of them counts, so that one for all may be less.
        copies = (check.open for check in self.checks if isinstance(check, CopyCheck))
        self._suspicious |= any(copy.touched for several in copies for copy in several)

    def _closer(self, name: str = "") -> bool:
        """Look closely where there is a suspicion; whether one block is not enough."""
        if not self._exact and (self._suspicious or self._book.groups):
            self._exact, self._parts = True, []
            self._begin()
            for told in self.before:
                for tell in getattr(self._told, told.name):
                    tell(*told.first)
            if name == "finish":
                for tell in self._told.finish:
                    tell()
        return self._suspicious or not all(g.everywhere for g in self._book.groups.values())

    def of_all(self, book: RaceBook) -> None:
        """Write down that what was found is so in each block."""
        g = self._geometry
        for group in self._book.groups.values():
            group.spread(g.blocks - g.blocks[0])
        book.merge(self._book)
