"""Graphs in ``cuda.bindings.driver``: captured from streams, or made of nodes."""

# ruff: noqa: D102 - the driver's own documents say what its calls do

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from simulator.host_order import Stream

from ...host_calls.graphs import CaptureError, Work, WorkGraph
from ..streams import Streams
from ..virtual_device import VirtualDevice


class DriverGraphs:
    """The calls about graphs; each gives what the driver's gives, the result first.

    ``launching``: makes the work of a launch, given function, grid, block, parameters and dynamic
    shared memory.
    """

    def __init__(
        self, module: ModuleType, machine: VirtualDevice, streams: Streams,
        launching: Callable[..., Work],
    ) -> None:  # fmt: skip
        self.module, self.machine, self.streams = module, machine, streams
        self._launching = launching
        self._handles = itertools.count(1)
        self._graphs: dict[int, WorkGraph] = {}
        self._nodes: dict[int, list[int]] = {}
        self._executables: dict[int, WorkGraph] = {}

    @property
    def _results(self) -> Any:
        return self.module.CUresult

    def _enter(self, graph: WorkGraph) -> Any:
        number = next(self._handles)
        self._graphs[number], self._nodes[number] = graph, []
        return self.module.CUgraph(number)

    # -- capture ---------------------------------------------------------------------------

    def cuStreamBeginCapture(self, stream: Any, mode: Any) -> tuple[Any, ...]:
        queue = self.streams.find(stream)
        try:
            if not queue.number:
                return (self._results.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
            self.machine.captures.begin(queue)
        except CaptureError:
            return (self._results.CUDA_ERROR_ILLEGAL_STATE,)
        return (self._results.CUDA_SUCCESS,)

    def cuStreamEndCapture(self, stream: Any) -> tuple[Any, ...]:
        try:
            graph = self.machine.captures.end(self.streams.find(stream))
        except CaptureError:
            return self._results.CUDA_ERROR_ILLEGAL_STATE, self.module.CUgraph(0)
        return self._results.CUDA_SUCCESS, self._enter(graph)

    def cuStreamIsCapturing(self, stream: Any) -> tuple[Any, ...]:
        found = self.machine.captures.of(self.streams.find(stream))
        states = self.module.CUstreamCaptureStatus
        state = "ACTIVE" if found else "NONE"
        return self._results.CUDA_SUCCESS, getattr(states, f"CU_STREAM_CAPTURE_STATUS_{state}")

    # -- nodes -----------------------------------------------------------------------------

    def cuGraphCreate(self, flags: int) -> tuple[Any, ...]:
        return self._results.CUDA_SUCCESS, self._enter(WorkGraph())

    def _add(self, graph: Any, behind: Any, count: int, work: Work) -> tuple[Any, ...]:
        found, number = self._graphs[int(graph)], next(self._handles)
        place = len(self._nodes[int(graph)])
        self._nodes[int(graph)].append(number)
        found.streams = max(found.streams, place + 1)
        for node in list(behind or ())[:count]:
            found.wait(int(node), place)
        found.add(work, place)
        found.record(number, place)
        return self._results.CUDA_SUCCESS, self.module.CUgraphNode(number)

    def cuGraphAddKernelNode(
        self, graph: Any, behind: Any, count: int, params: Any
    ) -> tuple[Any, ...]:
        p = params
        grid, block = (p.gridDimX, p.gridDimY, p.gridDimZ), (p.blockDimX, p.blockDimY, p.blockDimZ)
        work = self._launching(p.func, grid, block, p.kernelParams, p.sharedMemBytes)
        return self._add(graph, behind, count, work)

    def cuGraphAddEmptyNode(self, graph: Any, behind: Any, count: int) -> tuple[Any, ...]:
        return self._add(graph, behind, count, lambda queue: None)

    def cuGraphAddMemsetNode(
        self, graph: Any, behind: Any, count: int, params: Any, context: Any
    ) -> tuple[Any, ...]:
        size, width, height = params.elementSize, params.width, params.height
        pitch = params.pitch if height > 1 else size * width
        address, value = int(params.dst), np.array(params.value).astype(f"<u{size}")

        def work(queue: Stream) -> None:
            for row in range(height):
                to = self.machine.device.bytes_at(address + row * pitch, size * width)
                if to is None:
                    raise CaptureError("a memset node's memory is none of the device")
                self.machine.copied("the memset node", queue, to=to)
                to[...] = np.full(width, value).view(np.uint8)

        return self._add(graph, behind, count, work)

    def cuGraphGetNodes(self, graph: Any, count: int = 0) -> tuple[Any, ...]:
        found = self._graphs[int(graph)]
        made = [self.module.CUgraphNode(number) for number in self._nodes[int(graph)]]
        made += [self.module.CUgraphNode(0)] * (found.nodes - len(made))
        return self._results.CUDA_SUCCESS, made[:count], found.nodes

    # -- executables -----------------------------------------------------------------------

    def cuGraphInstantiate(self, graph: Any, flags: int = 0) -> tuple[Any, ...]:
        number, known = next(self._handles), self._graphs[int(graph)]
        self._executables[number] = WorkGraph(list(known.steps), known.streams)
        return self._results.CUDA_SUCCESS, self.module.CUgraphExec(number)

    cuGraphInstantiateWithFlags = cuGraphInstantiate

    def cuGraphLaunch(self, executable: Any, stream: Any) -> tuple[Any, ...]:
        graph, order = self._executables[int(executable)], self.machine.order
        queue = self.streams.find(stream)
        self.machine.captures.submit(queue, lambda at: graph.launch(order, at))
        return (self._results.CUDA_SUCCESS,)

    def cuGraphExecDestroy(self, executable: Any) -> tuple[Any, ...]:
        self._executables.pop(int(executable), None)
        return (self._results.CUDA_SUCCESS,)

    def cuGraphDestroy(self, graph: Any) -> tuple[Any, ...]:
        self._graphs.pop(int(graph), None)
        return (self._results.CUDA_SUCCESS,)

    def cuGraphUpload(self, executable: Any, stream: Any) -> tuple[Any, ...]:
        return (self._results.CUDA_SUCCESS,)
