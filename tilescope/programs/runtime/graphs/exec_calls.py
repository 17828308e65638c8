"""Executable graphs: instantiation, launches, updates."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from simulator.host_order import Stream

from ..calls import stands_in_for
from ..errors import INVALID_VALUE, SUCCESS, UPDATE_FAILURE
from ..launches import KernelLaunch
from ..memory.copies import Box, Extent, MemoryCopy
from ..state import Runtime
from ..work import GRAPH, StreamWork
from .graph import CapturedGraph, ExecutableGraph, GraphNode, run_nodes
from .node_calls import READERS, ChildGraph, read_node, type_in_name

_TOPOLOGY_CHANGED, _TYPE_CHANGED, _FUNCTION_CHANGED = 2, 3, 4
"""Of ``cudaGraphExecUpdateResult``."""


@stands_in_for("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags",
               "cudaGraphInstantiateWithParams")  # fmt: skip
def instantiate(runtime: Runtime, out: int, graph: int, params: int, *_: int) -> int:
    try:
        made = ExecutableGraph(runtime.graphs.graph(graph).copy())
    except ValueError:
        return INVALID_VALUE
    runtime.graphs.executables[made.handle] = made
    runtime.put(out, made.handle)
    if runtime.name.endswith("WithParams"):
        runtime.process.write(params + 16, struct.pack("<QI", 0, 0))
    return SUCCESS


@stands_in_for("cudaGraphExecDestroy")
def exec_destroy(runtime: Runtime, handle: int, *_: int) -> int:
    runtime.graphs.executable(handle)
    del runtime.graphs.executables[handle]
    return SUCCESS


@stands_in_for("cudaGraphUpload", "cudaGraphExecGetFlags")
def exec_hint(runtime: Runtime, handle: int, out: int, *_: int) -> int:
    runtime.graphs.executable(handle)
    if runtime.name == "cudaGraphExecGetFlags":
        runtime.put(out, 0)
    return SUCCESS


@dataclass
class GraphLaunch(StreamWork):
    """A launch of an executable graph; while a stream is captured, a child graph."""

    executable: ExecutableGraph
    node_type: ClassVar[int] = GRAPH

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        made = self.executable
        queue.wait(made.last)
        code = run_nodes(made.graph, runtime, queue, frozenset(made.disabled), made.branches)
        made.last = queue.record()
        return code


@stands_in_for("cudaGraphLaunch")
def graph_launch(runtime: Runtime, handle: int, stream: int, *_: int) -> int:
    found = runtime.graphs.executable(handle)
    return runtime.enqueue(stream, GraphLaunch(runtime.source, found))


# -- updates -------------------------------------------------------------------------------


def _own(runtime: Runtime, handle: int, node: int) -> GraphNode | None:
    """Return the executable graph's copy of a node, given the original one."""
    graph = runtime.graphs.executable(handle).graph
    return graph.originals.get(runtime.graphs.node(node))


@stands_in_for("cudaGraphExecKernelNodeSetParams", "cudaGraphExecMemcpyNodeSetParams",
               "cudaGraphExecMemsetNodeSetParams", "cudaGraphExecHostNodeSetParams")  # fmt: skip
def set_exec_node(runtime: Runtime, handle: int, node: int, params: int, *_: int) -> int:
    return _set(runtime, handle, node, read_node(runtime, type_in_name(runtime), params))


def _set(runtime: Runtime, handle: int, node: int, work: StreamWork | int) -> int:
    found = _own(runtime, handle, node)
    if isinstance(work, int):
        return work
    if found is None or found.work.node_type != work.node_type:
        return INVALID_VALUE
    if isinstance(work, KernelLaunch) and isinstance(found.work, KernelLaunch):
        work.how = dict(found.work.how)
    found.work = work
    return SUCCESS


@stands_in_for("cudaGraphExecNodeSetParams", "cudaGraphNodeSetParams")
def set_any_node(runtime: Runtime, first: int, second: int, third: int, *_: int) -> int:
    params = third if "Exec" in runtime.name else second
    kind = int.from_bytes(runtime.process.read(params, 4), "little")
    if kind not in READERS:
        return INVALID_VALUE
    work = read_node(runtime, kind, params + (32 if kind == 1 else 16))
    if "Exec" in runtime.name:
        return _set(runtime, first, second, work)
    if isinstance(work, int):
        return work
    runtime.graphs.node(first).work = work
    return SUCCESS


@stands_in_for("cudaGraphExecMemcpyNodeSetParams1D")
def set_exec_memcpy(
    runtime: Runtime, handle: int, node: int, to: int, given: int, nbytes: int, kind: int
) -> int:
    there, here = (Box(runtime.device_address(at)) for at in (to, given))
    work = MemoryCopy(runtime.source, runtime.name, there, here, Extent(nbytes), kind & 0xFFFFFFFF)
    return _set(runtime, handle, node, work)


@stands_in_for("cudaGraphExecChildGraphNodeSetParams")
def set_exec_child(runtime: Runtime, handle: int, node: int, child: int, *_: int) -> int:
    copied = runtime.graphs.graph(child).copy()
    return _set(runtime, handle, node, ChildGraph(runtime.source, copied))


@stands_in_for("cudaGraphNodeSetEnabled", "cudaGraphNodeGetEnabled")
def node_enabled(runtime: Runtime, handle: int, node: int, value: int, *_: int) -> int:
    disabled, found = runtime.graphs.executable(handle).disabled, _own(runtime, handle, node)
    if found is None:
        return INVALID_VALUE
    if "Get" in runtime.name:
        runtime.put(value, int(found not in disabled), 4)
    elif value & 0xFFFFFFFF:
        disabled.discard(found)
    else:
        disabled.add(found)
    return SUCCESS


@stands_in_for("cudaGraphExecUpdate")
def exec_update(runtime: Runtime, handle: int, graph: int, result: int, *_: int) -> int:
    """Update nodes in order; they correspond as in two captures of the same code."""
    own, other = runtime.graphs.executable(handle).graph, runtime.graphs.graph(graph)
    code, node = _difference(own, other)
    runtime.process.write(result, struct.pack("<I4xQQ", code, node, 0))
    if code:
        return UPDATE_FAILURE
    for mine, theirs in zip(own.nodes, other.nodes, strict=True):
        mine.work = theirs.work
        own.originals[theirs] = mine
    return SUCCESS


def _difference(own: CapturedGraph, other: CapturedGraph) -> tuple[int, int]:
    """Return a ``cudaGraphExecUpdateResult``, and the handle of the node it is about."""
    if len(own.nodes) != len(other.nodes):
        return _TOPOLOGY_CHANGED, 0
    mine, theirs = ({node: i for i, node in enumerate(g.nodes)} for g in (own, other))
    for one, two in zip(own.nodes, other.nodes, strict=True):
        if sorted(mine[n] for n in one.before) != sorted(theirs[n] for n in two.before):
            return _TOPOLOGY_CHANGED, two.handle
        if one.work.node_type != two.work.node_type:
            return _TYPE_CHANGED, two.handle
    return 0, 0
