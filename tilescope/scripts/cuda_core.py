"""``cuda.core``: programs, buffers, streams and launches.

It is compiled against the driver, so that its classes are replaced as a whole; only those that
hold nothing but options (``ProgramOptions``, ``LaunchConfig``) stay.
"""

import ctypes
import dataclasses
import itertools
import weakref
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import MAX_SHARED
from kernels.front_ends.versions import warn_of
from simulator.host_order import Stream as Queue
from simulator.memory.storage.device import DeviceAllocation

from ..host_calls.launches import checked_launch
from ..sessions.recording import user_line
from . import host_pages
from . import virtual_device as stand_in
from .cuda_core_graphs import CoreGraph, CoreGraphBuilder
from .driver.memory import place
from .patches import Patches
from .virtual_device import (
    RefusedError,
    SimulatedEvent,
    SimulatedStream,
    VirtualDevice,
    nothing,
    refuse,
)


class CoreStream(SimulatedStream):
    """A stream; work on it is done at once."""

    device_id = 0

    def __init__(self, machine: VirtualDevice, queue: Queue) -> None:
        super().__init__(queue)
        self._machine, self.handle = machine, queue.number
        self.sync, self.is_nonblocking = self.synchronize, not queue.blocking

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def record(self, event: Any = None, options: Any = None) -> Any:
        """Record an event behind the stream's work."""
        made = event or CoreEvent(self._machine)
        made.record(self)
        return made

    def wait(self, event_or_stream: Any) -> None:
        """Wait for an event, or for what is in another stream."""
        other = event_or_stream
        if not isinstance(other, CoreEvent):
            other = CoreEvent(self._machine)
            other.record(event_or_stream)
        other.wait(self)

    def create_graph_builder(self) -> CoreGraphBuilder:
        """Return a builder that captures the stream."""
        return CoreGraphBuilder(self._machine, self.queue)


class CoreEvent(SimulatedEvent):
    """A moment; of the time between two nothing is known."""

    def sync(self) -> None:
        """Make the host wait for the stream."""
        self.synchronize()

    @property
    def is_done(self) -> bool:
        """Whether it has come to pass."""
        return self.query()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def __sub__(self, other: Any) -> float:
        return float("nan")


class Buffer:
    """Memory of the simulated GPU; NumPy reads it through DLPack."""

    is_device_accessible = is_host_accessible = True
    device_id = 0

    def __init__(
        self, machine: VirtualDevice, size: int, stream: Any = None, kind: str = "device"
    ) -> None:
        self._machine, self.size, self._stream = machine, size, stream
        device, at = machine.device, place(user_line())
        if kind == "device":
            made = device.allocate(size, place=at)
        else:
            made = host_pages.allocate(device, size, kind, at)
        made.may_leak, self._made, self.handle = False, made, made.address
        self._free = weakref.finalize(self, _freed, machine, made)

    def _bytes(self, call: str, what: str) -> Any:
        """Return the buffer's bytes, writable.

        Raises:
            RuntimeError: It is closed.
        """
        found = self._machine.device.bytes_at(self.handle, self.size)
        if found is None:
            device, checks = self._machine.device, self._machine.checks
            checks.misfit(device, user_line(), call, self.handle, self.size, what)
            raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: {call} with a buffer that is closed")
        return found

    def copy_to(self, dst: Any = None, *, stream: Any = None) -> Any:
        """Copy the buffer's contents into another one."""
        dst = dst or Buffer(self._machine, self.size)
        call = "the copy of a buffer"
        if dst.size != self.size:
            problem = f"{self.size:,} bytes to a buffer of {dst.size:,}"
            self._machine.checks.bad_copy(user_line(), call, problem)
            raise ValueError(f"buffer sizes mismatch: {problem}")
        to, given = dst._bytes(call, "the destination"), self._bytes(call, "the source")

        def work(queue: Queue) -> None:
            self._machine.copied(call, queue, to=to, given=given)
            self._machine.move(to, given)

        self._machine.captures.submit(self._machine.queue(stream), work)
        return dst

    def copy_from(self, src: Any, *, stream: Any = None) -> None:
        """Take another buffer's contents."""
        src.copy_to(self, stream=stream)

    def fill(self, value: Any, *, stream: Any = None) -> None:
        """Set every element: a byte, or the bytes of one."""
        raw = bytes([value]) if isinstance(value, int) else bytes(value)
        to = self._bytes("the fill of a buffer", "the destination")

        def work(queue: Queue) -> None:
            self._machine.copied("the fill of a buffer", queue, to=to)
            to[...] = np.frombuffer(raw * (self.size // len(raw)), np.uint8)

        self._machine.captures.submit(self._machine.queue(stream), work)

    def close(self, stream: Any = None) -> None:
        """Give the memory back, in the stream it was made in; where there is none, at once."""
        stream = stream or self._stream
        found = self._machine.device.find(self.handle)
        if stream is None:
            self._machine.order.synchronize()
        elif found:
            self._machine.copied("the close of a buffer", stream, to=found.array)
        self._free()

    def __dlpack__(self, **how: Any) -> Any:
        array = self._bytes("from_dlpack", "the source")
        if getattr(array, "missing", None) is not None:
            array.missing[...] = 0  # from here on the host may write it, unseen
        return np.asarray(array).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _freed(machine: VirtualDevice, made: DeviceAllocation) -> None:
    if machine.device.live(made.number) is made:
        machine.device.free(made.address, place(user_line()))
        if made.file >= 0:
            host_pages.release(made)


_NUMBERS = itertools.count()


class ObjectCode:
    """A program that was compiled: its kernels are made as they are asked for."""

    def __init__(self, code: Any, kind: str, options: Sequence[str] = ()) -> None:
        text = code.decode() if isinstance(code, (bytes, bytearray)) else str(code)
        self.code, self.code_type, self._options = text.rstrip("\0"), kind, options
        self._number = -1 - next(_NUMBERS)

    def get_kernel(self, name: Any) -> Kernel:
        """Return a kernel by its name in C++ or in the PTX."""
        entry = name.decode() if isinstance(name, bytes) else name
        if self.code_type == "ptx":
            kernel = Kernel.from_ptx(self.code, entry)
        else:
            kernel = Kernel.from_cuda(self.code + "\n", entry, options=self._options)
        return dataclasses.replace(kernel, module=self._number)


class CoreProgram:
    """Source text with its options."""

    def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
        if code_type.lower() not in ("c++", "ptx"):
            raise RefusedError(f"tilescope exec has no stand-in for programs in {code_type!r}")
        self._code, self._type = code, code_type.lower()
        flags = [] if options is None else [flag.decode() for flag in options.as_bytes("nvrtc")]
        own = ("-arch", "--gpu-architecture", "-lineinfo", "--generate-line-info", "-dc", "-rdc")
        self._options = [flag for flag in flags if not flag.startswith(own)]

    def compile(
        self, target_type: str = "ptx", name_expressions: Sequence[str] = (), logs: Any = None
    ) -> ObjectCode:
        """Return the program; kernels are compiled when they are asked for."""
        if target_type not in ("ptx", "cubin"):
            raise RefusedError(f"tilescope exec has no stand-in for compile({target_type!r})")
        return ObjectCode(self._code, self._type, self._options)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``cuda.core`` allocate and launch on the simulator."""
    warn_of("cuda-core", str(module.__version__))
    default = CoreStream(machine, machine.order.legacy)

    class Resource:
        is_device_accessible = is_host_accessible = True
        device_id, kind = 0, "device"

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def allocate(self, size: int, stream: Any = None) -> Buffer:
            return Buffer(machine, int(size), stream, self.kind)

        def close(self) -> None:
            pass

    class Pinned(Resource):
        kind = "pinned"

    class Managed(Resource):
        kind = "managed"

    class CoreDevice:
        arch, name, device_id = "90", stand_in.NAME, 0
        compute_capability = type("ComputeCapability", (tuple,), {"major": 9, "minor": 0})((9, 0))
        memory_resource = Resource()
        default_stream = default
        set_current = close = nothing
        properties = stand_in.setting(
            {"multiprocessor_count": 132, "max_threads_per_block": 1024, "warp_size": 32,
             "max_shared_memory_per_block": 49_152, "cooperative_launch": True,
             "compute_capability_major": 9, "compute_capability_minor": 0}
        )()  # fmt: skip

        def __init__(self, device_id: int = 0) -> None:
            if device_id not in (0, None):
                raise ValueError(f"there is one device, simulated; not {device_id}")

        def sync(self) -> None:
            machine.order.synchronize()

        def create_stream(self, obj: Any = None, options: Any = None) -> CoreStream:
            if obj is not None:
                return CoreStream(machine, _shared(machine, obj))
            free = True if options is None else options.nonblocking
            return CoreStream(machine, machine.order.stream(blocking=not free))

        def create_graph_builder(self) -> CoreGraphBuilder:
            return CoreGraphBuilder(machine, machine.order.stream(blocking=False))

        def create_event(self, *_: Any, **__: Any) -> CoreEvent:
            return CoreEvent(machine)

        def allocate(self, size: int, stream: Any = None) -> Buffer:
            return Buffer(machine, int(size), stream)

    def launch(stream: Any, config: Any, kernel: Kernel, *args: Any) -> None:
        values = [_argument(machine, arg) for arg in args]
        how: dict[str, Any] = {"cooperative": bool(config.is_cooperative)}
        if config.cluster is not None:
            how["cluster"] = config.cluster

        def work(queue: Queue) -> None:
            done = checked_launch(
                machine, kernel, config.grid, config.block, values, config.shmem_size, queue,
                MAX_SHARED, **how,
            )  # fmt: skip
            if done.refused:
                raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: {done.reason}")

        machine.captures.submit(machine.queue(stream), work)

    replaced = {
        "Device": CoreDevice, "Program": CoreProgram, "ObjectCode": _Objects, "Buffer": Buffer,
        "launch": launch, "Stream": CoreStream, "Event": CoreEvent,
        "DeviceMemoryResource": Resource,
        "LegacyPinnedMemoryResource": Pinned, "PinnedMemoryResource": Pinned,
        "ManagedMemoryResource": Managed, "LEGACY_DEFAULT_STREAM": default,
        "PER_THREAD_DEFAULT_STREAM": CoreStream(machine, machine.order.stream()),
    }  # fmt: skip
    keep = ("ProgramOptions", "LaunchConfig", "EventOptions", "StreamOptions", "Host", "typing",
            "cuda", "cu13", "cu12", "utils", "graph", "DeviceMemoryResourceOptions",
            "PinnedMemoryResourceOptions", "ManagedMemoryResourceOptions")  # fmt: skip
    for name in [n for n in dir(module) if not n.startswith("_")]:
        if name in replaced:
            patches.set(module, name, replaced[name])
        elif name not in keep:
            patches.set(module, name, refuse(f"cuda.core.{name}"))
    if hasattr(module, "graph"):
        own: dict[str, Any] = {"GraphBuilder": CoreGraphBuilder, "Graph": CoreGraph}
        own["GraphDefinition"] = refuse("GraphDefinition", "use Device.create_graph_builder()")
        for name, value in own.items():
            patches.set(module.graph, name, value)


def _shared(machine: VirtualDevice, obj: Any) -> Queue:
    """Return the stream that another library has, PyTorch's say (``__cuda_stream__``)."""
    number = obj.__cuda_stream__()[1] if hasattr(obj, "__cuda_stream__") else -1
    for queue in machine.order.streams:
        if queue.number == number:
            return queue
    raise RefusedError("tilescope exec has no stand-in for a stream that is none of this script's")


class _Objects:
    """``ObjectCode`` as scripts make it of PTX that they have."""

    @staticmethod
    def from_ptx(code: Any, **_: Any) -> ObjectCode:
        """PTX, or the path of a file with it."""
        return ObjectCode(code, "ptx")

    from_cubin = from_fatbin = from_ltoir = from_object = from_library = staticmethod(
        refuse("machine code", "use ObjectCode.from_ptx")
    )


def _argument(machine: VirtualDevice, arg: Any) -> Any:
    """Return an argument of ``launch``: an address, a number, or an array."""
    arg = machine.array(arg)
    if isinstance(arg, Buffer):
        return arg.handle
    return arg.value if isinstance(arg, ctypes._SimpleCData) else arg
