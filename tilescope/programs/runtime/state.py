"""State of one process of a CUDA program: memory, modules, streams, errors."""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels import Kernel
from simulator import Source

from ...scripts.streams import Streams, UnknownHandleError
from ...scripts.virtual_device import VirtualDevice
from ..connection import Connection, RuntimeCall
from ..host_process import HostMemoryError
from ..libraries.shims import library_exports
from ..libraries.state import LibraryState
from ..shim.build import exports
from ..source_lines import SourceLines
from .calls import CALLS, UnsupportedCallError, plain_name
from .errors import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    INITIALIZATION_ERROR,
    INVALID_RESOURCE_HANDLE,
    INVALID_VALUE,
    QUERIES,
    SUCCESS,
    error_name,
)
from .graphs.graph import GraphTables, UnknownGraphError
from .memory.arrays import CudaArray
from .work import StreamWork

_NAMES = [*exports(), *library_exports()]
TOTAL_BYTES = 150_109_880_320
"""Of an H200's memory (``cudaDeviceProp::totalGlobalMem``)."""
_REGISTERS = "__cuda"
"""How the names of functions begin that work without a context: registration, ``<<<>>>``."""
_WITHOUT_CONTEXT = (*QUERIES, "cudaGetDeviceCount")
_IN_SPITE = (
    "cudaFree",
    "cudaFreeHost",
    "cudaFreeArray",
    "cudaDeviceReset",
    "cudaEventDestroy",
    "cudaStreamDestroy",
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaCreateChannelDesc",
)
"""What a program may call after an error that nothing works after any more."""
_UNSAFE = frozenset((
    "cudaMalloc", "cudaMallocHost", "cudaHostAlloc", "cudaMallocManaged", "cudaMallocPitch",
    "cudaMalloc3D", "cudaMallocArray", "cudaMalloc3DArray", "cudaFree", "cudaFreeHost",
    "cudaFreeArray", "cudaHostRegister",
))  # fmt: skip
"""What a thread must not call while a capture is under way (``cudaStreamCaptureMode``)."""
_GLOBAL, _RELAXED = 0, 2
"""Of ``cudaStreamCaptureMode``."""
_UNREADABLE = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError, struct.error)
"""What arguments raise that no program of nvcc gives: handles of nothing, sizes without end."""
_LEGACY, _PER_THREAD = 1, 2
"""Handles of the default streams."""


_PRINTS = frozenset((
    "cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaStreamSynchronize", "cudaDeviceReset",
    "cudaEventSynchronize", "cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy3D", "cudaMemcpyToSymbol",
    "cudaMemcpyFromSymbol", "cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "cudaLaunchHostFunc", "cudaStreamAddCallback",
    "__cudaUnregisterFatBinary", "cudaFree", "cudaStreamQuery", "cudaEventQuery",
))  # fmt: skip
"""Calls before which what kernels have printed appears."""

_OF_DRIVER = re.compile("cu[A-Z]")
_NO_DRIVER = (
    "; programs of the driver API do not run: load and launch kernels by the runtime (<<<>>>), "
    "or run one alone with tilescope check"
)


@dataclass
class RegisteredModule:
    """A translation unit's device code: its PTX, or ``None`` with what there is instead.

    ``binaries``: its machine code, by compute capability.
    """

    ptx: str | None
    instead: str
    binaries: dict[str, bytes] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)


@dataclass(frozen=True)
class RegisteredSymbol:
    """A variable of a module: its name in the PTX, and its bytes."""

    module: RegisteredModule
    name: str
    nbytes: int


@dataclass(frozen=True)
class LaunchConfiguration:
    """Launch configuration between ``<<<`` and ``>>>``, and the return address in host code."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int
    caller: int


@dataclass(frozen=True)
class RegisteredRange:
    """Pages of the host that ``cudaHostRegister`` has pinned, and their address on the device."""

    start: int
    nbytes: int
    device: int


class Runtime:
    """The runtime's state for one process, and the answers to its calls.

    Attributes:
        machine: How launches are simulated; ``streams``: its streams and events, by handle.
        modules: By handle; ``functions`` and ``symbols``: by the address of their host's stand-in.
        configurations: By thread, those that are pushed and not yet popped.
        launched_from: By thread, the address of the ``<<<>>>`` whose launch comes next.
        sticky: An error after which nothing works any more; ``last_error``: another one.
        errors: How often a call gave an error, by its text.
        parent: Of a process made by ``fork``: what its parent had at that time.
        is_used: Whether it has called anything that needs a context.
        arrays: CUDA arrays by handle; ``pictures``: textures and surfaces likewise.
        unused_pictures: Handles that are destroyed, by the number of their allocation.
        registered: Pinned pages of the host, by the address that was given.
        host_flags: Those of pinned memory, by address.
        pools: Attributes of memory pools by handle; 1 is the default one.
        stream_settings: Flags and priority by handle; ``event_flags`` likewise.
        capture_modes: Of threads (``cudaThreadExchangeStreamCaptureMode``).
        graphs: Graphs and captures; ``graph_memory``: addresses that their nodes allocated.
        libraries: Handles and calls of cuBLAS and others.
        ended_at: The line of the call during which the run was ended.
    """

    def __init__(self, machine: VirtualDevice, folders: list[Path]) -> None:
        self.machine, self.checks, self.folders = machine, machine.checks, folders
        self.device = machine.device
        self.streams = Streams(machine)
        self.modules: dict[int, RegisteredModule] = {}
        self.functions: dict[int, tuple[RegisteredModule, str]] = {}
        self.symbols: dict[int, RegisteredSymbol] = {}
        self.configurations: dict[int, list[LaunchConfiguration]] = {}
        self.launched_from: dict[int, int] = {}
        self.dynamic_limits: dict[int, int] = {}
        self.carveouts: dict[int, int] = {}
        self.limits: dict[int, int] = {}
        self.sticky = self.last_error = SUCCESS
        self.errors: Counter[str] = Counter()
        self.parent: Runtime | None = None
        self.is_used = False
        self.arrays: dict[int, CudaArray] = {}
        self.pictures: dict[int, Any] = {}
        self.unused_pictures: dict[int, list[int]] = {}
        self.registered: dict[int, RegisteredRange] = {}
        self.host_flags: dict[int, int] = {}
        self.pools: dict[int, dict[int, int]] = {1: {}}
        self.current_pool = 1
        self.stream_settings: dict[int, tuple[int, int]] = {}
        self.event_flags: dict[int, int] = {}
        self.capture_modes: dict[int, int] = {}
        self.graphs = GraphTables()
        self.graph_memory: set[int] = set()
        self._thread_streams: dict[int, int] = {}
        self._printed: list[str] = []
        self.ended_at = ""
        self.libraries = LibraryState()
        self._texts: dict[str, int] = {}

    def attach(self, connection: Connection) -> None:
        """Answer a process's calls from now on."""
        self.connection, self.process = connection, connection.process
        self.lines = SourceLines(self.process.pid, self.folders)
        connection.answer = self.answer

    def inherit(self, parent: Runtime) -> None:
        """Begin as a child of ``fork``: with what was registered before ``main``.

        If the parent had used CUDA, nothing works in the child (an H200 says
        cudaErrorInitializationError). A program that is started anew registers again.
        """
        self.parent = parent
        self.modules, self.functions = dict(parent.modules), dict(parent.functions)
        self.symbols = dict(parent.symbols)

    def answer(self, frame: RuntimeCall) -> int:
        """Return the result of one call.

        Raises:
            UnsupportedCallError: It has no stand-in.
        """
        outer: RuntimeCall | None = getattr(self, "frame", None)
        self.frame = frame
        if frame.launched_from:
            self.launched_from[frame.thread] = frame.launched_from
        name = self.name
        handler = CALLS.get(name)
        if handler is None:
            self._flush()
            self.ended_at = self.place
            instead = _NO_DRIVER if _OF_DRIVER.match(name) else ""
            raise UnsupportedCallError(f"{name} has no stand-in{self._at}{instead}")
        if name in _PRINTS:
            self.show_printed()
        if name == "__cudaRegisterFatBinary":
            self.parent = None  # a program of its own
        needs_context = not name.startswith(_REGISTERS) and name not in _WITHOUT_CONTEXT
        launches = name == "__cudaLaunchKernel"
        self.is_used |= needs_context
        at = ""
        try:
            if (needs_context or launches) and self.parent and self.parent.is_used:
                result = INITIALIZATION_ERROR
            elif self.sticky and (needs_context or launches) and name not in _IN_SPITE:
                result = self.sticky
            elif name in _UNSAFE and self._is_unsafe():
                result = CAPTURE_UNSUPPORTED
            else:
                result = handler(self, *frame.registers) or SUCCESS
            at = self._at if result and name not in QUERIES else ""
        except UnknownHandleError:
            result, at = INVALID_RESOURCE_HANDLE, self._at
        except UnknownGraphError:
            result, at = INVALID_VALUE, self._at
        except UnsupportedCallError as error:
            self._flush()
            raise UnsupportedCallError(f"{error}{self._at}") from None
        except HostMemoryError as error:
            self.checks.bad_copy(self.source, name, str(error))
            result, at = INVALID_VALUE, self._at
        except _UNREADABLE as error:
            self.ended_at = self.place
            if "Launch" in name:  # the simulator's own fault
                raise
            why = f"{type(error).__name__}: {error}"
            raise UnsupportedCallError(
                f"{name} has arguments that cannot be used ({why}){self._at}"
            ) from error
        except BaseException:
            self.ended_at = self.place
            raise
        finally:
            if "Launch" in name:
                self.launched_from.pop(frame.thread, None)
            if outer is not None:
                self.frame = outer
        is_error = name not in (*QUERIES, "cudaCreateChannelDesc")
        if result and is_error and name.startswith(("cuda", "__cudaLaunch")):
            self.last_error = result
            if not name.startswith("__"):  # a launch: it is a finding, with its reason
                self.errors[f"{name} gave {error_name(result)}{at}"] += 1
        return result

    def _is_unsafe(self) -> bool:
        """Whether a capture forbids calls that may wait for the device; it is invalid then."""
        thread = self.frame.thread
        if self.capture_modes.get(thread) == _RELAXED:
            return False
        forbidding = [
            one for one in self.graphs.captures.values()
            if one.mode == _GLOBAL or (one.mode != _RELAXED and one.thread == thread)
        ]  # fmt: skip
        for one in forbidding:
            one.is_valid = False
        return bool(forbidding)

    # -- streams -----------------------------------------------------------------------

    def stream(self, handle: int) -> int:
        """Return the handle of the stream that a call means; 0: the legacy default stream."""
        of_thread = self.exported.endswith(("_ptsz", "_ptds"))
        if handle == _PER_THREAD or (not handle and of_thread):
            thread = self.frame.thread
            if thread not in self._thread_streams:
                self._thread_streams[thread] = self.streams.cuStreamCreate(0)
            return self._thread_streams[thread]
        return 0 if handle == _LEGACY else handle

    def enqueue(
        self, stream: int, work: StreamWork, waits: bool = False, synchronous: bool = False
    ) -> int:
        """Execute work in a stream, or add it to the graph that the stream captures.

        Args:
            stream: Its handle, as the program gives it.
            work: The work.
            waits: Whether the host waits for it.
            synchronous: Whether the call has no stream: none may be captured meanwhile.

        Returns:
            The error code.
        """
        handle = self.stream(stream)
        capture = self.graphs.captures.get(handle)
        if capture is not None and not synchronous:
            if not capture.is_valid:
                return CAPTURE_INVALIDATED
            node = capture.add(handle, work)
            self.graphs.nodes[node.handle] = node
            return SUCCESS
        queue = self.streams.find(handle)
        blocking = [one for at, one in self.graphs.captures.items()
                    if self.streams.find(at).blocking]  # fmt: skip
        if not handle and blocking:
            for one in blocking:
                one.is_valid = False
            return CAPTURE_IMPLICIT
        return work.run(self, queue, waits)

    def device_address(self, address: int) -> int:
        """Return where the device has an address of the host that is registered; else the same."""
        for one in self.registered.values():
            if one.start <= address < one.start + one.nbytes:
                return one.device + address - one.start
        return address

    def reset(self) -> None:
        """Give back all memory, as ``cudaDeviceReset`` does; variables stay as they are."""
        self.machine.order.synchronize()
        for made in list(self.device.allocations.values()):
            if made.kind == "variable":
                continue
            self.device.free(made.address, self.place)
            registered = [at for at, one in self.registered.items() if one.device == made.address]
            for at in registered:
                one = self.registered.pop(at)
                self.connection.replace(one.start, one.nbytes, -1)
            if made.file >= 0 and not registered:
                self.connection.unmap(made.address, made.mapped_bytes)
        for table in (self.arrays, self.pictures, self.unused_pictures, self.graph_memory):
            table.clear()
        self.graphs = GraphTables()
        self.sticky = self.last_error = SUCCESS

    def leaked(self) -> list[tuple[str, int]]:
        """Return place and size of each allocation that the program has not given back."""
        return [
            (one.place, one.nbytes) for one in self.device.allocations.values()
            if one.kind != "variable" and one.address not in self.graph_memory
        ]  # fmt: skip

    # -- what kernels print --------------------------------------------------------------

    def printed(self, text: str) -> None:
        """Store what a kernel prints until the host waits, as a GPU does."""
        self._printed.append(text)

    def show_printed(self) -> None:
        """Print it (CUDA C++ Programming Guide, "Formatted Output", has the list of calls)."""
        text = "".join(self._printed)
        self._printed.clear()
        self.connection.print(text)

    def _flush(self) -> None:
        """Write what the program and its kernels have printed: the program is ended next."""
        self.show_printed()
        self.connection.flush()

    # -- the call under way ------------------------------------------------------------

    @property
    def exported(self) -> str:
        """The symbol that is called."""
        index = self.frame.index
        return _NAMES[index][1] if index < len(_NAMES) else f"function {index}"

    @property
    def name(self) -> str:
        """The function that is called."""
        return plain_name(self.exported)

    @property
    def version(self) -> int:
        """The major version of CUDA whose layouts the program has."""
        return _NAMES[self.frame.index][0]

    def stack_words(self, count: int) -> tuple[int, ...]:
        """Return the seventh integer argument and further ones."""
        raw = self.process.read(self.frame.stack, 8 * count)
        return tuple(int.from_bytes(raw[i : i + 8], "little") for i in range(0, 8 * count, 8))

    @property
    def source(self) -> Source:
        """The user's line of the call; a launch's is that of its ``<<<>>>``.

        Where the toolkit's own headers call (``cudaMalloc`` of a ``float**``), the line that calls
        these, by the chain of frame pointers.
        """
        caller = self.launched_from.get(self.frame.thread)
        if caller:
            return self.lines.at(caller)
        caller, frame = self.frame.caller, self.frame.stack - 16
        for _ in range(4):
            found = self.lines.at(caller)
            if found.file:
                return found
            try:
                (frame,) = struct.unpack("<Q", self.process.read(frame, 8))
                (caller,) = struct.unpack("<Q", self.process.read(frame + 8, 8))
            except HostMemoryError:
                break
        return Source("", 0)

    @property
    def _at(self) -> str:
        return f" at {self.place}" if self.place else ""

    @property
    def place(self) -> str:
        """The same as ``main.cu:12``, or nothing."""
        source = self.source
        return f"{os.path.basename(source.file)}:{source.line}" if source.file else ""

    def put(self, address: int, value: int, nbytes: int = 8) -> None:
        """Write a whole number to the program's memory, little-endian."""
        self.process.write(address, (value & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little"))

    def text(self, text: str) -> int:
        """Return the address of a C string in the program."""
        if text not in self._texts:
            self._texts[text] = self.connection.store_text(text)
        return self._texts[text]
