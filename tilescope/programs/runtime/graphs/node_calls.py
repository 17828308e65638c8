"""Graphs that a program makes node by node."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from simulator.host_order import Stream

from ..calls import UnsupportedCallError, signed, stands_in_for
from ..errors import INVALID_DEVICE_FUNCTION, INVALID_SYMBOL, INVALID_VALUE, SUCCESS
from ..launches import KernelLaunch, kernel_launch
from ..memory.allocation_calls import PoolAllocation, PoolFree, allocate
from ..memory.array_calls import box_copy
from ..memory.copies import Box, Extent, MemoryCopy, MemoryFill
from ..memory.copy_calls import symbol_at
from ..state import Runtime
from ..stream_calls import EventRecord, EventWait, HostCall
from ..work import (
    GRAPH,
    HOST,
    KERNEL,
    MEM_ALLOC,
    MEM_FREE,
    MEMCPY,
    MEMSET,
    RECORD_EVENT,
    WAIT_EVENT,
    StreamWork,
)
from .capture_calls import nodes_at
from .graph import CapturedGraph, GraphNode, run_nodes

_EMPTY = 5


@dataclass
class ChildGraph(StreamWork):
    """A node that executes a graph."""

    graph: CapturedGraph
    node_type: ClassVar[int] = GRAPH

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        return run_nodes(self.graph, runtime, queue, frozenset(), [])


Parts = StreamWork | int
"""A node's work, or the error code of one that CUDA refuses."""


def kernel_node(runtime: Runtime, raw: bytes) -> Parts:
    """Read a ``cudaKernelNodeParams``."""
    function, *shape, shared, args, extra = struct.unpack_from("<Q3I3II4xQQ", raw)
    if extra:
        raise UnsupportedCallError("a kernel node with arguments in 'extra' has no stand-in")
    return kernel_launch(runtime, function, tuple(shape[:3]), tuple(shape[3:]), args, shared, {})


def memcpy_node(runtime: Runtime, raw: bytes) -> Parts:
    """Read a ``cudaMemcpy3DParms``."""
    found = box_copy(runtime, raw)
    if found is None:
        return INVALID_VALUE
    to, given, extent, kind = found
    return _copy(runtime, to, given, extent, kind)


def _copy(runtime: Runtime, to: Box, given: Box, extent: Extent, kind: int) -> MemoryCopy:
    to, given = (one.moved(runtime.device_address(one.address)) for one in (to, given))
    return MemoryCopy(runtime.source, runtime.name, to, given, extent, kind & 0xFFFFFFFF)


def memset_node(runtime: Runtime, raw: bytes) -> Parts:
    """Read a ``cudaMemsetParams``."""
    to, pitch, value, size, width, height = struct.unpack_from("<QQIIQQ", raw)
    if size not in (1, 2, 4):
        return INVALID_VALUE
    pattern = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return MemoryFill(
        runtime.source, runtime.name, Box(to, pitch), Extent(width * size, height), pattern
    )


def host_node(runtime: Runtime, raw: bytes) -> Parts:
    """Read a ``cudaHostNodeParams``."""
    function, data = struct.unpack_from("<QQ", raw)
    return HostCall(runtime.source, function, (data,))


READERS: dict[int, tuple[int, Callable[[Runtime, bytes], Parts]]] = {
    KERNEL: (56, kernel_node), MEMCPY: (160, memcpy_node), MEMSET: (40, memset_node),
    HOST: (16, host_node),
}  # fmt: skip
"""By the type of node: the bytes of its parameters, and what reads them."""
_NAMES = {"Kernel": KERNEL, "Memcpy": MEMCPY, "Memset": MEMSET, "Host": HOST}


def type_in_name(runtime: Runtime) -> int:
    """Return the type of node that the called function is about."""
    return next(kind for word, kind in _NAMES.items() if f"{word}Node" in runtime.name)


def read_node(runtime: Runtime, kind: int, address: int) -> Parts:
    """Read the parameters of a node at an address of the program."""
    nbytes, reader = READERS[kind]
    return reader(runtime, runtime.process.read(address, nbytes))


def _add(runtime: Runtime, out: int, graph: int, before: Iterable[GraphNode], work: Parts) -> int:
    found = runtime.graphs.graph(graph)
    if isinstance(work, int):
        return work
    made = found.add(work, before)
    runtime.graphs.nodes[made.handle] = made
    runtime.put(out, made.handle)
    return SUCCESS


@stands_in_for("cudaGraphCreate")
def graph_create(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, runtime.graphs.enter(CapturedGraph()).handle)


@stands_in_for("cudaGraphDestroy")
def graph_destroy(runtime: Runtime, graph: int, *_: int) -> int:
    for node in runtime.graphs.graph(graph).nodes:
        runtime.graphs.nodes.pop(node.handle, None)
    del runtime.graphs.graphs[graph]
    return SUCCESS


@stands_in_for("cudaGraphClone")
def graph_clone(runtime: Runtime, out: int, graph: int, *_: int) -> None:
    made = runtime.graphs.enter(runtime.graphs.graph(graph).copy())
    runtime.put(out, made.handle)


@stands_in_for("cudaGraphNodeFindInClone")
def find_in_clone(runtime: Runtime, out: int, node: int, clone: int, *_: int) -> int:
    found = runtime.graphs.graph(clone).originals.get(runtime.graphs.node(node))
    if found is None:
        return INVALID_VALUE
    runtime.put(out, found.handle)
    return SUCCESS


@stands_in_for("cudaGraphAddKernelNode", "cudaGraphAddMemcpyNode", "cudaGraphAddMemsetNode",
               "cudaGraphAddHostNode")  # fmt: skip
def add_node_of_type(
    runtime: Runtime, out: int, graph: int, before: int, count: int, params: int, *_: int
) -> int:
    work = read_node(runtime, type_in_name(runtime), params)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddEmptyNode")
def add_empty(runtime: Runtime, out: int, graph: int, before: int, count: int, *_: int) -> int:
    work = StreamWork(runtime.source)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddChildGraphNode")
def add_child(
    runtime: Runtime, out: int, graph: int, before: int, count: int, child: int, *_: int
) -> int:
    work = ChildGraph(runtime.source, runtime.graphs.enter(runtime.graphs.graph(child).copy()))
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddEventRecordNode", "cudaGraphAddEventWaitNode")
def add_event(
    runtime: Runtime, out: int, graph: int, before: int, count: int, event: int, *_: int
) -> int:
    made = EventRecord if "Record" in runtime.name else EventWait
    return _add(runtime, out, graph, nodes_at(runtime, before, count), made(runtime.source, event))


@stands_in_for("cudaGraphAddMemcpyNode1D")
def add_memcpy_1d(
    runtime: Runtime, out: int, graph: int, before: int, count: int, to: int, given: int
) -> int:
    nbytes, kind = runtime.stack_words(2)
    work = _copy(runtime, Box(to), Box(given), Extent(nbytes), kind)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddMemcpyNodeToSymbol", "cudaGraphAddMemcpyNodeFromSymbol")
def add_memcpy_symbol(
    runtime: Runtime, out: int, graph: int, before: int, count: int, first: int, second: int
) -> int:
    nbytes, offset, kind = runtime.stack_words(3)
    is_to = runtime.name.endswith("ToSymbol")
    at = symbol_at(runtime, first if is_to else second)
    if at is None:
        return INVALID_SYMBOL
    to, given = (at + offset, second) if is_to else (first, at + offset)
    work = _copy(runtime, Box(to), Box(given), Extent(nbytes), kind)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddMemAllocNode")
def add_alloc(
    runtime: Runtime, out: int, graph: int, before: int, count: int, params: int, *_: int
) -> int:
    (nbytes,) = struct.unpack("<Q", runtime.process.read(params + 104, 8))
    address = allocate(runtime, nbytes, "device")
    if not address:
        return INVALID_VALUE
    runtime.graph_memory.add(address)
    runtime.put(params + 112, address)
    work = PoolAllocation(runtime.source, address, nbytes)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddMemFreeNode")
def add_free(
    runtime: Runtime, out: int, graph: int, before: int, count: int, address: int, *_: int
) -> int:
    work = PoolFree(runtime.source, address)
    return _add(runtime, out, graph, nodes_at(runtime, before, count), work)


@stands_in_for("cudaGraphAddNode", "cudaGraphAddNode_v2")
def add_node(
    runtime: Runtime, out: int, graph: int, before: int, fourth: int, fifth: int, sixth: int
) -> int:
    """CUDA 13 has data of edges before the count, CUDA 12 has not."""
    is_old = runtime.version == 12 and not runtime.name.endswith("_v2")
    count, params = (fourth, fifth) if is_old else (fifth, sixth)
    kind = int.from_bytes(runtime.process.read(params, 4), "little")
    own, nodes = params + 16, nodes_at(runtime, before, count)
    if kind in READERS:
        work = read_node(runtime, kind, own + 16 if kind == MEMCPY else own)
        return _add(runtime, out, graph, nodes, work)
    (word,) = struct.unpack("<Q", runtime.process.read(own, 8))
    if kind == _EMPTY:
        return _add(runtime, out, graph, nodes, StreamWork(runtime.source))
    if kind == GRAPH:
        copied = runtime.graphs.enter(runtime.graphs.graph(word).copy())
        return _add(runtime, out, graph, nodes, ChildGraph(runtime.source, copied))
    if kind in (RECORD_EVENT, WAIT_EVENT):
        made = EventRecord if kind == RECORD_EVENT else EventWait
        return _add(runtime, out, graph, nodes, made(runtime.source, word))
    if kind == MEM_ALLOC:
        return add_alloc(runtime, out, graph, before, count, own)
    if kind == MEM_FREE:
        return _add(runtime, out, graph, nodes, PoolFree(runtime.source, word))
    raise UnsupportedCallError(f"a node of cudaGraphNodeType {kind} has no stand-in")


# -- edges ---------------------------------------------------------------------------------


@stands_in_for("cudaGraphAddDependencies", "cudaGraphRemoveDependencies",
               "cudaGraphAddDependencies_v2", "cudaGraphRemoveDependencies_v2")  # fmt: skip
def change_edges(
    runtime: Runtime, graph: int, before: int, behind: int, fourth: int, fifth: int, *_: int
) -> int:
    is_old = runtime.version == 12 and not runtime.name.endswith("_v2")
    count = fourth if is_old else fifth
    firsts, seconds = nodes_at(runtime, before, count), nodes_at(runtime, behind, count)
    for first, second in zip(firsts, seconds, strict=True):
        if "Add" in runtime.name:
            second.before.append(first)
        elif first in second.before:
            second.before.remove(first)
        else:
            return INVALID_VALUE
    return SUCCESS


@stands_in_for("cudaGraphDestroyNode")
def destroy_node(runtime: Runtime, node: int, *_: int) -> int:
    found = runtime.graphs.node(node)
    found.graph.nodes.remove(found)
    for other in found.graph.nodes:
        other.before = [one for one in other.before if one is not found]
    del runtime.graphs.nodes[node]
    return SUCCESS


def _listed(runtime: Runtime, table: int, count_at: int, found: list[int]) -> int:
    """Give handles as CUDA does: their number, or as many as the table has room for."""
    if not table:
        runtime.put(count_at, len(found))
        return SUCCESS
    room = int.from_bytes(runtime.process.read(count_at, 8), "little")
    given = (found + [0] * room)[:room]
    runtime.process.write(table, b"".join(one.to_bytes(8, "little") for one in given))
    runtime.put(count_at, min(room, len(found)))
    return SUCCESS


@stands_in_for("cudaGraphGetNodes", "cudaGraphGetRootNodes")
def graph_nodes(runtime: Runtime, graph: int, table: int, count: int, *_: int) -> int:
    nodes = runtime.graphs.graph(graph).nodes
    roots = "Root" in runtime.name
    found = [node.handle for node in nodes if not (roots and node.before)]
    return _listed(runtime, table, count, found)


@stands_in_for("cudaGraphGetEdges", "cudaGraphGetEdges_v2")
def graph_edges(
    runtime: Runtime, graph: int, first: int, second: int, fourth: int, fifth: int, *_: int
) -> int:
    is_old = runtime.version == 12 and not runtime.name.endswith("_v2")
    count = fourth if is_old else fifth
    nodes = runtime.graphs.graph(graph).nodes
    pairs = [(one.handle, node.handle) for node in nodes for one in node.before]
    room = runtime.process.read(count, 8) if first and second else bytes(8)
    _listed(runtime, first, count, [a for a, _ in pairs])
    if second:
        runtime.process.write(count, room)
        _listed(runtime, second, count, [b for _, b in pairs])
    return SUCCESS


@stands_in_for("cudaGraphNodeGetDependencies", "cudaGraphNodeGetDependencies_v2",
               "cudaGraphNodeGetDependentNodes", "cudaGraphNodeGetDependentNodes_v2")  # fmt: skip
def node_edges(runtime: Runtime, node: int, table: int, third: int, fourth: int, *_: int) -> int:
    is_old = runtime.version == 12 and not runtime.name.endswith("_v2")
    found = runtime.graphs.node(node)
    if "Dependent" in runtime.name:
        others = [one for one in found.graph.nodes if found in one.before]
    else:
        others = found.before
    return _listed(runtime, table, third if is_old else fourth, [one.handle for one in others])


@stands_in_for("cudaGraphNodeGetType")
def node_type(runtime: Runtime, node: int, out: int, *_: int) -> None:
    runtime.put(out, runtime.graphs.node(node).work.node_type, 4)


@stands_in_for("cudaGraphChildGraphNodeGetGraph")
def child_graph(runtime: Runtime, node: int, out: int, *_: int) -> int:
    work = runtime.graphs.node(node).work
    if not isinstance(work, ChildGraph):
        return INVALID_VALUE
    runtime.put(out, work.graph.handle)
    return SUCCESS


# -- parameters of a node ------------------------------------------------------------------


@stands_in_for("cudaGraphKernelNodeSetParams", "cudaGraphMemcpyNodeSetParams",
               "cudaGraphMemsetNodeSetParams", "cudaGraphHostNodeSetParams")  # fmt: skip
def set_node(runtime: Runtime, node: int, params: int, *_: int) -> int:
    found = runtime.graphs.node(node)
    work = read_node(runtime, type_in_name(runtime), params)
    if isinstance(work, int) or work.node_type != found.work.node_type:
        return work if isinstance(work, int) else INVALID_VALUE
    found.work = work
    return SUCCESS


@stands_in_for("cudaGraphKernelNodeGetParams")
def get_kernel_node(runtime: Runtime, node: int, out: int, *_: int) -> int:
    """Write the arguments' table and their bytes to memory of the program."""
    work = runtime.graphs.node(node).work
    if not isinstance(work, KernelLaunch):
        return INVALID_VALUE
    places = [runtime.connection.store_bytes(raw) for raw in work.raws]
    table = runtime.connection.store_bytes(b"".join(at.to_bytes(8, "little") for at in places))
    raw = struct.pack("<Q3I3II4xQQ", work.function, *work.grid, *work.block, work.shared_bytes,
                      table, 0)  # fmt: skip
    runtime.process.write(out, raw)
    return SUCCESS


@stands_in_for("cudaGraphMemsetNodeGetParams")
def get_memset_node(runtime: Runtime, node: int, out: int, *_: int) -> int:
    work = runtime.graphs.node(node).work
    if not isinstance(work, MemoryFill):
        return INVALID_VALUE
    size = len(work.value)
    runtime.process.write(out, struct.pack(
        "<QQIIQQ", work.to.address, work.to.pitch, int.from_bytes(work.value, "little"), size,
        work.extent.width // size, work.extent.height,
    ))  # fmt: skip
    return SUCCESS


@stands_in_for("cudaGraphHostNodeGetParams")
def get_host_node(runtime: Runtime, node: int, out: int, *_: int) -> int:
    work = runtime.graphs.node(node).work
    if not isinstance(work, HostCall):
        return INVALID_VALUE
    runtime.process.write(out, struct.pack("<QQ", work.function, work.arguments[0]))
    return SUCCESS


@stands_in_for("cudaGraphMemcpyNodeSetParams1D")
def set_memcpy_1d(
    runtime: Runtime, node: int, to: int, given: int, nbytes: int, kind: int, *_: int
) -> int:
    found = runtime.graphs.node(node)
    if not isinstance(found.work, MemoryCopy):
        return INVALID_VALUE
    found.work = _copy(runtime, Box(to), Box(given), Extent(nbytes), kind)
    return SUCCESS


@stands_in_for("cudaGraphKernelNodeSetAttribute")
def set_kernel_attribute(runtime: Runtime, node: int, kind: int, value: int, *_: int) -> int:
    work = runtime.graphs.node(node).work
    if not isinstance(work, KernelLaunch):
        return INVALID_DEVICE_FUNCTION
    words = struct.unpack("<3I", runtime.process.read(value, 12))
    if signed(kind) == 4:
        runtime.graphs.node(node).work = replace(work, how=work.how | {"cluster": words})
    elif signed(kind) == 2:
        made = replace(work, how=work.how | {"cooperative": bool(words[0])})
        runtime.graphs.node(node).work = made
    return SUCCESS


@stands_in_for("cudaUserObjectCreate")
def user_object(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 1)


@stands_in_for("cudaUserObjectRetain", "cudaUserObjectRelease", "cudaGraphRetainUserObject",
               "cudaGraphReleaseUserObject", "cudaDeviceGraphMemTrim")  # fmt: skip
def object_hint(runtime: Runtime, *_: int) -> int:
    """Accept the object; its destructor is never called."""
    return SUCCESS


@stands_in_for("cudaDeviceGetGraphMemAttribute")
def graph_memory_attribute(runtime: Runtime, device: int, attribute: int, out: int, *_: int) -> int:
    found = (runtime.device.find(address) for address in runtime.graph_memory)
    runtime.put(out, sum(one.nbytes for one in found if one is not None))
    return SUCCESS
