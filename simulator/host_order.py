"""The order between launches and copies: what streams, events and the host's waits make of it.

Every piece of work has a number; a stream, an event and the host have a clock each, which says
up to which of a stream's pieces all is done before (CUDA C++ Programming Guide, "Streams",
"Events"). Work in the legacy default stream waits for all earlier work in blocking streams, and
these wait for it; it has nothing to do with non-blocking ones (CUDA Driver API, "Stream
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
    """A queue of work; as a context, launches inside are made in it.

    Args:
        order: Between whose work it stands; ``number``: 0 is the legacy default stream.
        blocking: Whether it waits for the legacy default stream, and that for it.
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
        """What is done before work that is put in now."""
        every = [self._order.host, self.clock]
        if not self.number:
            every += [other.clock for other in self._order.streams if other.blocking]
        elif self.blocking:
            every.append(self._order.legacy.clock)
        return _both(*every)

    def record(self) -> Clock:
        """An event behind all work that is in it now."""
        return self.begins()

    def wait(self, for_what: Stream | Clock) -> None:
        """Work that is put in from now on waits for an event, or for all that is in a stream."""
        event = for_what.record() if isinstance(for_what, Stream) else for_what
        self.clock = _both(self.begins(), event)

    def synchronize(self) -> None:
        """The host waits for all work that is in it."""
        self._order.waits(self.record())


@dataclass
class _ArrayWork:
    """A piece of work, and one array that it touched."""

    number: int
    stream: Stream
    what: str
    source: Source
    touched: ArrayFootprint
    hazards: list[Hazard]


@dataclass
class Order:
    """What was done so far, and what is ordered.

    Attributes:
        streams: All of them, the legacy default stream first; ``host``: the host's clock.
        hazards: What is wrong between two pieces of work that are both no launches.
    """

    streams: list[Stream] = field(default_factory=list)
    host: Clock = field(default_factory=dict)
    hazards: list[Hazard] = field(default_factory=list)
    _past: list[_ArrayWork] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.legacy = self.current = self.stream()

    def stream(self, blocking: bool = True) -> Stream:
        """A new stream."""
        self.streams.append(Stream(self, len(self.streams), blocking))
        return self.streams[-1]

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        """Work inside is put into a stream."""
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def waits(self, event: Clock) -> None:
        """The host waits for an event."""
        self.host = _both(self.host, event)

    def synchronize(self) -> None:
        """The host waits for everything."""
        self.waits(_both(*(stream.record() for stream in self.streams)))

    def by_host(self, source: Source, touched: Iterable[ArrayFootprint]) -> None:
        """The host itself reads or writes: held to the work that it has not waited for."""
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
        """A piece of work in the current stream: held to what came before it.

        ``what`` it is called in reports, ``the launch of k`` say. What is found is added to
        ``hazards``, those of the launch that it is; if it is none, to those of the earlier one.
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
    """Whether who waits for the later of two waits for the earlier as well, and for as much."""
    one, other = now.touched, then.touched
    return (
        (now.stream, one.address, one.how) == (then.stream, other.address, other.how)
        and np.array_equal(one.starts, other.starts)
        and np.array_equal(one.stops, other.stops)
    )


def untimely(hazards: Iterable[Hazard]) -> list[Hazard]:
    """Of hazards those of the order between launches."""
    return [hazard for hazard in hazards if hazard.kind == HOST_ORDER.name]


def _clash(now: _ArrayWork, then: _ArrayWork) -> Hazard | None:
    """What is wrong if nothing orders two pieces of work."""
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
    """The first byte that both touched."""
    if not len(one.starts) or not len(other.starts):
        return None
    at = np.searchsorted(other.stops, one.starts, side="right")
    inside = np.flatnonzero(other.starts[np.minimum(at, len(other.stops) - 1)] < one.stops)
    inside = inside[at[inside] < len(other.stops)]
    if not inside.size:
        return None
    first = inside[0]
    return int(max(one.starts[first], other.starts[at[first]]))
