"""What copies in bulk cost: each lane's is a request of its own (``docs/counters.md``)."""

import numpy as np

from ..geometry import Flat
from ..memory.event import Event, Spread
from ..memory.words import distinct


def bulk_cost(event: Event, columns: int, sector: int) -> Flat:
    """The figures of one access, in the order of ``counters.Traffic``.

    ``columns``: blocks of the batch; ``sector``: bytes of a sector of global memory.
    """
    where, size = event.address, event.site.size
    assert isinstance(where, Spread)
    copy = where.thread * columns + where.column
    elements = np.bincount(copy)
    elements = elements[elements > 0]
    copies, nbytes = len(elements), len(copy) * size
    sectors = ideal = 0
    if event.space == "global":
        at = (where.address + np.int64(event.site.offset)) // sector
        at -= at.min(initial=0)
        sectors = distinct(copy * (at.max(initial=0) + 1) + at).size
        ideal = int((-(-elements * size // sector)).sum())
    return np.array((copies, copies, nbytes, nbytes, sectors, 0, 0, ideal), np.int64)
