"""Cost of a request: memory sectors, shared-memory wavefronts, bank conflicts."""

import numpy as np

from ...core.geometry import WARP, Flat, Rows

SECTOR, LINE = 32, 128
"""Bytes of a sector, the unit of global memory traffic, and of a cache's line."""
BANKS = 32
"""Banks of shared memory, each one 32-bit word wide."""
_ROW = 11
"""Bits of the number of a row of all banks in 16 bits, beside its bank."""
_CLOSE = 2047 << 7
"""No byte address with a lower one has the last row, which stands for what is off."""
_NEAR = 1 << 30
"""Bytes between addresses for which 32 bits are enough."""


def inactive_address(lanes: Rows) -> int:
    """Return the value that marks an inactive lane; it sorts last."""
    return int(np.iinfo(lanes.dtype).max)


def mark_inactive(lanes: Rows, mask: Rows) -> Rows:
    """Return unsigned lanes with masked ones replaced by ``off``; faster than ``np.where``."""
    filled: Rows = lanes | (mask.astype(lanes.dtype) - lanes.dtype.type(1))
    return filled


def first_of_run(rows: Rows) -> Rows:
    """Whether an element of a sorted row is active and differs from its predecessor."""
    flat = rows.reshape(-1)
    out: Rows = np.append(True, flat[1:] != flat[:-1]).reshape(rows.shape)
    out[:, 0] = True
    out &= rows != inactive_address(rows)
    return out


def requests(address: Rows, mask: Rows | None) -> Rows:
    """Return the lanes of each request as a row, ``(warps * columns, 32)``, as ``near`` does.

    A request is one warp of one column. The result is contiguous, as sorting with other strides
    takes ten times as long.

    Args:
        address: Byte addresses, int64 ``(threads, columns)``.
        mask: Active lanes; ``None``: all.
    """
    lanes = near(address, mask)
    if len(lanes) % WARP:
        lanes = np.pad(
            lanes, ((0, -len(lanes) % WARP), (0, 0)), constant_values=inactive_address(lanes)
        )
    warps = lanes.reshape(-1, WARP, lanes.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(warps).reshape(-1, WARP)


def near(address: Rows, mask: Rows | None) -> Rows:
    """Return unsigned addresses relative to a 128-byte line, or ``off``.

    They have 32 bits if that suffices.
    """
    low, high = int(address.min()), int(address.max())  # whose difference may have 64 bits
    if mask is not None and high - low >= _NEAR:
        low = int(np.min(address, where=mask, initial=high))
        high = int(np.max(address, where=mask, initial=low))
    low &= -4 * BANKS
    lanes: Rows = (address - np.int64(low)).astype(np.uint32 if high - low < _NEAR else np.uint64)
    return lanes if mask is None else mark_inactive(lanes, mask)


def sectors(lanes: Rows) -> Flat:
    """Return the number of 32-byte sectors of each request; byte addresses, sorted rows."""
    found: Flat = np.count_nonzero(
        first_of_run(mark_inactive(lanes >> 5, lanes != inactive_address(lanes))), axis=1
    )
    return found


def distinct_bytes(lanes: Rows, width: int) -> Flat:
    """Return the number of distinct bytes of each request, ``width`` bytes a lane."""
    found: Flat = np.count_nonzero(first_of_run(lanes), axis=1) * width
    return found


def word_passes(lanes: Rows) -> tuple[Flat, Flat] | None:
    """Return wavefronts and distinct words of each request of up to 4 bytes a lane.

    This is four to six times as fast as sorting 32-bit numbers, because a bank and a row in it fit
    into 16 bits. (It uses arithmetic, as masks take twice as long.)

    Returns:
        Two int64 arrays; ``None`` if the addresses are too far apart.
    """
    if lanes.dtype != np.uint32 or (lanes + np.uint32(1)).max(initial=0) > _CLOSE:
        return None
    row, bank = lanes >> np.uint32(7), (lanes << np.uint32(9)) & np.uint32((BANKS - 1) << _ROW)
    keys = (bank | row).astype(np.uint16)
    keys |= np.negative((lanes == inactive_address(lanes)).astype(np.uint16))
    keys.sort()
    again = keys[:, 1:] == keys[:, :-1]
    if again.any():
        keys[:, 1:] |= np.negative(again.astype(np.uint16))
        keys.sort()
    # Sorted, those of a bank stand side by side: where one and the k-th behind it are of the same,
    # there are more than k. One row a lane, so that requests are neighbours in memory.
    gone = np.ascontiguousarray((keys == inactive_address(keys)).T).view(np.uint8)
    one = np.ascontiguousarray((keys >> np.uint16(_ROW)).astype(np.uint8).T)
    one |= np.negative(gone)
    other = one - gone  # nothing that is off is like anything
    distinct = WARP - np.add.reduce(gone, axis=0, dtype=np.int64)
    passes = (distinct > 0).astype(np.int64)
    for behind in range(1, WARP):
        more = np.logical_or.reduce(one[:-behind] == other[behind:], axis=0)
        if not more.any():
            break
        passes += more
    return passes, distinct


def bank_passes(lanes: Rows, width: int, load: bool) -> tuple[Flat, Flat, Flat]:
    """Return wavefronts and bank conflicts of each request.

    A request of up to 4, 8 or 16 bytes a lane is processed in groups of 32, 16 or 8 lanes. A wide
    load uses groups of twice that if every lane accesses the same as its neighbour (lane xor 1
    throughout, or lane xor 2 throughout), or one of the two is inactive. A group takes as many
    wavefronts as its fullest bank has distinct words; wavefronts beyond one a group are conflicts.

    Measured on an H200 with Nsight Compute: ``tests/ground_truth/banks.json`` holds 508 patterns,
    loads and stores of 2 to 16 bytes, that this rule reproduces exactly.

    Args:
        lanes: Byte addresses in lane order, as ``requests`` returns them.
        width: Bytes that a lane accesses.
        load: Whether it is a load; stores and atomics never use the wider groups.

    Returns:
        For each request: wavefronts, bank conflicts, and lanes of a group; int64 each.
    """
    close = word_passes(lanes) if width <= 4 else None
    if close:
        return close[0], close[0] - (close[0] > 0), np.full(len(lanes), WARP)
    live = lanes != inactive_address(lanes)
    groups, words = 1, lanes >> 2
    bank = words & (BANKS - 1)
    size = np.full(len(lanes), {8: 16, 16: 8}.get(width, WARP))
    if width > 4:
        if load:
            is_broadcast = np.zeros(len(lanes), bool)
            for step in (1, 2):
                partner = np.arange(WARP) ^ step
                same = (lanes == lanes[:, partner]) | ~live | ~live[:, partner]
                is_broadcast |= same.all(axis=1)
            size[is_broadcast] *= 2
        group = (np.arange(WARP) // size[:, None]).astype(lanes.dtype)[:, :, None]
        groups, words = 4, words[:, :, None] + np.arange(width // 4, dtype=lanes.dtype)
        bank = (words & (BANKS - 1)) + group * BANKS
        live = np.broadcast_to(live[:, :, None], words.shape)
    # Sorted by bank and row, what is distinct stands side by side; the rest goes to bin 0.
    row, bins = words >> 5, groups * BANKS
    bits = int((row * live).max(initial=0)).bit_length()
    wanted = mark_inactive((bank << bits) + row, live).reshape(len(lanes), -1)
    wanted.sort()
    first = np.arange(1, len(lanes) * bins, bins, dtype=lanes.dtype)[:, None]
    at = ((wanted >> bits) + first) * first_of_run(wanted)
    per_bank = np.bincount(at.reshape(-1).astype(np.int64), minlength=len(lanes) * bins + 1)[1:]
    fullest = per_bank.reshape(len(lanes), groups, BANKS).max(axis=2)
    passes = fullest.sum(axis=1)
    return passes, passes - np.count_nonzero(fullest, axis=1), size
