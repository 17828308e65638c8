"""Access patterns that the blocks of a batch share."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ...core.address_deltas import AddressDeltas
from ...core.geometry import Addresses, Flat, Mask, Rows
from ...memory.addressing.identity_memo import IdentityMemo
from ...memory.event import AccessEvent
from ...memory.site import Site
from .banks import LINE

PATTERNS = 16
"""So many patterns of an access are looked up; of more of them all warps are judged at once."""
_MAX_PATTERNS = 256
"""So many patterns are kept."""
_SMALL = 1 << 14
"""So many lanes are compared as fast as a part of them is."""


@dataclass
class Cost:
    """Costs of loads of one pattern, a row each; ``count``: repetitions not yet added."""

    slots: Flat
    figures: Rows
    count: int = 0


@dataclass
class Pattern:
    """Access pattern shared by all blocks.

    Attributes:
        relative: Addresses relative to the first lane, ``(Z, Y, X, 1)`` or broadcastable.
        first: Address of the first lane in each block, or in all, ``(blocks or 1,)``.
        content: Key that is equal for equal patterns.
        costs: Costs by the counter's slots; patterns shifted by whole lines cost the same.
        several: Costs of several sites together.
    """

    relative: Addresses
    first: Flat
    content: tuple[object, ...]
    costs: dict[int, tuple[Flat, int]] = field(default_factory=dict)
    several: dict[tuple[Site, ...], Cost] = field(default_factory=dict)

    @functools.cached_property
    def begins(self) -> list[tuple[int, int]]:
        """Return ``first`` modulo ``LINE``, with the number of blocks for each value."""
        if len(self.first) == 1:
            return [(int(self.first[0]) & LINE - 1, 1)]
        low = self.first & np.int64(LINE - 1)
        if (low == low[0]).all():
            return [(int(low[0]), len(low))]
        times = np.bincount(low)
        at = np.flatnonzero(times)
        return list(zip(at.tolist(), times[at].tolist(), strict=True))


def pattern_of(address: Addresses) -> Pattern | None:
    """Return the pattern of addresses; ``None`` if blocks differ in more than their start."""
    if address.ndim == 0:
        address = address.reshape(1, 1, 1, 1)
    first = address[:1, :1, :1]
    relative, flat = address[..., :1] - first[..., :1], first.reshape(-1)
    if address.shape[3] > 1:
        if address.size > _SMALL:  # most of those that differ do so in the last block
            last = address[..., -1:] - first[..., -1:]
            if not (last == relative).all():
                return None
        if not (address - first == relative).all():
            return None
    return Pattern(relative, flat, (relative.shape, relative.tobytes()))


class Patterns:
    """Cache of patterns by address array; equal ones share their costs."""

    def __init__(self) -> None:
        self._known: dict[object, Pattern] = {}
        self._recent = IdentityMemo(self._of, moved)

    def start(self, moves: AddressDeltas) -> None:
        """Begin a batch, possibly with fewer blocks."""
        self._known.clear()
        self._recent.start(moves)

    def __call__(self, address: Addresses) -> Pattern | None:
        """See ``pattern_of``."""
        return self._recent(address)

    def known(self, event: AccessEvent, slot: int) -> tuple[Flat, int] | None:
        """Return the cost of an unmasked access if its pattern has been evaluated."""
        if event.mask is not None or event.columns is not None or event.space == "local":
            return None
        pattern = self._recent(cast(Addresses, event.address))
        return None if pattern is None else pattern.costs.get(slot)

    def _of(self, address: Addresses) -> Pattern | None:
        pattern = pattern_of(address)
        if pattern is None:
            return None
        if len(self._known) > _MAX_PATTERNS:
            self._known.clear()
        key = pattern.content, len(pattern.first), *pattern.begins
        known = self._known.setdefault(key, pattern)
        pattern.costs, pattern.several = known.costs, known.several
        return pattern


def moved(pattern: Pattern | None, by: int) -> Pattern | None:
    """Return the pattern of addresses plus a constant."""
    if pattern is None:
        return None
    found = Pattern(pattern.relative, pattern.first + np.int64(by), pattern.content)
    if by % LINE == 0:
        found.begins = pattern.begins
        found.costs, found.several = pattern.costs, pattern.several
    return found


EqualMasks = tuple[Flat, list[Mask]]
"""Of each block the number of its mask, and the masks there are, ``(threads,)``."""


def group_equal_masks(rows: Rows, max_groups: int) -> EqualMasks | None:
    """Group blocks with equal masks; at a ragged edge there are few distinct masks.

    Args:
        rows: The mask, ``(threads, blocks)``.
        max_groups: The function returns ``None`` if there are more distinct masks.
    """
    starts = np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))
    runs = np.flatnonzero(starts)
    numbers: dict[bytes, int] = {}
    found: list[int] = []
    masks: list[Mask] = []
    for run in runs.tolist():
        mask = np.ascontiguousarray(rows[:, run])
        number = numbers.setdefault(mask.tobytes(), len(masks))
        if number == len(masks):
            masks.append(mask)
            if number == max_groups:
                return None
        found.append(number)
    return np.array(found)[np.cumsum(starts) - 1], masks


class Masks:
    """Cache of recent masks and their evaluated costs, as loops repeat them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Mask, EqualMasks | None, dict[object, Flat | None]]] = {}

    def group_equal_masks(
        self, mask: Mask, rows: Rows, shape: tuple[int, ...]
    ) -> tuple[EqualMasks | None, dict[object, Flat | None]]:
        """Return equal masks in the ``shape`` of a block, and the cache for their costs."""
        known = self._known.get(id(mask))
        if known is None or known[0] is not mask:
            if len(self._known) >= PATTERNS:
                self._known.clear()
            found = group_equal_masks(rows, PATTERNS)
            if found is not None:
                found = found[0], [block.reshape(*shape, 1) for block in found[1]]
            known = self._known[id(mask)] = mask, found, {}
        return known[1:]
