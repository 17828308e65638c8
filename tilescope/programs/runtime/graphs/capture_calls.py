"""Capture of streams into graphs."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from ..calls import signed, stands_in_for
from ..errors import (
    CAPTURE_INVALIDATED,
    CAPTURE_UNJOINED,
    CAPTURE_UNMATCHED,
    CAPTURE_UNSUPPORTED,
    INVALID_VALUE,
    SUCCESS,
)
from ..state import Runtime
from .graph import CapturedGraph, GraphNode, StreamCapture

_NONE, _ACTIVE, _INVALIDATED = range(3)
"""Of ``cudaStreamCaptureStatus``."""


def nodes_at(runtime: Runtime, table: int, count: int) -> list[GraphNode]:
    """Return nodes whose handles stand in an array of the program.

    Raises:
        UnknownGraphError: One is none.
    """
    raw = runtime.process.read(table, 8 * count) if count else b""
    words = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]
    return [runtime.graphs.node(word) for word in words]


def _begin(
    runtime: Runtime, stream: int, graph: CapturedGraph, after: list[GraphNode], mode: int
) -> int:
    handle, captures = runtime.stream(stream), runtime.graphs.captures
    runtime.streams.find(handle)
    if not handle or handle in captures:
        return CAPTURE_UNSUPPORTED
    if not 0 <= signed(mode) <= 2:
        return INVALID_VALUE
    captures[handle] = StreamCapture(
        graph, handle, signed(mode), {handle: after}, runtime.frame.thread
    )
    return SUCCESS


@stands_in_for("cudaStreamBeginCapture")
def begin_capture(runtime: Runtime, stream: int, mode: int, *_: int) -> int:
    return _begin(runtime, stream, CapturedGraph(), [], mode)


@stands_in_for("cudaStreamBeginCaptureToGraph")
def begin_capture_to_graph(
    runtime: Runtime, stream: int, graph: int, after: int, edges: int, count: int, mode: int
) -> int:
    found = runtime.graphs.graph(graph)
    return _begin(runtime, stream, found, nodes_at(runtime, after, count), mode)


@stands_in_for("cudaStreamEndCapture")
def end_capture(runtime: Runtime, stream: int, out: int, *_: int) -> int:
    handle, tables = runtime.stream(stream), runtime.graphs
    capture = tables.captures.get(handle)
    if capture is None:
        return INVALID_VALUE
    if capture.origin != handle:
        capture.is_valid = False
        return CAPTURE_UNMATCHED
    for joined in capture.tails:
        tables.captures.pop(joined, None)
    tables.events = {e: of for e, of in tables.events.items() if of[0] is not capture}
    runtime.put(out, 0)
    if not capture.is_valid:
        return CAPTURE_INVALIDATED
    if capture.unjoined:
        return CAPTURE_UNJOINED
    runtime.put(out, tables.enter(capture.graph).handle)
    return SUCCESS


def _status(capture: StreamCapture | None) -> int:
    if capture is None:
        return _NONE
    return _ACTIVE if capture.is_valid else _INVALIDATED


@stands_in_for("cudaStreamIsCapturing")
def is_capturing(runtime: Runtime, stream: int, out: int, *_: int) -> None:
    handle = runtime.stream(stream)
    runtime.streams.find(handle)
    runtime.put(out, _status(runtime.graphs.captures.get(handle)), 4)


@stands_in_for("cudaStreamGetCaptureInfo", "cudaStreamGetCaptureInfo_v2",
               "cudaStreamGetCaptureInfo_v3")  # fmt: skip
def capture_info(
    runtime: Runtime, stream: int, status: int, number: int, graph: int, table: int, sixth: int
) -> int:
    """Write the nodes' table, which belongs to the runtime, to memory of the program."""
    handle = runtime.stream(stream)
    runtime.streams.find(handle)
    capture = runtime.graphs.captures.get(handle)
    runtime.put(status, _status(capture), 4)
    if capture is None:
        return SUCCESS
    if runtime.version == 12 and runtime.name == "cudaStreamGetCaptureInfo":
        graph = table = count_at = 0
    elif runtime.name.endswith("_v2"):
        count_at = sixth
    else:
        (count_at,) = runtime.stack_words(1)
    nodes = capture.tails[handle]
    if number:
        runtime.put(number, capture.number)
    if graph:
        runtime.graphs.graphs.setdefault(capture.graph.handle, capture.graph)
        runtime.put(graph, capture.graph.handle)
    if table:
        raw = b"".join(node.handle.to_bytes(8, "little") for node in nodes)
        runtime.put(table, runtime.connection.store_bytes(raw))
    if count_at:
        runtime.put(count_at, len(nodes))
    return SUCCESS


@stands_in_for("cudaStreamUpdateCaptureDependencies", "cudaStreamUpdateCaptureDependencies_v2")
def update_dependencies(
    runtime: Runtime, stream: int, table: int, third: int, fourth: int, fifth: int, *_: int
) -> int:
    is_old = runtime.version == 12 and not runtime.name.endswith("_v2")
    count, flags = (third, fourth) if is_old else (fourth, fifth)
    handle = runtime.stream(stream)
    capture = runtime.graphs.captures.get(handle)
    if capture is None:
        return INVALID_VALUE
    nodes = nodes_at(runtime, table, count)
    capture.tails[handle] = nodes if flags & 1 else [*capture.tails[handle], *nodes]
    return SUCCESS


@stands_in_for("cudaThreadExchangeStreamCaptureMode")
def exchange_mode(runtime: Runtime, mode: int, *_: int) -> None:
    before = runtime.capture_modes.get(runtime.frame.thread, 0)
    given = int.from_bytes(runtime.process.read(mode, 4), "little")
    runtime.capture_modes[runtime.frame.thread] = given
    runtime.put(mode, before, 4)
