"""``CapturedGraph``, its nodes, and what streams capture at present."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from simulator.host_order import Clock, Stream

from ..work import StreamWork

_handles = itertools.count(0x10_0000, 16)


def new_handle() -> int:
    """Return a number that no other graph, node or executable graph has."""
    return next(_handles)


@dataclass(eq=False)
class GraphNode:
    """A node: its work, and the nodes of the same graph that come before it."""

    work: StreamWork
    graph: CapturedGraph
    before: list[GraphNode]
    handle: int = field(default_factory=new_handle)


@dataclass(eq=False)
class CapturedGraph:
    """Nodes in the order in which they were added.

    Attributes:
        originals: Of a clone: its nodes by those of the graph that it was made of.
    """

    nodes: list[GraphNode] = field(default_factory=list)
    handle: int = field(default_factory=new_handle)
    originals: dict[GraphNode, GraphNode] = field(default_factory=dict)

    def add(self, work: StreamWork, before: Iterable[GraphNode]) -> GraphNode:
        """Append a node."""
        made = GraphNode(work, self, list(dict.fromkeys(before)))
        self.nodes.append(made)
        return made

    def sorted(self) -> list[GraphNode]:
        """Return the nodes so that each comes behind those that it depends on.

        Raises:
            ValueError: They depend on each other in a circle.
        """
        done: dict[GraphNode, None] = {}
        waiting = list(self.nodes)
        while waiting:
            ready = [node for node in waiting if all(one in done for one in node.before)]
            if not ready:
                raise ValueError("nodes of a graph depend on each other in a circle")
            done |= dict.fromkeys(ready)
            waiting = [node for node in waiting if node not in done]
        return list(done)

    def copy(self) -> CapturedGraph:
        """Return a clone; its ``originals`` give, by each node of this graph, the new one."""
        made = CapturedGraph()
        for node in self.sorted():
            work = node.work
            made.originals[node] = made.add(work, [made.originals[one] for one in node.before])
        order = {node: i for i, node in enumerate(self.nodes)}
        made.nodes = [
            made.originals[node] for node in sorted(made.originals, key=order.__getitem__)
        ]
        return made


@dataclass(eq=False)
class ExecutableGraph:
    """An instantiated graph.

    Attributes:
        graph: A copy of the graph at that time.
        disabled: Nodes that do nothing when the graph is launched.
        branches: Streams that nodes run in which do not follow each other.
        last: When its last launch is done: launches of one graph follow each other.
    """

    graph: CapturedGraph
    disabled: set[GraphNode] = field(default_factory=set)
    branches: list[Stream] = field(default_factory=list)
    last: Clock = field(default_factory=dict)
    handle: int = field(default_factory=new_handle)


@dataclass(eq=False)
class StreamCapture:
    """A capture under way.

    Attributes:
        graph: The graph that nodes are added to.
        origin: Handle of the stream in which it began; ``mode``: a ``cudaStreamCaptureMode``.
        tails: By stream, the nodes that its next node depends on.
        thread: The program's thread that began it.
        is_valid: Whether nothing forbidden was called meanwhile.
    """

    graph: CapturedGraph
    origin: int
    mode: int
    tails: dict[int, list[GraphNode]]
    thread: int = 0
    is_valid: bool = True
    number: int = field(default_factory=new_handle)

    def add(self, stream: int, work: StreamWork) -> GraphNode:
        """Append a node behind what a stream has captured so far."""
        node = self.graph.add(work, self.tails[stream])
        self.tails[stream] = [node]
        return node

    @property
    def unjoined(self) -> bool:
        """Whether another stream has nodes that no node of the origin's stream comes behind."""
        reached, waiting = set(), list(self.tails[self.origin])
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += node.before
        others = (node for stream, nodes in self.tails.items() for node in nodes
                  if stream != self.origin)  # fmt: skip
        return any(node not in reached for node in others)


@dataclass
class GraphTables:
    """Graphs, nodes and executable graphs by their handles, and captures by streams' handles."""

    graphs: dict[int, CapturedGraph] = field(default_factory=dict)
    executables: dict[int, ExecutableGraph] = field(default_factory=dict)
    captures: dict[int, StreamCapture] = field(default_factory=dict)
    events: dict[int, tuple[StreamCapture, list[GraphNode]]] = field(default_factory=dict)
    nodes: dict[int, GraphNode] = field(default_factory=dict)

    def enter(self, graph: CapturedGraph) -> CapturedGraph:
        """Make a graph and its nodes known by their handles."""
        self.graphs[graph.handle] = graph
        self.nodes |= {node.handle: node for node in graph.nodes}
        return graph

    def node(self, handle: int) -> GraphNode:
        """Return a node.

        Raises:
            UnknownGraphError: There is none.
        """
        return _found(self.nodes, handle)

    def graph(self, handle: int) -> CapturedGraph:
        """Return a graph; raises as ``node`` does."""
        return _found(self.graphs, handle)

    def executable(self, handle: int) -> ExecutableGraph:
        """Return an executable graph; raises as ``node`` does."""
        return _found(self.executables, handle)


class UnknownGraphError(ValueError):
    """A handle of a graph or node that does not exist."""


_Entry = TypeVar("_Entry")


def _found(table: Mapping[int, _Entry], handle: int) -> _Entry:
    if handle not in table:
        raise UnknownGraphError(f"{handle:#x} is no graph or node")
    return table[handle]


def run_nodes(
    graph: CapturedGraph, runtime: Any, queue: Stream, disabled: frozenset[GraphNode],
    branches: list[Stream],
) -> int:  # fmt: skip
    """Execute a graph's nodes in the order of their edges alone.

    A node follows the first of its predecessors that nothing follows yet, in the same stream; a
    node without one begins a branch, a stream of its own. Nodes of two branches are ordered by
    edges, so that the order between launches reports those that need one and have none.

    Args:
        graph: The graph.
        runtime: The program's ``Runtime``.
        queue: The stream in which the graph is launched.
        disabled: Nodes that do nothing.
        branches: Streams from earlier launches; further ones are appended.

    Returns:
        The first error code.
    """
    begin, code = queue.record(), 0
    at: dict[GraphNode, Stream] = {}
    done: dict[GraphNode, Clock] = {}
    free = list(branches)
    followed: set[GraphNode] = set()
    order = graph.sorted()
    is_chain = all(node.before == ([order[i - 1]] if i else []) for i, node in enumerate(order))
    for node in order:
        leader = next((one for one in node.before if one not in followed), None)
        if is_chain:
            stream = queue
        elif leader is not None:
            stream = at[leader]
            followed.add(leader)
        else:
            if not free:
                free.append(runtime.machine.order.stream(False))
                branches.append(free[-1])
            stream = free.pop(0)
        if stream is not queue:
            stream.wait(begin)
        for one in node.before:
            stream.wait(done[one])
        if node not in disabled:
            code = code or node.work.run(runtime, stream, False)
        at[node], done[node] = stream, stream.record()
    for clock in done.values():
        queue.wait(clock)
    return code
