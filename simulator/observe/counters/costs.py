"""Cost of requests, in the order of the fields of ``Traffic``."""

from __future__ import annotations

import numpy as np

from ...core.geometry import WARP, Flat, Rows
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site
from ...memory.storage.word_ops import changes, unique
from .banks import BANKS, SECTOR, bank_passes, first_of_run, inactive_address, word_passes


def bulk_cost(event: AccessEvent, columns: int) -> Flat:
    """Return the cost of a bulk copy, where each lane is a request (``docs/counters.md``).

    ``columns``: blocks of the batch.
    """
    where, size = event.address, event.site.size
    assert isinstance(where, LaneAddressList)
    count = len(where.thread)
    # A copy's elements follow each other: runs of them are looked at, in a fifth of the time.
    new = np.ones(count, bool)
    np.not_equal(where.thread[1:], where.thread[:-1], out=new[1:])
    new[1:] |= where.column[1:] != where.column[:-1]
    begins = np.flatnonzero(new)
    copy = where.thread[begins] * columns + where.column[begins]
    names = unique(copy)
    sectors = ideal = 0
    if event.space == "global":
        elements, each = np.zeros(len(names), np.int64), np.diff(begins, append=count)
        np.add.at(elements, np.searchsorted(names, copy), each)
        ideal = int((-(-elements * size // SECTOR)).sum())
        address, times = where.address + np.int64(event.site.offset), 1
        if (
            len(names) == len(begins) > 1
            and (each == each[0]).all()
            and _is_periodic(address, len(each))
        ):
            address, times = address[: each[0]], len(each)
            new, copy, begins = new[: len(address)], copy[:1], begins[:1]
        at = address >> SECTOR.bit_length() - 1
        new[1:] |= at[1:] != at[:-1]
        those = np.flatnonzero(new)
        at = at[those] - at.min(initial=0)
        copy = copy[np.searchsorted(begins, those, side="right") - 1]
        sectors = unique(changes(copy * (at.max(initial=0) + 1) + at)).size * times
    copies, nbytes = len(names), count * size
    return np.array((copies, copies, nbytes, nbytes, sectors, 0, 0, ideal), np.int64)


def _is_periodic(address: Flat, copies: int) -> bool:
    """Whether elements repeat with the relative addresses of the first copy."""
    rows = address.reshape(copies, -1)
    first = rows[:, :1]
    aligned = not ((first - first[0]) % SECTOR).any()
    return aligned and bool((rows - first == rows[0] - first[0]).all())


class MaskedBankModel:
    """Shared-memory words of a block's threads, one each, for masks that differ between blocks.

    Counts are accumulated by word, bank and warp.
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
        """Return the cost for active threads, Boolean ``(threads, blocks)``."""
        wanted = rows[self.order]
        if len(self.words) < len(wanted):
            wanted = np.logical_or.reduceat(wanted, self.words, axis=0)
        by_bank = np.add.reduceat(wanted.view(np.uint8), self.banks, axis=0, dtype=np.uint8)
        passes = np.maximum.reduceat(by_bank, self.warps, axis=0)
        on, asked, some = (int(np.count_nonzero(x)) for x in (rows, wanted, passes))
        taken = int(passes.sum(dtype=np.int64))
        return np.array([some, on, on * 4, asked * 4, 0, taken, taken - some, 0], np.int64)


def _starts(*ordered: Flat) -> Flat:
    """Return the positions at which any of some sorted arrays changes."""
    changes = [one[1:] != one[:-1] for one in ordered]
    return np.append(0, np.flatnonzero(np.logical_or.reduce(changes)) + 1)


class Sorted:
    """Requests to global or local memory as sorted rows, to count distinct elements.

    Sorting rows of 32 numbers takes 1 ns a number, sorting all lanes at once takes 40 ns.

    Args:
        rows: Byte addresses, unsigned, sorted; inactive ones (``inactive_address``) come last.
    """

    REACH = 1 << 30

    def __init__(self, rows: Rows) -> None:
        self.rows, self.width = rows, rows.shape[1]
        flat = rows.reshape(-1)
        live = flat != inactive_address(rows)
        last = live[self.width - 1 :: self.width].copy()
        self.on, self.repeats = int(np.count_nonzero(live)), len(rows) - int(np.count_nonzero(last))
        live[:-1] &= flat[1:] != flat[:-1]
        live[self.width - 1 :: self.width] = last
        bits = np.packbits(live).view(f"u{self.width // 8}")  # 0.1 of adding up along the rows
        self.each: Flat = np.bitwise_count(bits).astype(np.int64)

    def cost(self, width: int, offset: int = 0) -> Flat:
        """Return the cost of ``width`` bytes a lane, at ``offset`` from these addresses."""
        flat = self.rows.reshape(-1)
        if offset % SECTOR:  # what is off stays far from all others, around the corner too
            flat = flat + flat.dtype.type(offset & inactive_address(flat))
        far = (flat[1:] ^ flat[:-1]) >= SECTOR
        across = np.count_nonzero(far[self.width - 1 :: self.width])
        moved = int(np.count_nonzero(far) - across) + len(self.rows) - self.repeats
        asked, some = self.each * width, np.count_nonzero(self.each)
        total, ideal = int(asked.sum()), int((-(-asked // SECTOR)).sum())
        return np.array([some, self.on, self.on * width, total, moved, 0, 0, ideal], np.int64)


class Requests:
    """Requests with few active lanes, packed into rows.

    Args:
        begins: Start of each request's lanes, int64, ascending.
        lanes: Number of all lanes.
    """

    def __init__(self, begins: Flat, lanes: int) -> None:
        counts = np.diff(begins, append=lanes)
        widest = int(counts.max())
        width = 8 if widest <= 8 else 16 if widest <= 16 else 32
        self._shape = len(begins), width
        taken = np.arange(width, dtype=np.uint8) < counts.astype(np.uint8)[:, None]
        self._places = np.flatnonzero(taken)  # half the time of a mask
        self._known: dict[bytes, tuple[Flat, Sorted]] = {}

    def sorted(self, lanes: Flat) -> Sorted:
        """Return the addresses sorted, for any offset below ``Sorted.REACH``.

        Args:
            lanes: Byte addresses relative to a sector, below ``Sorted.REACH``, uint32.
        """
        start = lanes[:WARP].tobytes()  # arrays that one index goes into look alike
        known = self._known.get(start)
        if known is not None and (known[0] == lanes).all():
            return known[1]
        rows = np.full(self._shape, np.iinfo(np.uint32).max, np.uint32)
        rows.reshape(-1)[self._places] = lanes + np.uint32(2 * Sorted.REACH)
        rows.sort()
        made = Sorted(rows)
        self._known[start] = lanes, made
        return made


def access_kind(site: Site) -> str:
    """Return what determines the cost of an access besides its addresses."""
    return "cas" if site.operation == "cas" else site.access


def atomic_cost(width: int, space: str, in_order: Rows, swaps: bool) -> Flat:
    """Return the cost of atomic ``requests``, as an H200 counts them (``docs/counters.md``).

    Lanes with equal addresses are serialised. A sector of global memory counts as often as its most
    frequent address; a shared-memory request takes as many wavefronts as its fullest bank has
    lanes, a compare-and-swap (``swaps``) twice as many.
    """
    rows = np.sort(in_order)
    live = rows != inactive_address(rows)
    on, some = int(np.count_nonzero(live)), int(np.count_nonzero(live[:, 0]))
    first = first_of_run(rows)
    each, nbytes = np.count_nonzero(first, axis=1) * width, on * width
    ideal = int((-(-each // SECTOR)).sum())
    moved = passes = conflicts = 0
    flat, row = rows.reshape(-1), np.repeat(np.arange(len(rows)), rows.shape[1])
    starts, lanes = np.flatnonzero(first), np.flatnonzero(live)
    if space == "shared" and on:
        banks = np.zeros((len(rows), BANKS), np.int64)
        for word in range(max(width // 4, 1)):
            at = (flat[lanes] >> 2) + flat.dtype.type(word)
            np.add.at(banks, (row[lanes], (at & flat.dtype.type(BANKS - 1)).astype(np.intp)), 1)
        fullest = banks.max(axis=1)
        passes, conflicts = int(fullest.sum()) << swaps, int(fullest.sum()) - some
    elif space != "cluster" and on:
        stops = np.append(starts[1:], lanes[-1] + 1)
        live_before = np.concatenate([[0], np.cumsum(live.reshape(-1))])
        times = live_before[stops] - live_before[starts]
        sector = flat[starts] >> flat.dtype.type(SECTOR.bit_length() - 1)
        new = _starts(row[starts], sector)
        moved = int(np.maximum.reduceat(times, new).sum())
    return np.array(
        [some, on, nbytes, int(each.sum()), moved, passes, conflicts, ideal], np.int64
    )  # fmt: skip


def by_word(figures: Flat, width: int) -> Flat:
    """Return the cost of a local-memory access, where each word of an element is a request."""
    words = max(width // 4, 1)
    return figures * np.array([words, 1, 1, 1, words, 1, 1, 1]) if words > 1 else figures


def request_cost(width: int, load: bool, space: str, in_order: Rows) -> Flat:
    """Return the cost of ``requests``; ``width``: bytes that a lane accesses."""
    if space not in ("shared", "cluster"):
        return Sorted(np.sort(in_order)).cost(width)
    on = int(np.count_nonzero(in_order != inactive_address(in_order)))
    close = word_passes(in_order) if space == "shared" and width == 4 else None
    if close:
        some, taken, words = (int(np.sum(n)) for n in (close[1] > 0, *close))
        return np.array([some, on, on * 4, words * 4, 0, taken, taken - some, 0], np.int64)
    each = Sorted(np.sort(in_order)).each
    passes = conflicts = 0  # how a request passes the network between SMs is not known
    if space == "shared":
        passes, conflicts = (int(n.sum()) for n in bank_passes(in_order, width, load)[:2])
    some, total = int(np.count_nonzero(each)), int(each.sum()) * width
    return np.array([some, on, on * width, total, 0, passes, conflicts, 0], np.int64)
