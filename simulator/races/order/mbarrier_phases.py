"""Happens-before by ``mbarrier``: a waiting thread acquires what a phase's arrivals release.

Arrivals are releases and waits are acquires of the barrier's scope (PTX ISA, "mbarrier"). Often one
elected thread arrives or waits for others; therefore the clocks are kept for each pair of threads.
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
    """Yield the barriers that lanes address, with the threads at each."""
    on, address = g.full(as_mask(lanes)), g.full(base)
    for column in np.flatnonzero(on.any(axis=0)).tolist():
        threads = np.flatnonzero(on[:, column])
        there = address[threads, column] + offset
        for at in unique(there).tolist():
            yield (column, at), threads[there == at]


def barrier_number(column: Rows | int, address: Rows | int) -> Rows:
    """Return a number for an mbarrier, from its block's column and its address."""
    number: Rows = np.left_shift(column, _ADDRESS, dtype=np.int64) | address
    return number


class PhaseArrival(NamedTuple):
    """Arrivals of a block's threads at an mbarrier, in their order.

    Attributes:
        place: The barrier.
        column: Column of the threads' block.
        end: Position of the arrival that completes the phase, if any.
    """

    place: Key
    threads: Flat
    column: int
    end: int | None


def arrivals(event: AccessEvent, g: Geometry) -> Iterator[PhaseArrival]:
    """Yield the barriers at which lanes arrive, block by block."""
    assert event.old is not None
    assert event.values is not None
    assert not isinstance(event.address, LaneAddressList)
    column, thread = np.nonzero(g.full(as_mask(event.mask)).T)

    def pick(value: Lanes) -> Lanes:  # of the lanes that wait, in a quarter of the time
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
    """Clocks of a batch's threads as far as they come from mbarriers.

    Attributes:
        epochs: ``(threads, threads, columns)``, int64: epoch of the second thread in the first
            thread's clock.
    """

    def __init__(self, threads: int, columns: int) -> None:
        self._epochs: NDArray[np.int64] = np.zeros((columns, threads, threads), np.int64)
        self.epochs = self._epochs.transpose(1, 2, 0)
        self._open: dict[Key, Flat] = {}
        self._ended: dict[Key, Flat] = {}
        self._brought: dict[int, Rows] = {}

    def of(self, mine: Flat, other: Flat, column: Flat) -> Flat:
        """Return ``epochs`` of pairs; one flat index takes half the time of three."""
        threads = self._epochs.shape[1]
        found: Flat = self._epochs.reshape(-1).take((column * threads + mine) * threads + other)
        return found

    def arrive(self, key: Key, known: Rows, end: int | None) -> None:
        """Handle arrivals of a block's threads, in their order.

        Args:
            key: The barrier.
            known: Released clocks, ``(arriving, threads)``: epochs of the block's threads,
                including the arriving one.
            end: Position of the arrival that completes the phase.
        """
        cut = len(known) if end is None else end + 1
        self._hear(key, known[:cut])
        if end is not None:
            self.end(key)
            self._hear(key, known[cut:])

    def end(self, key: Key) -> None:
        """Handle the completion of a phase."""
        self._ended[key] = self._open.pop(key, np.zeros(self.epochs.shape[0], np.int64))

    def _hear(self, key: Key, known: Rows) -> None:
        if len(known):
            heard = self._open.setdefault(key, np.zeros(self.epochs.shape[0], np.int64))
            np.maximum(heard, known.max(axis=0), out=heard)

    def over(self, key: Key) -> Flat | None:
        """Return the clock that the last complete phase releases."""
        return self._ended.get(key)

    def wait(self, column: int, threads: Flat, over: Flat | None) -> None:
        """Handle threads of a block that observe a complete phase."""
        if over is not None:
            epochs = self._epochs[column]
            epochs[threads] = np.maximum(epochs[threads], over)

    def carry_arrivals(self, number: int, lanes: Rows, times: Rows) -> None:
        """Handle arrivals at a named barrier: the next waiting threads acquire the threads' clocks.

        They also acquire the arriving threads' own accesses up to ``times``, ``(threads,
        columns)``.
        """
        epochs = np.maximum(np.where(lanes[:, None, :], self.epochs, 0).max(axis=0), times)
        self._brought[number] = np.maximum(self._brought.get(number, epochs), epochs)

    def meet_at(self, number: int, lanes: Rows) -> None:
        """Handle the release of a named barrier, including the threads that only arrived."""
        self.meet(lanes, len(lanes))
        brought = self._brought.get(number)
        if brought is not None:
            met = lanes.any(axis=0)
            np.copyto(self.epochs, np.maximum(self.epochs, brought), where=lanes[:, None, :])
            brought[:, met] = 0

    def meet(self, lanes: Rows, size: int) -> None:
        """Handle a barrier of warps or blocks: every participant gets the join of their clocks.

        Args:
            lanes: Mask of the participants, ``(threads, columns)``.
            size: Number of adjacent threads that meet: a warp's or the whole block's.
        """
        for first in range(0, len(lanes), size):
            there = lanes[first : first + size]
            epochs = self.epochs[first : first + size]
            joined = np.where(there[:, None, :], epochs, 0).max(axis=0)
            np.copyto(epochs, np.maximum(epochs, joined), where=there[:, None, :])
