"""Streams, events, host functions, and what the host waits for."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from simulator.host_order import Stream

from .calls import signed, stands_in_for
from .errors import (
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_MERGE,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    INVALID_RESOURCE_HANDLE,
    INVALID_VALUE,
    SUCCESS,
)
from .state import Runtime
from .work import HOST, RECORD_EVENT, WAIT_EVENT, StreamWork

_NO_TIMING, _EXTERNAL = 2, 1
"""Of ``cudaEventCreateWithFlags``, and of ``cudaEventRecordWithFlags``."""


def _invalidates(runtime: Runtime, handle: int) -> int:
    """Return the error of a call that waits for a stream which is captured; else success."""
    capture = runtime.graphs.captures.get(handle)
    if capture is None:
        return SUCCESS
    capture.is_valid = False
    return CAPTURE_UNSUPPORTED


@stands_in_for("cudaDeviceSynchronize", "cudaThreadSynchronize")
def device_synchronize(runtime: Runtime, *_: int) -> int:
    for handle in runtime.graphs.captures:
        return _invalidates(runtime, handle)
    runtime.machine.order.synchronize()
    return runtime.sticky


def _create(runtime: Runtime, out: int, flags: int, priority: int) -> None:
    handle = runtime.streams.cuStreamCreate(flags)
    runtime.stream_settings[handle] = flags, max(-5, min(priority, 0))
    runtime.put(out, handle)


@stands_in_for("cudaStreamCreate")
def stream_create(runtime: Runtime, out: int, *_: int) -> None:
    _create(runtime, out, 0, 0)


@stands_in_for("cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority")
def stream_create_with_flags(runtime: Runtime, out: int, flags: int, priority: int, *_: int) -> int:
    if flags & 0xFFFFFFFF > 1:
        return INVALID_VALUE
    _create(runtime, out, flags & 0xFFFFFFFF,
            signed(priority) if "Priority" in runtime.name else 0)  # fmt: skip
    return SUCCESS


@stands_in_for("cudaStreamGetFlags", "cudaStreamGetPriority")
def stream_setting(runtime: Runtime, stream: int, out: int, *_: int) -> None:
    runtime.streams.find(runtime.stream(stream))
    flags, priority = runtime.stream_settings.get(stream, (0, 0))
    runtime.put(out, flags if runtime.name == "cudaStreamGetFlags" else priority, 4)


@stands_in_for("cudaStreamGetId")
def stream_id(runtime: Runtime, stream: int, out: int, *_: int) -> None:
    runtime.put(out, runtime.streams.find(runtime.stream(stream)).number + 1)


@stands_in_for("cudaStreamGetDevice")
def stream_device(runtime: Runtime, stream: int, out: int, *_: int) -> None:
    runtime.streams.find(runtime.stream(stream))
    runtime.put(out, 0, 4)


@stands_in_for("cudaStreamSetAttribute", "cudaStreamCopyAttributes")
def stream_hint(runtime: Runtime, stream: int, *_: int) -> None:
    runtime.streams.find(runtime.stream(stream))


@stands_in_for("cudaStreamGetAttribute")
def stream_attribute(runtime: Runtime, stream: int, attribute: int, out: int, *_: int) -> None:
    runtime.streams.find(runtime.stream(stream))
    runtime.process.write(out, bytes(64))


@stands_in_for("cudaStreamDestroy")
def stream_destroy(runtime: Runtime, stream: int, *_: int) -> int:
    if not runtime.stream(stream):
        return INVALID_RESOURCE_HANDLE
    runtime.streams.find(stream)
    return SUCCESS


@stands_in_for("cudaEventDestroy")
def event_destroy(runtime: Runtime, event: int, *_: int) -> int:
    return SUCCESS if event in runtime.event_flags else INVALID_RESOURCE_HANDLE


@stands_in_for("cudaStreamSynchronize", "cudaStreamQuery")
def stream_synchronize(runtime: Runtime, stream: int, *_: int) -> int:
    handle = runtime.stream(stream)
    if code := _invalidates(runtime, handle):
        return code
    runtime.streams.cuStreamSynchronize(handle)
    return runtime.sticky


# -- events ------------------------------------------------------------------------------


@dataclass
class EventWait(StreamWork):
    """Stream work that waits for an event."""

    event: int
    node_type: ClassVar[int] = WAIT_EVENT

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        runtime.streams.event(self.event).wait(queue)
        return SUCCESS


@dataclass
class EventRecord(StreamWork):
    """An event is recorded in a stream."""

    event: int
    node_type: ClassVar[int] = RECORD_EVENT

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        runtime.streams.event(self.event).record(queue)
        return SUCCESS


@stands_in_for("cudaStreamWaitEvent")
def stream_wait_event(runtime: Runtime, stream: int, event: int, flags: int, *_: int) -> int:
    handle, tables = runtime.stream(stream), runtime.graphs
    runtime.streams.find(handle)
    if event not in runtime.event_flags:
        return INVALID_RESOURCE_HANDLE
    captured, mine = tables.events.get(event), tables.captures.get(handle)
    if captured is not None:
        capture, nodes = captured
        if not capture.is_valid:
            return CAPTURE_INVALIDATED
        if mine is not None and mine is not capture:
            return CAPTURE_MERGE
        tables.captures[handle] = capture  # the stream joins the capture
        known = capture.tails.get(handle, [])
        capture.tails[handle] = list(dict.fromkeys([*known, *nodes]))
        return SUCCESS
    if mine is not None:
        if flags & _EXTERNAL:
            return runtime.enqueue(stream, EventWait(runtime.source, event))
        if runtime.streams.event(event).is_recorded:
            mine.is_valid = False
            return CAPTURE_ISOLATION
        return SUCCESS
    return runtime.enqueue(stream, EventWait(runtime.source, event))


@stands_in_for("cudaEventCreate", "cudaEventCreateWithFlags")
def event_create(runtime: Runtime, out: int, flags: int, *_: int) -> None:
    handle = runtime.streams.cuEventCreate(0)
    runtime.event_flags[handle] = flags & 0xFF if "Flags" in runtime.name else 0
    runtime.put(out, handle)


@stands_in_for("cudaEventRecord", "cudaEventRecordWithFlags")
def event_record(runtime: Runtime, event: int, stream: int, flags: int, *_: int) -> int:
    handle, tables = runtime.stream(stream), runtime.graphs
    if event not in runtime.event_flags:
        return INVALID_RESOURCE_HANDLE
    capture = tables.captures.get(handle)
    if capture is None:
        tables.events.pop(event, None)
        return runtime.enqueue(stream, EventRecord(runtime.source, event))
    if "Flags" in runtime.name and flags & _EXTERNAL:
        return runtime.enqueue(stream, EventRecord(runtime.source, event))
    if not capture.is_valid:
        return CAPTURE_INVALIDATED
    tables.events[event] = capture, list(capture.tails[handle])
    return SUCCESS


@stands_in_for("cudaEventSynchronize", "cudaEventQuery")
def event_synchronize(runtime: Runtime, event: int, *_: int) -> int:
    if event in runtime.graphs.events:
        runtime.graphs.events[event][0].is_valid = False
        return CAPTURED_EVENT
    runtime.streams.cuEventSynchronize(event)
    return runtime.sticky


@stands_in_for("cudaEventElapsedTime", "cudaEventElapsedTime_v2")
def elapsed_time(runtime: Runtime, out: int, start: int, end: int, *_: int) -> int:
    """Predicted time with ``--predict``, not a number without: nothing is timed."""
    runtime.streams.check_recorded(start, end)
    if (runtime.event_flags.get(start, 0) | runtime.event_flags.get(end, 0)) & _NO_TIMING:
        return INVALID_RESOURCE_HANDLE
    first, last = runtime.streams.event(start), runtime.streams.event(end)
    runtime.process.write(out, struct.pack("<f", first.elapsed_time(last)))
    return SUCCESS


# -- functions of the host ----------------------------------------------------------------


@dataclass
class HostCall(StreamWork):
    """A function of the program, called when a stream's earlier work is done.

    Attributes:
        function: Its address; ``arguments``: what it is called with, up to three words.
    """

    function: int
    arguments: tuple[int, ...]
    node_type: ClassVar[int] = HOST

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``. The function sees what the stream did; the caller does not wait."""
        runtime.connection.call(self.function, *self.arguments)
        return SUCCESS


@stands_in_for("cudaLaunchHostFunc")
def launch_host_function(runtime: Runtime, stream: int, function: int, data: int, *_: int) -> int:
    return runtime.enqueue(stream, HostCall(runtime.source, function, (data,)))


@stands_in_for("cudaStreamAddCallback")
def stream_add_callback(runtime: Runtime, stream: int, function: int, data: int, *_: int) -> int:
    if runtime.stream(stream) in runtime.graphs.captures:
        return _invalidates(runtime, runtime.stream(stream))
    return runtime.enqueue(stream, HostCall(runtime.source, function, (stream, 0, data)))
