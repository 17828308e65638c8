"""The banks of shared memory: how many passes a request takes, and which of them are conflicts."""

import numpy as np

from ..geometry import WARP, Flat, Rows

BANKS = 32
"""Banks of shared memory, each one 32-bit word wide."""
OFF = np.int64(2**62)
"""The address of a lane that is off."""


def wavefronts(lanes: Rows, width: int, load: bool) -> tuple[int, int]:
    """Passes through the banks that shared memory requests take, and conflicts among them.

    Takes what ``bank_passes`` takes; both figures are summed over the requests.
    """
    passes, conflicts, _ = bank_passes(lanes, width, load)
    return int(passes.sum()), int(conflicts.sum())


def bank_passes(lanes: Rows, width: int, load: bool) -> tuple[Flat, Flat, Flat]:
    """How the banks of shared memory serve each request.

    A request of up to 4, 8 or 16 bytes a lane is served in groups of 32, 16 or 8
    lanes. A wide load takes groups of twice that if every lane wants the same as its
    neighbour, counted one way (lane xor 1) or the other (lane xor 2), or one of the
    two is off. A group takes as many passes as there are distinct words in its fullest
    bank; passes beyond one a group are conflicts.

    Measured on an H200 with Nsight Compute: ``tests/ground_truth/banks.json`` holds 508
    patterns, loads and stores of 2 to 16 bytes, that this rule gives to the unit.

    Args:
        lanes: Byte addresses in lane order, int64 ``(requests, 32)``; ``2**62`` is a lane
            that is off.
        width: Bytes a lane accesses.
        load: Stores (and atomics) never take the wider groups.

    Returns:
        For each request: wavefronts, bank conflicts, and lanes a group; int64 each.
    """
    live = lanes != OFF
    size = np.full(len(lanes), {8: 16, 16: 8}.get(width, 32))
    if load and width > 4:
        alike = np.zeros(len(lanes), bool)
        for step in (1, 2):
            partner = np.arange(WARP) ^ step
            same = (lanes == lanes[:, partner]) | ~live | ~live[:, partner]
            alike |= same.all(axis=1)
        size[alike] *= 2
    numbered = np.arange(WARP) // size[:, None] + 4 * np.arange(len(lanes))[:, None]
    group = numbered[live]
    # Addresses are relative to a block's first lane: what matters of a word is where it lies
    # modulo the banks, and that different words stay different.
    words = (lanes[live][:, None] // 4 + np.arange(max(1, width // 4))) & np.int64(0xFFFFFFFF)
    wanted = np.unique((group[:, None] << np.int64(32)) + words)
    per_bank = np.bincount(
        (wanted >> np.int64(32)) * BANKS + wanted % BANKS, minlength=len(lanes) * 4 * BANKS
    )
    fullest = per_bank.reshape(len(lanes), 4, BANKS).max(axis=2)
    passes = fullest.sum(axis=1)
    return passes, passes - np.count_nonzero(fullest, axis=1), size
