"""Read-only path: loads through it of written bytes, and overlapping ``__restrict__`` pointers.

``ld.global.nc`` and textures read through a cache that is not coherent within a launch (PTX ISA,
"ld.global.nc"; CUDA C++ Programming Guide, "Read/Write Coherency" of textures). Neither program
order nor a barrier makes a write of the same launch visible. The first attempt records only array
numbers; if an array is both loaded so and written, the launch is repeated with tables for that
array.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Line
from kernels.source.restrict_pointers import Base, Pointers

from ...analysis.pointer_bases import Bases
from ...core.geometry import Flat, Geometry, as_mask
from ...events import Observer
from ...hazards.findings import Findings
from ...hazards.read_only_path import PathParticipant, aliased, read_only
from ...memory.event import AccessEvent, CompactAccessEvent, LaneAddressList
from ...memory.site import Site
from ...memory.storage.spaces import Allocation
from ...races.accesses import EscalateCheck, PrecisionPlan, by_block
from ...races.shadow.stored_values import changing

_NEVER = np.iinfo(np.int32).max


def is_read_only(site: Site) -> bool:
    """Whether a site reads through the read-only path."""
    texture = site.space == "texture"
    return site.access == "load" and (texture or site.instruction.has("nc"))


def _closely(number: int) -> int:
    """Return the number by which ``EscalateCheck`` names an array to this check."""
    return -2 - number


class _AccessGroup(NamedTuple):
    """Accesses of an array that share a table.

    Attributes:
        read_only, writes: Kind of the accesses; both are false for an ordinary read.
        base: The restricted pointer from which the address is derived, if any.
        line: The source line.
    """

    read_only: bool
    writes: bool
    base: Base | None
    line: Line


@dataclasses.dataclass
class _Table:
    """Accesses of one kind to an array, by granule.

    Attributes:
        site: First accessing site in the program.
        threads: Lowest accessing thread of the launch for each granule, or ``nobody``.
    """

    site: int
    threads: Flat


class ReadOnlyPathCheck(Observer):
    """Check of read-only loads against writes.

    Args:
        granule: Bytes of a location.
        threads: Threads of the launch.
        pointers: Restricted pointers of the launch.
        bases: Base pointers of the accesses, if there are pointers.

    Attributes:
        loaded, written: Numbers of arrays loaded through the read-only path, and written.
        tables: Tables by array and group.
        silent: Numbers of atomics whose operands cannot change memory.
    """

    def __init__(
        self, findings: Findings, sites: Sequence[Site], granule: int, threads: int,
        pointers: Pointers, bases: Bases | None, precision: PrecisionPlan,
    ) -> None:  # fmt: skip
        self.findings, self.sites, self.granule = findings, sites, granule
        self.pointers, self.bases, self.watched = pointers, bases, pointers.names
        few = threads < _NEVER
        self.dtype = np.dtype(np.int32 if few else np.int64)
        self.nobody = int(_NEVER if few else np.iinfo(np.int64).max)
        self.read_only = [is_read_only(site) for site in self.sites]
        self.close = {number for number in precision if number < -1}
        self.loaded, self.written, self.silent = set[int](), set[int](), set[int]()
        self.homes: dict[int, Allocation] = {}
        self.tables: dict[int, dict[_AccessGroup, _Table]] = {}
        self.geometry: Geometry

    @property
    def idle(self) -> bool:
        """Whether the program cannot have such hazards."""
        return not (any(self.read_only) or self.watched)

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def grouped_loads(self, sites: tuple[Site, ...], events: object) -> None:
        """See ``Observer``; these are of shared memory."""

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""
        if self._concerns(event):
            self._record(event.full)

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        if not event.repeated and self._concerns(event):
            self._record(event)

    def _concerns(self, event: AccessEvent | CompactAccessEvent) -> bool:
        """Whether an access has to be recorded in the tables."""
        home, site = event.home, event.site
        if not isinstance(home, Allocation) or not 0 <= site.number < len(self.read_only):
            return False
        number = home.number
        if site.access != "load":
            self.written.add(number)
        elif self.read_only[site.number]:
            self.loaded.add(number)
        elif number not in self.watched:
            return False
        return number in self.watched or _closely(number) in self.close

    def _record(self, event: AccessEvent) -> None:
        g, site, home = self.geometry, event.site, event.home
        mask, spread = event.mask, isinstance(event.address, LaneAddressList)
        if site.access == "atomic" and not spread:
            mask = changing(event, g)
            if mask is not None and (as_mask(event.mask) & ~mask).any():
                self.silent.add(site.number)
        address, threads = by_block(g, site, event.address, mask)
        if not len(address):
            return
        group = _AccessGroup(
            self.read_only[site.number], site.access != "load", self._base(site, home.number),
            site.line,
        )  # fmt: skip
        self.homes[home.number] = home
        tables = self.tables.setdefault(home.number, {})
        if group not in tables:
            size = -(-home.nbytes // self.granule)
            tables[group] = _Table(site.number, np.full(size, self.nobody, self.dtype))
        table = tables[group]
        table.site = min(table.site, site.number)
        first = (address - home.base) // self.granule
        for part in range(max(1, (site.size if spread else site.nbytes) // self.granule)):
            np.minimum.at(table.threads, first + part, threads.astype(self.dtype))

    def _base(self, site: Site, number: int) -> Base | None:
        """Return the restricted pointer from which an access's address is derived."""
        if self.bases is None or number not in self.watched:
            return None
        here = [base for base in self.bases.of(site) if self.pointers.arrays[base] == number]
        return here[0] if len(here) == 1 and here[0] in self.watched[number] else None

    def merge(self, other: ReadOnlyPathCheck) -> None:
        """See ``Observer``."""
        self.loaded |= other.loaded
        self.written |= other.written
        self.silent |= other.silent
        self.homes = other.homes | self.homes
        for number, tables in other.tables.items():
            mine = self.tables.setdefault(number, {})
            for group, theirs in tables.items():
                table = mine.setdefault(group, theirs)
                if table is not theirs:
                    table.site = min(table.site, theirs.site)
                    np.minimum(table.threads, theirs.threads, out=table.threads)

    def end(self) -> None:
        """See ``Observer``.

        Raises:
            EscalateCheck: An array is loaded through the read-only path and written, possibly at
                other bytes.
        """
        for number in sorted(self.loaded & self.written):
            if number not in self.watched and _closely(number) not in self.close:
                raise EscalateCheck(_closely(number))
        for number in sorted(self.tables):
            self._read_only(number, self._aliased(number))

    def _aliased(self, number: int) -> set[frozenset[Base | None]]:
        """Report restricted pointers that share written bytes; return these pairs."""
        names, tables = self.watched.get(number, {}), self.tables[number]
        bases = sorted({group.base for group in tables if group.base is not None})
        found = set[frozenset[Base | None]]()
        for one, other in itertools.combinations(bases, 2):
            pairs = [
                (a, b, both)
                for a, b in itertools.product(tables, tables)
                if (a.base, b.base) == (one, other) and (a.writes or b.writes)
                if (both := self._both(number, a, b)).any()
            ]
            if not pairs:
                continue
            found.add(frozenset([one, other]))
            a, b, both = min(pairs, key=_order)
            at = int(np.argmax(both))
            aliased(
                self.findings, self.homes[number], at * self.granule,
                (self._side(number, a, at), self._side(number, b, at)),
                (names[one], names[other]), self._elements(number, a, [m for _, _, m in pairs]),
            )  # fmt: skip
        return found

    def _read_only(self, number: int, explained: set[frozenset[Base | None]]) -> None:
        """Report read-only loads of written bytes, except explained ones."""
        tables = self.tables[number]
        groups = sorted(tables, key=lambda group: tables[group].site)
        for fetches in (False, True):
            found = [
                (load, write, both)
                for load, write in itertools.product(groups, groups)
                if load.read_only and self._fetches(number, load) is fetches and write.writes
                if frozenset([load.base, write.base]) not in explained
                if (both := self._both(number, load, write)).any()
            ]
            if not found:
                continue
            pairs = []
            for load, write, both in found:
                at = int(np.argmax(both))
                pairs.append((self._side(number, load, at), self._side(number, write, at)))
            load, _, first = found[0]
            read_only(
                self.findings, self.homes[number], int(np.argmax(first)) * self.granule, pairs,
                self._elements(number, load, [both for _, _, both in found]), fetches,
            )  # fmt: skip

    def _fetches(self, number: int, group: _AccessGroup) -> bool:
        """Whether a group's accesses are texture fetches."""
        return self.sites[self.tables[number][group].site].is_image

    def _both(self, number: int, one: _AccessGroup, other: _AccessGroup) -> Flat:
        """Return the granules that two groups access."""
        tables = self.tables[number]
        return np.maximum(tables[one].threads, tables[other].threads) < self.nobody

    def _side(self, number: int, group: _AccessGroup, at: int) -> PathParticipant:
        """Return an example of a group's access to a granule."""
        table, g = self.tables[number][group], self.geometry
        block, thread = divmod(int(table.threads[at]), g.threads)
        return PathParticipant(self.sites[table.site], *g.place(thread, block))

    def _elements(self, number: int, group: _AccessGroup, marks: Sequence[Flat]) -> int:
        """Return the number of elements of a group's accesses with any of these marks."""
        size = self.sites[self.tables[number][group].site].size
        granules = np.flatnonzero(functools.reduce(np.logical_or, marks))
        return len(np.unique(granules * self.granule // size))


def _order(pair: tuple[_AccessGroup, _AccessGroup, Flat]) -> tuple[object, ...]:
    """Sort key: a read and a write before two writes, then by source or PTX line."""
    one, other, _ = pair
    lines = [("", at) if isinstance(at, int) else at for at in (one.line, other.line)]
    return one.writes and other.writes, sorted(lines)
