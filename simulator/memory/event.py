"""Events of memory accesses."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.compact_lanes import CompactLanes
from ..core.geometry import Addresses, Flat, Lanes, Mask
from .site import Site
from .storage.spaces import Home


class LaneAddressList(NamedTuple):
    """Addresses of a bulk copy, many for each lane: thread, column and address, 1-D.

    ``home``: column of the shared memory, if it is not the thread's own.
    """

    thread: Flat
    column: Flat
    address: Flat
    home: Flat | None = None


class AccessEvent(NamedTuple):
    """One execution of a memory instruction in one space, dispatched before it takes place.

    The event of an atomic is dispatched afterwards.

    Attributes:
        site: The instruction.
        space: ``global``, ``shared``, ``local``; or ``cluster``: shared memory of blocks by their
            rank in the cluster.
        address: Byte address within the space, without ``site.offset``. It broadcasts to the
            geometry's shape, or it is compact like the values.
        mask: Mask of the accessing lanes; ``None``: all.
        repeated: Whether address and mask are the same objects as in this site's last event.
        home: The ``Allocation`` or ``InterleavedMemory`` that is accessed.
        values: Stored values or an atomic's operands, one array for each element; else ``None``.
        old: Old values of an atomic, one array for each element, in the geometry's shape; ``None``
            if nothing reads them and the atomic does not compare.
        columns: Columns of the blocks whose shared memory is accessed, if not the lane's own; in
            the form of the addresses.
    """

    site: Site
    space: str
    address: Addresses | LaneAddressList
    mask: Mask | None
    repeated: bool
    home: Any
    values: tuple[Lanes, ...] | None
    old: tuple[Lanes, ...] | None = None
    columns: Lanes | None = None


Part = tuple[str, Addresses, Mask | None, Home, Lanes | None]
"""Of an access, more than one where lanes differ: as ``Event`` has it, space to columns."""


@dataclass
class CompactAccessEvent:
    """One execution of a memory instruction by compact lanes.

    Attributes:
        lanes: The compact lanes, in whose form address, mask and values are. The other fields are
            those of ``AccessEvent``.
    """

    lanes: CompactLanes
    site: Site
    space: str
    address: Addresses
    mask: Mask | None
    home: Any
    values: tuple[Lanes, ...] | None = None
    repeated = False

    @functools.cached_property
    def full(self) -> AccessEvent:
        """Return the event in the shape of the whole batch."""
        lanes, values = self.lanes, self.values
        return AccessEvent(
            self.site, self.space, _spread(lanes, self.address), lanes.spread_mask(self.mask),
            False, self.home, values and tuple(_spread(lanes, value) for value in values),
        )  # fmt: skip

    @property
    def accesses(self) -> tuple[Flat, Flat | slice, Flat]:
        """Return address (without offset), thread number and place of each active lane."""
        return self.lanes.of_mask(self.address, self.mask), *self.lanes.chosen(self.mask)


def _spread(lanes: CompactLanes, value: Lanes) -> Lanes:
    return lanes.spread(value) if value.ndim else value


OUT_OF_BOUNDS, MISALIGNED = "out-of-bounds", "misaligned"
ADDRESS_SPACE, READ_ONLY = "address-space", "read-only"
"""What may be wrong with an access."""


class BadAccess(NamedTuple):
    """Lanes of one access with an invalid address.

    Attributes:
        kind: Name of the hazard.
        relative: Bytes from the start of ``home`` to the first such lane's address.
        home: The memory at or next to the address; ``None``: there is none.
        thread, block: First such lane's.
        lanes: Number of such lanes.
        what: The place in words, if it is more than an address (textures, surfaces).
        span: Lowest and highest ``relative`` of all such lanes.
        mask: Mask of such lanes.
    """

    kind: str
    site: Site
    relative: int
    home: Home | None
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    lanes: int
    what: str = ""
    span: tuple[int, int] | None = None
    mask: Mask | None = None
