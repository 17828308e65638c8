"""What requests cost: the figures of ``counters.Traffic``, in its order."""

import numpy as np

from ..geometry import WARP, Flat, Rows
from ..memory.event import Event, Spread
from ..memory.words import distinct
from .banks import BANKS, SECTOR, bank_passes, off, word_passes


def bulk_cost(event: Event, columns: int) -> Flat:
    """Of a copy in bulk, where each lane's is a request of its own (``docs/counters.md``).

    ``columns``: blocks of the batch.
    """
    where, size = event.address, event.site.size
    assert isinstance(where, Spread)
    copy = where.thread * columns + where.column
    elements = np.bincount(copy)
    elements = elements[elements > 0]
    copies, nbytes = len(elements), len(copy) * size
    sectors = ideal = 0
    if event.space == "global":
        at = (where.address + np.int64(event.site.offset)) // SECTOR
        at -= at.min(initial=0)
        sectors = distinct(copy * (at.max(initial=0) + 1) + at).size
        ideal = int((-(-elements * size // SECTOR)).sum())
    return np.array((copies, copies, nbytes, nbytes, sectors, 0, 0, ideal), np.int64)


class Words:
    """Words of shared memory that the threads of a block access, one each, by byte address.

    For masks that differ between blocks: these are added up by word, bank and warp.
    """

    def __init__(self, address: Flat) -> None:
        word = address >> 2
        bank = np.arange(len(word)) // WARP * BANKS + (word & (BANKS - 1))
        self.order = np.lexsort((word, bank))
        word, bank = word[self.order], bank[self.order]
        self.words = _starts(bank, word)
        self.banks = _starts(bank[self.words])
        self.warps = _starts(bank[self.words][self.banks] // BANKS)

    def cost(self, rows: Rows) -> Flat:
        """Of threads that are on, bools ``(threads, blocks)``."""
        wanted = rows[self.order]
        if len(self.words) < len(wanted):
            wanted = np.logical_or.reduceat(wanted, self.words, axis=0)
        by_bank = np.add.reduceat(wanted.view(np.uint8), self.banks, axis=0, dtype=np.uint8)
        passes = np.maximum.reduceat(by_bank, self.warps, axis=0)
        on, asked, some = (int(np.count_nonzero(x)) for x in (rows, wanted, passes))
        taken = int(passes.sum(dtype=np.int64))
        return np.array([some, on, on * 4, asked * 4, 0, taken, taken - some, 0], np.int64)


def _starts(*ordered: Flat) -> Flat:
    """Where something begins that differs from what is before."""
    changes = [one[1:] != one[:-1] for one in ordered]
    return np.append(0, np.flatnonzero(np.logical_or.reduce(changes)) + 1)


class Scattered:
    """Lanes of requests to global or local memory, sorted: what is distinct stands side by side.

    Args:
        request: Number of each lane's request, int64.
        lanes: Its byte address, counted from the start of a sector, below ``REACH``.
    """

    REACH = 1 << 30

    def __init__(self, request: Flat, lanes: Flat) -> None:
        self.keys: Flat = (request << np.int64(32)) + (lanes + np.int64(2 * self.REACH))
        self.keys.sort()
        first = np.append(True, self.keys[1:] != self.keys[:-1])
        self.each: Flat = np.bincount(self.keys[first] >> 32)

    def cost(self, width: int, offset: int) -> Flat:
        """Of ``width`` bytes a lane, so many bytes behind these addresses (less than ``REACH``)."""
        sector = (self.keys + np.int64(offset)) >> 5
        moved = np.count_nonzero(sector[1:] != sector[:-1]) + 1
        count, asked, some = len(sector), self.each * width, np.count_nonzero(self.each)
        total, ideal = int(asked.sum()), int((-(-asked // SECTOR)).sum())
        return np.array([some, count, count * width, total, moved, 0, 0, ideal], np.int64)


def request_cost(width: int, load: bool, space: str, in_order: Rows) -> Flat:
    """Of ``requests``; ``width``: bytes a lane accesses."""
    on = int(np.count_nonzero(in_order != off(in_order)))
    close = word_passes(in_order) if space == "shared" and width == 4 else None
    if close:
        some, taken, words = (int(np.sum(n)) for n in (close[1] > 0, *close))
        return np.array([some, on, on * 4, words * 4, 0, taken, taken - some, 0], np.int64)
    lanes = np.sort(in_order)  # what is distinct stands side by side, what is off comes last
    apart = lanes[:, 1:] ^ lanes[:, :-1]
    ends = lanes[:, -1] == off(lanes)  # one step too many leads to what is off
    distinct = np.count_nonzero(apart, axis=1) + 1 - ends
    asked = distinct * width
    moved = passes = conflicts = ideal = 0
    if space == "shared":
        passes, conflicts = (int(n.sum()) for n in bank_passes(in_order, width, load)[:2])
    elif space != "cluster":  # how that passes the network between SMs is not known
        moved = int(np.count_nonzero(apart >= SECTOR)) + len(lanes) - int(np.count_nonzero(ends))
        ideal = int((-(-asked // SECTOR)).sum())
    some = int(np.count_nonzero(distinct))
    return np.array(
        [some, on, on * width, int(asked.sum()), moved, passes, conflicts, ideal], np.int64
    )
