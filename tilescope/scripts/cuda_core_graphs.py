"""Graphs of ``cuda.core``: builders capture what they are given as a stream."""

from collections.abc import Callable
from typing import Any

from simulator.host_order import Stream as Queue

from ..host_calls.graphs import WorkGraph
from .virtual_device import SimulatedEvent, VirtualDevice, refuse


class CoreGraph:
    """A graph that can be launched."""

    def __init__(self, machine: VirtualDevice, graph: WorkGraph) -> None:
        self._machine, self._graph = machine, graph

    def launch(self, stream: Any) -> None:
        """Execute it in a stream."""
        machine, graph = self._machine, self._graph
        machine.captures.submit(machine.queue(stream), lambda q: graph.launch(machine.order, q))

    def upload(self, stream: Any) -> None:
        """Do nothing: there is nothing to upload."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    update = refuse("Graph.update", "complete a new graph")


class CoreGraphBuilder:
    """Builder of a graph; ``launch`` takes it as a stream."""

    def __init__(self, machine: VirtualDevice, queue: Queue) -> None:
        self._machine, self.queue = machine, queue
        self._graph: WorkGraph | None = None
        self.is_join_required = False

    @property
    def stream(self) -> Any:
        """Stream that is captured: the builder itself."""
        return self

    @property
    def is_building(self) -> bool:
        """Whether it takes work now."""
        return self._machine.captures.of(self.queue) is not None

    def begin_building(self, mode: str = "relaxed") -> Any:
        """Begin to take work."""
        self._machine.captures.begin(self.queue)
        return self

    def end_building(self) -> Any:
        """Take no more."""
        self._graph = self._machine.captures.end(self.queue)
        return self

    def complete(self, options: Any = None) -> CoreGraph:
        """Return the graph, to be launched.

        Raises:
            RuntimeError: It takes work still.
        """
        if self._graph is None:
            raise RuntimeError("Graph has not finished building.")
        return CoreGraph(self._machine, self._graph)

    def split(self, count: int) -> tuple[Any, ...]:
        """This builder and others, as branches behind what it has taken."""
        event = SimulatedEvent(self._machine)
        event.record(self)
        made = [self]
        for _ in range(count - 1):
            made.append(CoreGraphBuilder(self._machine, self._machine.order.stream(False)))
            made[-1].is_join_required = True
            event.wait(made[-1])
        return tuple(made)

    @staticmethod
    def join(*builders: Any) -> Any:
        """Return the first builder, behind what the others have taken."""
        first = next((one for one in builders if not one.is_join_required), builders[0])
        for other in builders:
            if other is not first:
                event = SimulatedEvent(other._machine)
                event.record(other)
                event.wait(first)
        return first

    def callback(self, fn: Callable[..., Any], *, user_data: Any = None) -> None:
        """Call a function of the host's at this place."""
        given = () if user_data is None else (user_data,)

        def work(queue: Queue) -> None:
            self._machine.order.waits(queue.record())
            fn(*given)

        self._machine.captures.submit(self.queue, work)

    def embed(self, child: Any) -> None:
        """Take another builder's graph as one operation."""
        graph, machine = child.complete()._graph, self._machine
        machine.captures.submit(self.queue, lambda q: graph.launch(machine.order, q))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    create_condition = if_then = if_else = while_loop = switch = debug_dot_print = refuse(
        "conditional nodes", "launch without a graph"
    )
