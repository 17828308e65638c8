"""Streams and events of ``cuda.bindings.driver``: handles, and the order that they make."""

# ruff: noqa: D102 - the driver's own documents say what its calls do

from typing import Any

from simulator.host_order import Stream

from ..host_calls.graphs import CaptureError
from .virtual_device import SimulatedEvent, VirtualDevice

_PER_THREAD = 2
"""The handle of the per-thread default stream; those of the legacy one are 0 and 1."""
_FIRST = 16
_NON_BLOCKING = 1


class UnknownHandleError(ValueError):
    """A stream or an event that was never created."""


class Streams:
    """Driver calls on streams and events; calls that create one return its handle."""

    def __init__(self, machine: VirtualDevice) -> None:
        self._machine = machine
        legacy = machine.order.legacy
        self._streams: dict[int, Stream] = {0: legacy, 1: legacy}
        self._events: dict[int, SimulatedEvent] = {}

    def find(self, handle: Any) -> Stream:
        """Return a stream by its handle.

        Raises:
            UnknownHandleError: There is none.
        """
        number = int(handle or 0)
        if number == _PER_THREAD and number not in self._streams:
            self._streams[number] = self._machine.order.stream()
        if number not in self._streams:
            raise UnknownHandleError(f"{handle!r} is no stream of this script")
        return self._streams[number]

    def handle_of(self, stream: Stream) -> int:
        """Return a stream's handle; one that another front end has made gets one."""
        for handle, known in self._streams.items():
            if known is stream:
                return handle
        handle = _FIRST + len(self._streams)
        self._streams[handle] = stream
        return handle

    def event(self, handle: Any) -> SimulatedEvent:
        """Return an event by its handle; raises as ``find`` does."""
        if int(handle) not in self._events:
            raise UnknownHandleError(f"{handle!r} is no event of this script")
        return self._events[int(handle)]

    def check_recorded(self, *handles: Any) -> None:
        """Hold events to be recorded, which their times take.

        Raises:
            UnknownHandleError: One is not.
        """
        for handle in handles:
            if not self.event(handle).is_recorded:
                raise UnknownHandleError(f"event {handle!r} is not recorded")

    def cuStreamCreate(self, flags: Any, priority: int = 0) -> int:
        handle = _FIRST + len(self._streams)
        self._streams[handle] = self._machine.order.stream(not int(flags) & _NON_BLOCKING)
        return handle

    cuStreamCreateWithPriority = cuStreamCreate

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: int = 0) -> None:
        self.event(event).wait(self.find(stream))

    def cuStreamSynchronize(self, stream: Any) -> None:
        queue = self.find(stream)
        if self._machine.captures.of(queue):
            raise CaptureError("a captured stream is waited for")
        queue.synchronize()

    cuStreamQuery = cuStreamSynchronize

    def cuCtxSynchronize(self) -> None:
        self._machine.order.synchronize()

    def cuEventCreate(self, flags: Any) -> int:
        handle = _FIRST + len(self._events)
        self._events[handle] = SimulatedEvent(self._machine)
        return handle

    def cuEventRecord(self, event: Any, stream: Any, flags: int = 0) -> None:
        self.event(event).record(self.find(stream))

    cuEventRecordWithFlags = cuEventRecord

    def cuEventSynchronize(self, event: Any) -> None:
        self.event(event).synchronize()

    cuEventQuery = cuEventSynchronize

    def cuEventElapsedTime(self, start: Any, end: Any) -> float:
        return self.event(start).elapsed_time(self.event(end))
