"""Graphs of work: what streams are given while they are captured, to be executed by a launch.

A stream whose capture begins, and every stream that waits for an event of it, hands its work to
the capture. A launch of the graph executes the work in the order in which it was given, in streams
of the graph's own with the same events between them, so that races between branches are found.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simulator import Source
from simulator.host_order import Clock, Order, Stream

from ..sessions.recording import placed_at, user_line

Work = Callable[[Stream], Any]
"""Executes one operation in a stream."""


class CaptureError(RuntimeError):
    """A call that is not allowed while, or unless, its stream is captured."""


@dataclass(frozen=True)
class _Step:
    """``work``; or an event's number, which is recorded, or waited for (``waits``)."""

    stream: int
    source: Source
    work: Work | None = None
    event: int = 0
    waits: bool = False


@dataclass
class WorkGraph:
    """Work recorded for a graph.

    Attributes:
        steps: In the order in which they were given.
        streams: Number of the streams that were captured, the first one among them.
    """

    steps: list[_Step] = field(default_factory=list)
    streams: int = 1
    _queues: list[Stream] = field(default_factory=list)

    def add(self, work: Work, stream: int = 0) -> None:
        """Append an operation."""
        self.steps.append(_Step(stream, user_line(), work))

    def record(self, event: int, stream: int) -> None:
        """Append the recording of an event."""
        self.steps.append(_Step(stream, user_line(), event=event))

    def wait(self, event: int, stream: int) -> None:
        """Append the wait of a stream for an event."""
        self.steps.append(_Step(stream, user_line(), event=event, waits=True))

    @property
    def nodes(self) -> int:
        """Number of its operations."""
        return sum(step.work is not None for step in self.steps)

    def launch(self, order: Order, stream: Stream) -> None:
        """Execute the work behind what is in a stream, which goes on behind all of it."""
        while len(self._queues) < self.streams:
            self._queues.append(order.stream(blocking=False))
        start, moments = stream.record(), dict[int, Clock]()
        for queue in self._queues:
            queue.wait(start)
        for step in self.steps:
            queue = self._queues[step.stream]
            if step.work is not None:
                with placed_at(lambda source=step.source: source):  # type: ignore[misc]
                    step.work(queue)
            elif step.waits:
                queue.wait(moments[step.event])
            else:
                moments[step.event] = queue.record()
        for queue in self._queues:
            stream.wait(queue)


@dataclass
class _Capture:
    graph: WorkGraph
    origin: Stream
    streams: dict[int, int] = field(default_factory=dict)


class Captures:
    """The captures under way, by the streams that take part."""

    def __init__(self) -> None:
        self._by_stream: dict[int, _Capture] = {}
        self._by_event: dict[int, _Capture] = {}

    def begin(self, stream: Stream, graph: WorkGraph | None = None) -> WorkGraph:
        """Begin to capture a stream, into a new graph or behind what is in one.

        Raises:
            CaptureError: It is captured already.
        """
        if self.of(stream):
            raise CaptureError("the stream is captured already")
        made = _Capture(graph or WorkGraph(), stream, {stream.number: 0})
        self._by_stream[stream.number] = made
        return made.graph

    def end(self, stream: Stream) -> WorkGraph:
        """End the capture that began with a stream.

        Raises:
            CaptureError: None did.
        """
        found = self.of(stream)
        if found is None or found.origin is not stream:
            raise CaptureError("no capture began with this stream")
        for table in (self._by_stream, self._by_event):
            for key in [key for key, one in table.items() if one is found]:
                del table[key]
        return found.graph

    def of(self, stream: Stream) -> _Capture | None:
        """Return the capture in which a stream takes part."""
        return self._by_stream.get(stream.number)

    def submit(self, stream: Stream, work: Work) -> Any:
        """Execute work in a stream and return what it does; or record it, if that is captured."""
        found = self.of(stream)
        if found is None:
            return work(stream)
        found.graph.add(work, found.streams[stream.number])
        return None

    def record(self, event: int, stream: Stream) -> bool:
        """Record an event of a captured stream; whether the stream is one."""
        found = self.of(stream)
        self._by_event.pop(event, None)
        if found is None:
            return False
        self._by_event[event] = found
        found.graph.record(event, found.streams[stream.number])
        return True

    def wait(self, event: int, stream: Stream) -> bool:
        """Have a stream wait for an event; whether that is one of a captured stream.

        The stream takes part in the capture from then on.
        """
        found = self._by_event.get(event)
        if found is None:
            return False
        if stream.number not in found.streams:
            found.streams[stream.number] = found.graph.streams
            found.graph.streams += 1
            self._by_stream[stream.number] = found
        found.graph.wait(event, found.streams[stream.number])
        return True
