"""Reads of uninitialised shared memory."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import Flat
from ...memory.site import Site
from ...memory.storage.word_ops import unique
from ..accesses import Accesses
from ..order.vector_clock import Ordered
from ..shadow.pair_limit import pieces

Report = Callable[[Site, Flat, Flat, Flat, Flat], None]
"""Takes the instruction; addresses, threads of the block, columns, and those of the memory's block,
one a read."""


Reads = NDArray[np.int64]
"""Rows: the location of each read, its thread, number of the access, time and lane; ascending by
location."""


class UninitialisedReads:
    """Uninitialised reads since the last block barrier, reported if they are no race.

    If another thread writes the location without synchronisation in between, the schedule decides
    which comes first: that is a race, and it is reported as one.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self._accesses: list[tuple[Site, Accesses]] = []
        self._reads: dict[bool, list[Reads]] = {False: [], True: []}  # True: by atomics

    def add(
        self, site: Site, lanes: Accesses, at: Flat, place: Flat, thread: Flat, now: int
    ) -> None:
        """Record reads of lanes (indices ``at``) with their locations and global threads."""
        number = len(self._accesses)
        self._accesses.append((site, lanes))
        same = np.ones(len(at), np.int64)
        some = np.stack([place, thread, same * number, same * now, at])
        known = self._reads[site.access == "atomic"]
        # Tables of about one size are made one, so that there are few, and all stay sorted.
        while known and known[-1].shape[1] <= some.shape[1]:
            some = np.concatenate([known.pop(), some], axis=1)
        known.append(some[:, np.argsort(some[0], kind="stable")])

    @property
    def any(self) -> bool:
        """Whether any reads are recorded."""
        return bool(self._accesses)

    def drop_racing(self, site: Site, place: Flat, thread: Flat, ordered: Ordered) -> None:
        """Drop reads that a write may precede under another schedule, as no barrier orders them.

        A lock does not order them either, as any thread may acquire it first. Two atomics are no
        race, and the second initialises no more than the first.
        """
        for atomics in (False,) if site.access == "atomic" else (False, True):
            known = self._reads[atomics]
            for number, reads in enumerate(known):
                begin = np.searchsorted(reads[0], place)
                end = np.searchsorted(reads[0], place, "right")
                stays = np.ones(reads.shape[1], bool)
                for lane, read in pieces(begin, end):
                    other = reads[1, read] != thread[lane]
                    lane, read = lane[other], read[other]
                    stays[read[~ordered(reads[3, read], reads[1, read], lane)]] = False
                if not stays.all():
                    known[number] = reads[:, stays]
            self._reads[atomics] = [reads for reads in known if reads.shape[1]]

    def report_all(self) -> None:
        """Report the remaining reads."""
        nothing = np.zeros((5, 0), np.int64)
        pending = np.concatenate([nothing, *self._reads[False], *self._reads[True]], axis=1)
        for number in unique(pending[2]):
            site, lanes = self._accesses[number]
            read = lanes.some(np.sort(pending[4, pending[2] == number]))
            self.report(site, read.address, read.thread, read.column, read.home)
        self._accesses, self._reads = [], {False: [], True: []}
