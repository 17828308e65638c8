"""Order by ``mbarrier``: who waits for a phase has seen what those did that arrived in it.

Arrivals are releases and waits acquires of the barrier's scope (PTX ISA, "mbarrier"). Since one
elected thread often arrives or waits for others, this is kept for each pair of threads.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import Addresses, Flat, Geometry, Lanes, Mask, Rows, as_mask
from ...isa.memory import mbarrier
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.storage.word_ops import unique

Key = tuple[int, int]
"""A barrier: its block's column, and its address."""
Known = dict[int, Flat]
"""Up to when each thread of some blocks (by column) has been seen."""
_ADDRESS = 40
"""Bits of an address, which is of shared memory."""


def at_barriers(
    g: Geometry, lanes: Mask | None, base: Addresses, offset: int
) -> Iterator[tuple[Key, Flat]]:
    """The barriers at which lanes are, and the threads at each."""
    on, address = g.full(as_mask(lanes)), g.full(base)
    for column in np.flatnonzero(on.any(axis=0)).tolist():
        threads = np.flatnonzero(on[:, column])
        there = address[threads, column] + offset
        for at in unique(there).tolist():
            yield (column, at), threads[there == at]


def barrier_number(column: Rows | int, address: Rows | int) -> Rows:
    """A number for an mbarrier: its block's column, and its address."""
    number: Rows = np.left_shift(column, _ADDRESS, dtype=np.int64) | address
    return number


class PhaseArrival(NamedTuple):
    """Threads of a block arrive at a barrier, in their order.

    Attributes:
        place: The barrier; ``column``: the threads' block.
        end: With which of the threads the barrier's phase ends, by its place among them.
    """

    place: Key
    threads: Flat
    column: int
    end: int | None


def arrivals(event: AccessEvent, g: Geometry) -> Iterator[PhaseArrival]:
    """The barriers at which lanes arrive, block after block of theirs."""
    assert event.old is not None
    assert event.values is not None
    assert not isinstance(event.address, LaneAddressList)
    column, thread = np.nonzero(g.full(as_mask(event.mask)).T)

    def pick(value: Lanes) -> Lanes:  # of those who do, in a quarter of the time
        return g.full(value)[thread, column] if value.ndim else value

    (old,) = event.old
    before = pick(old)
    ended = (before ^ mbarrier.arrived(before, *map(pick, event.values))) >> mbarrier.PARITY & 1
    completing = np.broadcast_to(ended, thread.shape)
    homes = column if event.columns is None else pick(event.columns)
    places = barrier_number(homes, pick(event.address) + event.site.offset)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(column)], strict=True):
        own = slice(start, end)
        few = unique(places[own]).tolist()
        for place in few:
            these = own if len(few) == 1 else start + np.flatnonzero(places[own] == place)
            last = np.flatnonzero(completing[these])
            key = place >> _ADDRESS, place & (1 << _ADDRESS) - 1
            first = int(last[0]) if last.size else None
            yield PhaseArrival(key, thread[these], int(column[start]), first)


class Phases:
    """What threads have seen of each other through the barriers of one batch.

    Attributes:
        seen: ``(threads, threads, columns)``, int64: up to when the first has seen the second.
    """

    def __init__(self, threads: int, columns: int) -> None:
        self._epochs: NDArray[np.int64] = np.zeros((columns, threads, threads), np.int64)
        self.epochs = self._epochs.transpose(1, 2, 0)
        self._open: dict[Key, Flat] = {}
        self._ended: dict[Key, Flat] = {}
        self._brought: dict[int, Rows] = {}

    def of(self, mine: Flat, other: Flat, column: Flat) -> Flat:
        """``seen`` of pairs; by one index, which takes half as long as by three."""
        threads = self._epochs.shape[1]
        found: Flat = self._epochs.reshape(-1).take((column * threads + mine) * threads + other)
        return found

    def arrive(self, key: Key, known: Rows, end: int | None) -> None:
        """Threads of the block arrive, in their order.

        Args:
            key: The barrier.
            known: What each hands on: up to when of each thread of the block, itself among them,
                ``(arriving, threads)``.
            end: The one among them with whom the phase ends, by its place.
        """
        cut = len(known) if end is None else end + 1
        self._hear(key, known[:cut])
        if end is not None:
            self.end(key)
            self._hear(key, known[cut:])

    def end(self, key: Key) -> None:
        """A phase is over."""
        self._ended[key] = self._open.pop(key, np.zeros(self.epochs.shape[0], np.int64))

    def _hear(self, key: Key, known: Rows) -> None:
        if len(known):
            heard = self._open.setdefault(key, np.zeros(self.epochs.shape[0], np.int64))
            np.maximum(heard, known.max(axis=0), out=heard)

    def over(self, key: Key) -> Flat | None:
        """What its last phase that is over hands on."""
        return self._ended.get(key)

    def wait(self, column: int, threads: Flat, over: Flat | None) -> None:
        """Threads of a block see that a phase is over."""
        if over is not None:
            epochs = self._epochs[column]
            epochs[threads] = np.maximum(epochs[threads], over)

    def carry_arrivals(self, number: int, lanes: Rows, times: Rows) -> None:
        """Threads arrive at a named barrier: what they have seen is for who waits there next.

        So is what some did themselves up to ``times``, ``(threads, columns)``.
        """
        epochs = np.maximum(np.where(lanes[:, None, :], self.epochs, 0).max(axis=0), times)
        self._brought[number] = np.maximum(self._brought.get(number, epochs), epochs)

    def meet_at(self, number: int, lanes: Rows) -> None:
        """Threads of whole blocks meet at a named barrier, and who only arrived there."""
        self.meet(lanes, len(lanes))
        brought = self._brought.get(number)
        if brought is not None:
            met = lanes.any(axis=0)
            np.copyto(self.epochs, np.maximum(self.epochs, brought), where=lanes[:, None, :])
            brought[:, met] = 0

    def meet(self, lanes: Rows, size: int) -> None:
        """Threads meet: all have seen what one has.

        Args:
            lanes: Which, ``(threads, columns)``.
            size: Those of so many neighbours meet: a warp's, or the whole block's.
        """
        for first in range(0, len(lanes), size):
            there = lanes[first : first + size]
            epochs = self.epochs[first : first + size]
            joined = np.where(there[:, None, :], epochs, 0).max(axis=0)
            np.copyto(epochs, np.maximum(epochs, joined), where=there[:, None, :])
