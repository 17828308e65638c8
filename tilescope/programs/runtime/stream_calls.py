"""Streams, events, and what the host waits for."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct

from .calls import stands_in_for
from .errors import SUCCESS
from .state import Runtime


@stands_in_for("cudaDeviceSynchronize", "cudaThreadSynchronize")
def device_synchronize(runtime: Runtime, *_: int) -> int:
    runtime.machine.order.synchronize()
    return runtime.sticky


@stands_in_for("cudaStreamCreate")
def stream_create(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, runtime.streams.cuStreamCreate(0))


@stands_in_for("cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority")
def stream_create_with_flags(runtime: Runtime, out: int, flags: int, *_: int) -> None:
    runtime.put(out, runtime.streams.cuStreamCreate(flags & 0xFFFFFFFF))


@stands_in_for("cudaStreamDestroy", "cudaEventDestroy")
def destroy(runtime: Runtime, *_: int) -> int:
    return SUCCESS


@stands_in_for("cudaStreamSynchronize", "cudaStreamQuery")
def stream_synchronize(runtime: Runtime, stream: int, *_: int) -> int:
    runtime.streams.cuStreamSynchronize(stream)
    return runtime.sticky


@stands_in_for("cudaStreamWaitEvent")
def stream_wait_event(runtime: Runtime, stream: int, event: int, *_: int) -> None:
    runtime.streams.cuStreamWaitEvent(stream, event)


@stands_in_for("cudaStreamIsCapturing")
def is_capturing(runtime: Runtime, stream: int, out: int, *_: int) -> None:
    runtime.put(out, 0, 4)


@stands_in_for("cudaEventCreate", "cudaEventCreateWithFlags")
def event_create(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, runtime.streams.cuEventCreate(0))


@stands_in_for("cudaEventRecord", "cudaEventRecordWithFlags")
def event_record(runtime: Runtime, event: int, stream: int, *_: int) -> None:
    runtime.streams.cuEventRecord(event, stream)


@stands_in_for("cudaEventSynchronize", "cudaEventQuery")
def event_synchronize(runtime: Runtime, event: int, *_: int) -> int:
    runtime.streams.cuEventSynchronize(event)
    return runtime.sticky


@stands_in_for("cudaEventElapsedTime", "cudaEventElapsedTime_v2")
def elapsed_time(runtime: Runtime, out: int, start: int, end: int, *_: int) -> None:
    """Not a number: nothing was timed."""
    runtime.streams.check_recorded(start, end)
    runtime.process.write(out, struct.pack("<f", float("nan")))


@stands_in_for("cudaLaunchHostFunc")
def launch_host_function(runtime: Runtime, stream: int, function: int, data: int, *_: int) -> int:
    runtime.streams.cuStreamSynchronize(stream)
    runtime.connection.call(function, data)
    return SUCCESS


@stands_in_for("cudaStreamAddCallback")
def stream_add_callback(runtime: Runtime, stream: int, function: int, data: int, *_: int) -> int:
    runtime.streams.cuStreamSynchronize(stream)
    runtime.connection.call(function, stream, 0, data)
    return SUCCESS
