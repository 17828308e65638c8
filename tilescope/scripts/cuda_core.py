"""``cuda.core``: programs, buffers, streams and launches.

It is compiled against the driver, so that its classes are replaced as a whole; only those that
hold nothing but options (``ProgramOptions``, ``LaunchConfig``) stay.
"""

import ctypes
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.adapter import as_array

from . import machine as stand_in
from .machine import Event, Machine, RefusedError, Stream, nothing, refuse
from .memory import Memory
from .patches import Patches

TESTED = "1.2"


class CoreStream(Stream):
    """A stream; work on it is done at once."""

    handle = 3
    device_id = 0

    def close(self) -> None:
        """Nothing to release."""

    def record(self, event: Any = None, options: Any = None) -> Any:
        """An event."""
        return event or CoreEvent()

    def wait(self, event_or_stream: Any) -> None:
        """Nothing is left to wait for."""


class CoreEvent(Event):
    """A moment; of the time between two nothing is known."""

    is_done = True

    def sync(self) -> None:
        """Nothing is left to wait for."""

    def close(self) -> None:
        """Nothing to release."""

    def __sub__(self, other: Any) -> float:
        return float("nan")


class Buffer:
    """Memory of the simulated GPU; NumPy reads it through DLPack."""

    is_device_accessible = is_host_accessible = True
    device_id = 0

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory, self.size = memory, size
        self.handle = memory.allocate(size)

    @property
    def _bytes(self) -> Any:
        return self._memory.bytes_at(self.handle, self.size)

    def copy_to(self, dst: Any = None, *, stream: Any = None) -> Any:
        """Its contents in another buffer."""
        dst = dst or Buffer(self._memory, self.size)
        dst._bytes[...] = np.array(self._bytes)
        return dst

    def copy_from(self, src: Any, *, stream: Any = None) -> None:
        """Take another buffer's contents."""
        src.copy_to(self)

    def fill(self, value: Any, *, stream: Any = None) -> None:
        """Set every element: a byte, or the bytes of one."""
        raw = bytes([value]) if isinstance(value, int) else bytes(value)
        self._bytes[...] = np.frombuffer(raw * (self.size // len(raw)), np.uint8)

    def close(self, stream: Any = None) -> None:
        """Give the memory back."""
        self._memory.free(self.handle)

    def __dlpack__(self, **how: Any) -> Any:
        array = self._bytes
        array.missing[...] = 0  # from here on the host may write it, unseen
        return np.asarray(array).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class ObjectCode:
    """A program that was compiled: its kernels are made as they are asked for."""

    def __init__(self, code: Any, kind: str, options: Sequence[str] = ()) -> None:
        text = code.decode() if isinstance(code, (bytes, bytearray)) else str(code)
        self.code, self.code_type, self._options = text.rstrip("\0"), kind, options

    def get_kernel(self, name: Any) -> Kernel:
        """A kernel by its name in C++ or in the PTX."""
        entry = name.decode() if isinstance(name, bytes) else name
        if self.code_type == "ptx":
            return Kernel.from_ptx(self.code, entry)
        return Kernel.from_cuda(self.code + "\n", entry, options=self._options)


class Program:
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
        """The program; kernels are compiled when they are asked for."""
        if target_type not in ("ptx", "cubin"):
            raise RefusedError(f"tilescope exec has no stand-in for compile({target_type!r})")
        return ObjectCode(self._code, self._type, self._options)

    def close(self) -> None:
        """Nothing to release."""


def install(module: ModuleType, patches: Patches, machine: Machine) -> None:
    """Have ``cuda.core`` allocate and launch on the simulator."""
    if not str(module.__version__).startswith(TESTED + "."):
        warnings.warn(f"cuda-core {module.__version__}: what was tested is {TESTED}", stacklevel=2)
    memory = Memory()

    class Resource:
        is_device_accessible = is_host_accessible = True
        device_id = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def allocate(self, size: int, stream: Any = None) -> Buffer:
            return Buffer(memory, int(size))

    class Device:
        arch, name, device_id = "90", stand_in.NAME, 0
        compute_capability = type("ComputeCapability", (tuple,), {"major": 9, "minor": 0})((9, 0))
        memory_resource = Resource()
        default_stream = CoreStream()
        set_current = sync = close = nothing
        properties = stand_in.setting(
            {"multiprocessor_count": 132, "max_threads_per_block": 1024, "warp_size": 32,
             "max_shared_memory_per_block": 49_152, "cooperative_launch": True,
             "compute_capability_major": 9, "compute_capability_minor": 0}
        )()  # fmt: skip

        def __init__(self, device_id: int = 0) -> None:
            if device_id not in (0, None):
                raise ValueError(f"there is one device, simulated; not {device_id}")

        def create_stream(self, *_: Any, **__: Any) -> CoreStream:
            return CoreStream()

        def create_event(self, *_: Any, **__: Any) -> CoreEvent:
            return CoreEvent()

        def allocate(self, size: int, stream: Any = None) -> Buffer:
            return Buffer(memory, int(size))

    def launch(stream: Any, config: Any, kernel: Kernel, *args: Any) -> None:
        values = [_argument(kernel, i, arg, memory) for i, arg in enumerate(args)]
        how: dict[str, Any] = {"cooperative": bool(config.is_cooperative)}
        if config.cluster is not None:
            how["cluster"] = config.cluster
        machine.launch(kernel, config.grid, config.block, values, config.shmem_size, **how)

    replaced = {
        "Device": Device, "Program": Program, "ObjectCode": _Objects, "Buffer": Buffer,
        "launch": launch, "Stream": CoreStream, "Event": CoreEvent,
        "DeviceMemoryResource": Resource,
        "LegacyPinnedMemoryResource": Resource, "PinnedMemoryResource": Resource,
        "ManagedMemoryResource": Resource, "LEGACY_DEFAULT_STREAM": CoreStream(),
        "PER_THREAD_DEFAULT_STREAM": CoreStream(),
    }  # fmt: skip
    kept = ("ProgramOptions", "LaunchConfig", "EventOptions", "StreamOptions", "Host", "typing",
            "cuda", "cu13", "cu12", "utils", "DeviceMemoryResourceOptions",
            "PinnedMemoryResourceOptions", "ManagedMemoryResourceOptions")  # fmt: skip
    for name in [n for n in dir(module) if not n.startswith("_")]:
        if name in replaced:
            patches.set(module, name, replaced[name])
        elif name not in kept:
            patches.set(module, name, refuse(f"cuda.core.{name}"))


class _Objects:
    """``ObjectCode`` as scripts make it of PTX that they have."""

    @staticmethod
    def from_ptx(code: Any, **_: Any) -> ObjectCode:
        """PTX, or the path of a file with it."""
        return ObjectCode(code, "ptx")

    from_cubin = from_fatbin = from_ltoir = from_object = from_library = staticmethod(
        refuse("machine code", "use ObjectCode.from_ptx")
    )


def _argument(kernel: Kernel, number: int, arg: Any, memory: Memory) -> Any:
    """An argument of ``launch``: buffers and addresses become arrays."""
    arg = as_array(arg)
    if isinstance(arg, Buffer):
        arg = arg.handle
    if isinstance(arg, ctypes._SimpleCData):
        arg = arg.value
    if isinstance(arg, int) and number < len(kernel.params) and kernel.params[number].nbytes == 8:
        return memory.arguments_of(kernel, number, arg)
    return arg


__all__ = ["install"]
