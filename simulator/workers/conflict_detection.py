"""Conflict detection between shards, as in speculative parallelisation.

Each process executes its blocks on global memory as the host provided it, or as others are
modifying it. The result equals a serial one if no block accesses what a block of another shard
modified. Integer sums without a used result may overlap, because their order is not observable. All
other overlaps, including races, are left to one process, whose report describes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ..compile.program import Program
from ..core.geometry import Flat
from ..events import Observer, Stall
from ..isa import DTYPES
from ..isa.decoded import roles
from ..memory.event import AccessEvent, CompactAccessEvent, LaneAddressList
from ..memory.site import Site
from ..memory.storage.spaces import Allocation
from ..races.accesses import PrecisionPlan
from ..races.shadow.conflicts import WRITTEN, use
from .access_bitmap import Bits, Marks, places

_SUMS = {"add": np.add, "xor": np.bitwise_xor, "and": np.bitwise_and, "or": np.bitwise_or}
_PICKS = {"min": np.minimum, "max": np.maximum}
_KINDS = [(how, f"b{bits}") for how in _SUMS for bits in (32, 64)]
_KINDS += [(how, f"{sign}{bits}") for how in _PICKS for sign in "su" for bits in (32, 64)]
"""Atomics whose order leaves no trace; a location's mark is the place in here, from 1 on."""
MIXED = "it has few batches, and in these the lanes of a block depend on other blocks"
STOPPED = "some of its threads cannot go on"
Sum = tuple[int, Flat, Flat]
"""Atomics of one kind: the kind, elements by number, and what to add to each (or to hold to it)."""


class SerialFallback(Exception):
    """The launch has to run in one process; the message gives the reason."""


class RetrySharded(Exception):
    """The launch has to be sharded again with more bitmaps.

    ``numbers``: arrays that are read and written, whose reads have to be marked.
    """

    def __init__(self, numbers: Collection[int] = ()) -> None:
        super().__init__(numbers)
        self.numbers = numbers


def watched(
    checks: Collection[str], precision: PrecisionPlan, direct: bool
) -> PrecisionPlan | None:
    """Return the plan of arrays that the race check does not cover across processes.

    For all other arrays it reports stores of two processes to one location itself. ``None``: it
    covers none.
    """
    return precision if direct and "races" in checks else None


class Overlap(Observer):
    """Records accesses to writable arrays; ``granule``: bytes of a location.

    ``both``: numbers of arrays that are read and written; reads of others are not marked. ``cut``:
    whether batches differ from those of one process. ``precision``: see ``watched``.

    Attributes:
        loaded: Numbers of the other arrays that are read.
        stopped: Whether some threads stalled.
    """

    def __init__(
        self, program: Program, granule: int, both: Collection[int], cut: bool,
        precision: PrecisionPlan | None = None,
    ) -> None:  # fmt: skip
        self._kinds = program.analysis(Sums).kinds
        self.both, self.loaded = both, set[int]()
        self.granule, self.stopped, self.cut, self._precision = granule, False, cut, precision
        self.marks: dict[int, Marks] = {}
        self._bits: dict[int, Bits] = {}  # in the end, of all processes

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_bits": self._packed(), "marks": {}, "_precision": None}

    def _packed(self) -> dict[int, Bits]:
        """Return the packed bitmaps, at the end."""
        self._bits.update({number: marks.bits() for number, marks in self.marks.items()})
        self.marks = {}
        return self._bits

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``; the accessing lane is irrelevant."""
        self.access(event)

    def access(self, event: AccessEvent | CompactAccessEvent) -> None:
        """See ``Observer``."""
        home, site = event.home, event.site
        if event.space != "global" or event.repeated or not home.writable:
            return
        if site.access == "load" and home.number not in self.both:
            self.loaded.add(home.number)
            return
        plain = site.access == "store" and site.counted and use(site) == WRITTEN
        if plain and self._precision is not None and home.number not in self._precision:
            return
        marks = self.marks.get(home.number)
        if marks is None:
            marks = self.marks[home.number] = Marks(len(home.buffer) // self.granule)
        kind = self._kinds[site.number] if home.missing is None else 0
        chunk = min(max(site.nbytes // self.granule, 1), 8)
        at = self._places(event, home, chunk)
        for part in range(max(site.nbytes // self.granule // chunk, 1)):
            if kind:
                summed = marks.summed.view(f"u{chunk}")
                value = summed.dtype.type(int.from_bytes(bytes([kind] * chunk), "little"))
                old = summed[at]
                if ((old != 0) & (old != value)).any():  # the order of several kinds does matter
                    marks.written.view(f"u{chunk}")[at] = _ones(chunk)
                summed[at] = value
                continue
            if site.access != "store":
                marks.read.view(f"u{chunk}")[at + part] = _ones(chunk)
            if site.access != "load":
                marks.written.view(f"u{chunk}")[at + part] = _ones(chunk)

    def _places(
        self, event: AccessEvent | CompactAccessEvent, home: Allocation, chunk: int
    ) -> Flat:
        """Return the lanes' places in an array, in units of ``chunk`` locations."""
        spread = isinstance(event.address, LaneAddressList)
        address = (
            event.address.address if isinstance(event.address, LaneAddressList) else event.address
        )
        relative = address + np.int64(event.site.offset) - home.base
        places: Flat = relative >> (self.granule * chunk).bit_length() - 1
        if event.mask is None or spread:
            return places
        shape = np.broadcast_shapes(places.shape, event.mask.shape)
        return np.broadcast_to(places, shape)[np.broadcast_to(event.mask, shape)]

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``; a deadlock is reported for all blocks of a batch."""
        self.stopped = True

    def scheduled_out_of_order(self) -> None:
        """See ``Observer``.

        Raises:
            SerialFallback: Batches are cut, and other blocks in one may change the order.
        """
        if self.cut:
            raise SerialFallback(MIXED)

    def merge(self, other: Overlap) -> None:
        """See ``Observer``.

        Raises:
            SerialFallback: One part accesses what the other modifies, or stalled.
            RetrySharded: This is unknown.
        """
        if self.stopped or other.stopped:
            raise SerialFallback(STOPPED)
        self.loaded |= other.loaded
        self.check(other)
        touched = self._packed()
        for number, theirs in other._packed().items():
            mine = touched.setdefault(number, theirs)
            if mine is not theirs:
                if mine.meets(theirs):
                    raise SerialFallback("its blocks touch what others of them write")
                touched[number] = mine.merged(theirs)

    def check(self, other: Overlap) -> None:
        """Check what one part modified against reads of both.

        Raises:
            RetrySharded: As ``merge``.
        """
        numbers = self.loaded & {*self.changed(), *other.changed()}
        if numbers:
            raise RetrySharded(numbers)

    def sums(self, allocation: Allocation, before: Flat) -> list[Sum]:
        """Return the sums added to an array; ``before``: its bytes from the host."""
        marks = self.marks[allocation.number]
        sums: list[Sum] = []
        for kind, (how, type) in enumerate(_KINDS, 1):
            if not (marks.summed == kind).any():
                continue
            size = DTYPES[type].itemsize
            where = ((marks.summed == kind) & ~marks.written)[:: size // self.granule]
            at = np.flatnonzero(where)
            old, new = (b.view(DTYPES[type])[at] for b in (before, allocation.buffer))
            values = {"add": np.subtract, "xor": np.bitwise_xor}.get(how, lambda n, _: n)(new, old)
            sums.append((kind, at, values))
        return sums

    def copy(self, number: int, source: Flat, target: Flat) -> None:
        """Copy the written locations of an array from one buffer to another."""
        type = f"u{self.granule}"
        where = self._written(number, len(source) // self.granule)
        target.view(type)[where] = source.view(type)[where]

    def _written(self, number: int, size: int) -> Flat | slice:
        if number in self.marks:
            return places(self.marks[number].written)
        return self._bits[number].where(size)

    def apply(self, allocation: Allocation, content: Flat, sums: list[Sum]) -> None:
        """Apply the writes and sums of another part to an array.

        ``content``: its bytes after the shard, where it wrote.
        """
        allocation.change()
        for kind, at, values in sums:
            how, type = _KINDS[kind - 1]
            elements = allocation.buffer.view(DTYPES[type])
            elements[at] = (_SUMS | _PICKS)[how](elements[at], values)
        self.copy(allocation.number, content, allocation.buffer)
        if allocation.missing is not None:
            size = len(allocation.buffer) // self.granule
            written = np.zeros(size, bool)
            written[self._written(allocation.number, size)] = True
            allocation.define(np.repeat(written, self.granule)[: len(allocation.missing)])

    def changed(self) -> Iterator[int]:
        """Yield the numbers of modified arrays."""
        for touched in (self.marks, self._bits):
            for number, marks in touched.items():
                if marks.written.any() or (marks.summed is not None and marks.summed.any()):
                    yield number


class Sums:
    """Kind of sum of each access: 0 unless it is an atomic whose order is not observable.

    This requires that no instruction reads its result.

    Attributes:
        any: Whether there is such an access to global memory.
    """

    def __init__(self, program: Program) -> None:
        functions = program.module.functions
        names = {site.function for site in program.sites if site.access == "atomic"}
        read = {name: {r for i in functions[name].body for r in roles(i).reads} for name in names}
        self.kinds = [
            0 if read.get(site.function, set()).intersection(roles(site.instruction).writes)
            else _kind(site)
            for site in program.sites
        ]  # fmt: skip
        self.any = any(
            kind and site.space != "shared"
            for kind, site in zip(self.kinds, program.sites, strict=True)
        )


def _kind(site: Site) -> int:
    if site.access != "atomic" or site.count != 1 or site.bound or site.bulk:
        return 0
    type = site.type if site.operation in _PICKS else f"b{site.size * 8}"
    whole = site.type[0] in "bsu" and site.type[1:].isdigit()
    kind = site.operation, type
    return _KINDS.index(kind) + 1 if whole and kind in _KINDS else 0


def _ones(chunk: int) -> np.generic:
    """Return ``chunk`` true flags as one number."""
    value: np.generic = np.frombuffer(b"\1" * chunk, f"u{chunk}")[0]
    return value
