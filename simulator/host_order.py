"""Happens-before between launches and copies: streams, events and host synchronisation.

Every operation has a number. A stream, an event and the host have a vector clock each: for each
stream the last operation that is known to be complete (CUDA C++ Programming Guide, "Streams",
"Events"). Work in the legacy default stream waits for all earlier work in blocking streams, and
these wait for it; non-blocking streams are independent of it (CUDA Driver API, "Stream
synchronization behavior").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .hazards.hazard import Hazard, Participant, Source
from .hazards.kinds import HOST_ORDER
from .hazards.participants import ROLES
from .observe.checks.array_footprint import ArrayFootprint

Clock = dict[int, int]
"""By the number of a stream, the last of its pieces of work that is done before."""
_VERBS = {"load": "reads", "peek": "reads", "store": "writes", "atomic": "updates"}
_TOGETHER = {frozenset(some) for some in (
    ("load",), ("load", "peek"), ("peek",), ("atomic",), ("atomic", "peek")
)}  # fmt: skip
"""What needs no order: reads, and accesses that are all strong (atomic)."""


class Stream:
    """Queue of operations; as a context manager it becomes the current stream for launches.

    Args:
        order: The order that the stream belongs to.
        number: The stream's number; 0 is the legacy default stream.
        blocking: Whether the stream synchronises with the legacy default stream.
    """

    def __init__(self, order: Order, number: int, blocking: bool = True) -> None:
        self._order, self.number, self.blocking = order, number, blocking
        self.clock: Clock = {}
        self._within: list[Any] = []

    def __str__(self) -> str:
        return f"stream {self.number}" if self.number else "the default stream"

    def __enter__(self) -> Stream:
        self._within.append(self._order.on(self))
        self._within[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._within.pop().__exit__(*error)

    def begins(self) -> Clock:
        """Return the clock of operations that complete before work enqueued now."""
        every = [self._order.host, self.clock]
        if not self.number:
            every += [other.clock for other in self._order.streams if other.blocking]
        elif self.blocking:
            every.append(self._order.legacy.clock)
        return _both(*every)

    def record(self) -> Clock:
        """Return an event that completes after all work enqueued so far."""
        return self.begins()

    def wait(self, for_what: Stream | Clock) -> None:
        """Make later work wait for an event, or for all work enqueued in a stream."""
        event = for_what.record() if isinstance(for_what, Stream) else for_what
        self.clock = _both(self.begins(), event)

    def synchronize(self) -> None:
        """Make the host wait for all work of the stream."""
        self._order.waits(self.record())


@dataclass
class _ArrayWork:
    """An operation and one array that it accessed."""

    number: int
    stream: Stream
    what: str
    source: Source
    touched: ArrayFootprint
    hazards: list[Hazard]


@dataclass
class Order:
    """Operations so far and their happens-before order.

    Attributes:
        streams: All streams, the legacy default stream first.
        host: The host's clock.
        hazards: Findings between two operations neither of which is a launch.
    """

    streams: list[Stream] = field(default_factory=list)
    host: Clock = field(default_factory=dict)
    hazards: list[Hazard] = field(default_factory=list)
    _past: list[_ArrayWork] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.legacy = self.current = self.stream()

    def stream(self, blocking: bool = True) -> Stream:
        """Create a stream."""
        self.streams.append(Stream(self, len(self.streams), blocking))
        return self.streams[-1]

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        """Enqueue the operations inside a ``with`` into a stream."""
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def waits(self, event: Clock) -> None:
        """Make the host wait for an event."""
        self.host = _both(self.host, event)

    def synchronize(self) -> None:
        """Make the host wait for all work."""
        self.waits(_both(*(stream.record() for stream in self.streams)))

    def by_host(self, source: Source, touched: Iterable[ArrayFootprint]) -> None:
        """Check an access by the host itself against the work that it has not waited for."""
        mine = [_ArrayWork(0, self.legacy, _HOST, source, one, self.hazards) for one in touched]
        late = [w for w in self._past if self.host.get(w.stream.number, 0) < w.number]
        for now, then in itertools.product(mine, late):
            if then.touched.exists() and (found := _clash(now, then)) is not None:
                then.hazards.insert(0, found)
                return

    def work(
        self, what: str, source: Source, touched: Iterable[ArrayFootprint],
        hazards: list[Hazard] | None = None,
    ) -> None:  # fmt: skip
        """Enqueue an operation into the current stream and check it against earlier operations.

        ``what`` names it in reports, such as ``the launch of k``. Findings are added to
        ``hazards``, the list of the launch; without it, to the list of the earlier operation.
        """
        stream, number = self.current, next(self._count)
        before = stream.begins()
        stream.clock = before | {stream.number: number}
        self._past = [
            work for work in self._past
            if work.touched.exists() and self.host.get(work.stream.number, 0) < work.number
        ]  # fmt: skip
        mine = [
            _ArrayWork(
                number, stream, what, source, one, self.hazards if hazards is None else hazards
            )
            for one in touched
        ]
        said = set()
        unordered = [w for w in self._past if before.get(w.stream.number, 0) < w.number]
        for now, then in itertools.product(mine, unordered):
            key = then.number, now.touched.name
            if key not in said and (found := _clash(now, then)) is not None:
                said.add(key)
                (then if hazards is None else now).hazards.insert(0, found)
        self._past = [w for w in self._past if not any(_replaces(n, w) for n in mine)] + mine


_HOST = "the host"


def _both(*clocks: Clock) -> Clock:
    made: Clock = {}
    for clock in clocks:
        for stream, number in clock.items():
            made[stream] = max(number, made.get(stream, 0))
    return made


def _replaces(now: _ArrayWork, then: _ArrayWork) -> bool:
    """Whether a wait for the later operation implies one for the earlier, and covers it."""
    one, other = now.touched, then.touched
    return (
        (now.stream, one.address, one.how) == (then.stream, other.address, other.how)
        and np.array_equal(one.starts, other.starts)
        and np.array_equal(one.stops, other.stops)
    )


def untimely(hazards: Iterable[Hazard]) -> list[Hazard]:
    """Return the hazards of the order between launches."""
    return [hazard for hazard in hazards if hazard.kind == HOST_ORDER.name]


def _clash(now: _ArrayWork, then: _ArrayWork) -> Hazard | None:
    """Return the hazard of two unordered operations on one array; ``None`` if none."""
    mine, theirs = now.touched, then.touched
    if frozenset((mine.how, theirs.how)) in _TOGETHER:
        return None
    place = _meeting(mine, theirs)
    if place is None:
        return None
    element = (place - mine.address) // mine.itemsize
    text = HOST_ORDER.message.format(
        who=now.what, verb=_VERBS[mine.how], place=f"{mine.name}[{element}]",
        word=f"{then.what} {_VERBS[theirs.how]}",
    )  # fmt: skip
    involved = tuple(
        Participant(ROLES.get(work.touched.how, "read"), work.source, work.what, 0)
        for work in (now, then)
    )
    if now.what == _HOST:
        notes = (f"{then.what} is in {then.stream}", HOST_ORDER.case("host").note)
    else:
        note = HOST_ORDER.case("streams").note
        notes = (f"{now.what} is in {now.stream}, {then.what} in {then.stream}", note)
    return Hazard(
        HOST_ORDER.name, text, space="global", variable=mine.name, element=element,
        involved=involved, notes=notes,
    )  # fmt: skip


def _meeting(one: ArrayFootprint, other: ArrayFootprint) -> int | None:
    """Return the first byte that both operations access."""
    if not len(one.starts) or not len(other.starts):
        return None
    at = np.searchsorted(other.stops, one.starts, side="right")
    inside = np.flatnonzero(other.starts[np.minimum(at, len(other.stops) - 1)] < one.stops)
    inside = inside[at[inside] < len(other.stops)]
    if not inside.size:
        return None
    first = inside[0]
    return int(max(one.starts[first], other.starts[at[first]]))
