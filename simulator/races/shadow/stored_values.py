"""Values that accesses store, to distinguish races with equal values, and lost atomics."""

import functools

import numpy as np

from ...core.geometry import Flat, Geometry, Lanes, Mask, as_mask
from ...isa.table import BLOCK
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site
from ...memory.storage.spaces import InterleavedMemory
from ..accesses import Accesses
from .access_history import AccessHistory
from .shadow_memory import Conflict

UNKNOWN_BITS = -1
"""Stands for the bits of an access that stores none, or none that are known."""


def written(
    event: AccessEvent, lanes: Accesses, g: Geometry, offset: int, granule: int
) -> Flat | None:
    """Return the bits that each lane stores; of an atomic, 1 if it changes nothing.

    The location is ``offset`` bytes from the start of a lane's access and has ``granule`` bytes.
    """
    site, spread = event.site, event.address
    if event.values is None or site.access == "load":
        return None

    def pick(value: Lanes) -> Flat:
        if isinstance(spread, LaneAddressList):
            mask = as_mask(event.mask)
            return np.ascontiguousarray(value[g.full(mask)[spread.thread, spread.column]])
        full = np.broadcast_to(value, g.shape).reshape(g.threads, g.columns)
        return np.ascontiguousarray(full[lanes.thread, lanes.column])

    if site.access == "atomic":
        return _quiet(site, [pick(value) for value in event.values])
    mine = pick(event.values[min(offset // site.size, len(event.values) - 1)])
    bits = mine.view(f"u{mine.dtype.itemsize}").astype(np.uint64)
    if site.size > granule:
        bits >>= np.uint64(offset % site.size * 8)
    return bits & np.uint64((1 << 8 * min(site.size, granule)) - 1)


def located(
    event: AccessEvent, lanes: Accesses, g: Geometry, granule: int
) -> tuple[Accesses, Flat, Flat | None]:
    """Expand lanes to locations; return lanes, index within the lane, and stored values."""
    offsets = range(0, max(event.site.nbytes, granule), granule)
    values = [written(event, lanes, g, offset, granule) for offset in offsets]
    remaining = [one for one in values if one is not None]
    return *lanes.located(event.site, granule), np.concatenate(remaining) if remaining else None


def compare(
    conflict: Conflict, history: AccessHistory | None, site: Site, other: Site,
    values: Flat | None, distance: str,
) -> tuple[Flat, Flat, Flat]:  # fmt: skip
    """Return for each pair whether values differ, an atomic is silent, and the stored bits.

    The bits, ``(2, pairs)``, are those of the earlier and the later access; see ``UNKNOWN_BITS``.
    """
    unequal, silent = _compared(conflict, history, site, other, values, distance)
    return unequal, silent, _stored_bits(conflict, history, site, other, values)


def found_bits(event: AccessEvent, granule: int, columns: int, place: Flat) -> Flat | None:
    """Return the bits that a load of a block's own shared memory finds at some locations.

    The event precedes the access, so that they are in memory. ``None`` for other accesses, and for
    those of more than a location.
    """
    site, memory = event.site, event.home
    if site.access != "load" or site.asynchronous or site.size != granule:
        return None
    if event.space != "shared" or not isinstance(memory, InterleavedMemory):
        return None
    at, column = np.divmod(place, columns)
    at = at * granule
    words = memory.words.view(np.uint32)
    bits = words[at >> 2, column].astype(np.uint64) >> (at & 3).astype(np.uint64) * np.uint64(8)
    if granule == 8:
        bits |= words[(at >> 2) + 1, column].astype(np.uint64) << np.uint64(32)
    found: Flat = (bits & np.uint64((1 << 8 * granule) - 1)).astype(np.int64)
    return found


def _stored_bits(
    conflict: Conflict, history: AccessHistory | None, site: Site, other: Site, values: Flat | None
) -> Flat:
    """Return the bits that both accesses of each pair store."""
    found = np.full((2, len(conflict.lane)), UNKNOWN_BITS)
    if site.access == "store" and values is not None:
        found[1] = values[conflict.lane].astype(np.int64)
    if other.access != "store":
        return found
    if history is None:
        found[0] = found[1] if values is None else values[conflict.entry].astype(np.int64)
    elif history.values is not None:
        found[0] = history.values[conflict.entry].astype(np.int64)
    return found


def _compared(
    conflict: Conflict, history: AccessHistory | None, site: Site, other: Site,
    values: Flat | None, distance: str,
) -> tuple[Flat, Flat]:  # fmt: skip
    """Return which pairs store different values, and which are a read and a silent atomic."""
    lane, entry = conflict.lane, conflict.entry
    count = len(lane)
    nothing = np.zeros(count, bool)
    if site.access == "load":
        if other.access == "atomic" and history is not None:
            assert history.values is not None
            return ~nothing, (history.values[entry] == 1) & ~history.table.varied_far[entry]
        return ~nothing, nothing
    assert values is not None
    if site.access == other.access == "store":
        if history is None or history.values is None:
            theirs = values[conflict.entry]
            return values[lane] != theirs, nothing
        varied = history.table.varied_far if distance == "block" else history.table.varied
        return (values[lane] != history.values[entry]) | varied[entry], nothing
    if site.access == "atomic" and other.access == "load":
        return ~nothing, values[lane] == 1
    return ~nothing, nothing


def changing(event: AccessEvent, g: Geometry) -> Mask | None:
    """Return the lanes of an atomic except those that cannot change memory (``_quiet``)."""
    if event.values is None:
        return event.mask
    flat = [np.broadcast_to(value, g.shape).reshape(-1) for value in event.values]
    found: Mask = as_mask(event.mask) & (_quiet(event.site, flat) == 0).reshape(g.shape)
    return found


def other_values(history: AccessHistory, start: Flat, threads: np.int64, values: Flat) -> Mask:
    """Return the lanes that store a value which no recorded store has left in their location.

    ``start``: key of each lane's location. ``threads``: number of threads.
    """
    table = history.table
    begin, end = np.searchsorted(table.keys, start), np.searchsorted(table.keys, start + threads)
    found = np.zeros(len(start), bool)
    at = np.flatnonzero(end > begin)
    if not at.size:
        return found
    varied = np.append(0, np.cumsum(table.varied | table.varied_far))
    stops = np.stack([begin[at], end[at]], axis=1).reshape(-1)
    padded = np.append(table.values, table.values[-1:])  # so that each end is a place
    low, high = (reduce.reduceat(padded, stops)[::2] for reduce in (np.minimum, np.maximum))
    mine = values[at]
    found[at] = (low != mine) | (high != mine) | (varied[end[at]] > varied[begin[at]])
    return found


def _quiet(site: Site, operands: list[Flat]) -> Flat:
    """Return 1 where an atomic cannot change memory (such as adding zero), else 0."""
    given, news = operands[: site.count], operands[site.count :]
    if site.operation == "cas":
        each = [old == new for old, new in zip(given, news, strict=True)]
    elif site.operation in ("add", "or", "xor"):
        each = [value == 0 for value in given]
    elif site.operation == "and":
        each = [~value == 0 for value in given]
    else:
        each = [np.zeros(len(value), bool) for value in given]
    silent = functools.reduce(np.logical_and, each)
    return np.where(silent, np.uint64(1), np.uint64(0))


def out_of_scope(g: Geometry, conflict: Conflict, one: Site, other: Site) -> Mask:
    """Return the pairs of strong accesses of which one scope excludes the other thread."""
    earlier, later = conflict.earlier // g.threads, conflict.later // g.threads
    if g.clusters.size == 1 or BLOCK in (one.scope, other.scope):
        is_outside: Mask = earlier != later
    else:
        is_outside = ~g.clusters.together(earlier, later)
    return is_outside


def in_steps(g: Geometry, conflict: Conflict, home: Flat, site: Site, other: Site) -> Mask:
    """Return the pairs of shared-memory atomics that are not atomic to each other's block.

    ``home``: columns of the blocks whose memory is accessed. ``other``: the earlier site.
    """
    earlier, later = conflict.earlier // g.threads, conflict.later // g.threads
    split: Mask = (earlier != g.blocks[home]) & other.non_atomic_remotely
    split |= (later != g.blocks[home]) & site.non_atomic_remotely
    if site.has_narrow_scope or other.has_narrow_scope:
        split |= out_of_scope(g, conflict, site, other)
    return split
