"""What one process of a CUDA program has: memory, modules, streams, errors."""

from __future__ import annotations

import os
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kernels import Kernel
from simulator import Device, Source
from simulator.host_checks import HostChecks

from ...scripts.streams import Streams, UnknownHandleError
from ...scripts.virtual_device import VirtualDevice
from ..connection import Connection, RuntimeCall
from ..host_process import HostMemoryError
from ..shim.build import exports
from ..source_lines import SourceLines
from .calls import CALLS, UnsupportedCallError, plain_name
from .errors import (
    INITIALIZATION_ERROR,
    INVALID_RESOURCE_HANDLE,
    INVALID_VALUE,
    QUERIES,
    SUCCESS,
    error_name,
)

_NAMES = exports()
TOTAL_BYTES = 150_109_880_320
"""Of an H200's memory (``cudaDeviceProp::totalGlobalMem``)."""
_REGISTERS = "__cuda"
"""How the names of functions begin that work without a context: registration, ``<<<>>>``."""
_WITHOUT_CONTEXT = (*QUERIES, "cudaGetDeviceCount")


@dataclass
class RegisteredModule:
    """A translation unit's device code: its PTX, or ``None`` with what there is instead."""

    ptx: str | None
    instead: str
    kernels: dict[str, Kernel] = field(default_factory=dict)


@dataclass(frozen=True)
class RegisteredSymbol:
    """A variable of a module: its name in the PTX, and its bytes."""

    module: RegisteredModule
    name: str
    nbytes: int


@dataclass(frozen=True)
class LaunchConfiguration:
    """What stands between ``<<<`` and ``>>>``, and the address that the host code returns to."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int
    caller: int


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
    """

    def __init__(self, machine: VirtualDevice, checks: HostChecks, folders: list[Path]) -> None:
        self.machine, self.checks, self.folders = machine, checks, folders
        self.device = Device()
        self.streams = Streams(machine)
        self.modules: dict[int, RegisteredModule] = {}
        self.functions: dict[int, tuple[RegisteredModule, str]] = {}
        self.symbols: dict[int, RegisteredSymbol] = {}
        self.configurations: dict[int, list[LaunchConfiguration]] = {}
        self.launched_from: dict[int, int] = {}
        self.dynamic_limits: dict[int, int] = {}
        self.limits: dict[int, int] = {}
        self.sticky = self.last_error = SUCCESS
        self.errors: Counter[str] = Counter()
        self.parent: Runtime | None = None
        self.is_used = False
        self._texts: dict[str, int] = {}

    def attach(self, connection: Connection) -> None:
        """Answer a process's calls from now on."""
        self.connection, self.process = connection, connection.process
        self.lines = SourceLines(self.process.pid)
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
        """The result of one call.

        Raises:
            UnsupportedCallError: It has no stand-in.
        """
        outer: RuntimeCall | None = getattr(self, "frame", None)
        self.frame = frame
        name = self.name
        handler = CALLS.get(name)
        if handler is None:
            raise UnsupportedCallError(f"{name} has no stand-in{self._at}")
        if name == "__cudaRegisterFatBinary":
            self.parent = None  # a program of its own
        needs_context = not name.startswith(_REGISTERS) and name not in _WITHOUT_CONTEXT
        launches = name == "__cudaLaunchKernel"
        self.is_used |= needs_context
        at = ""
        try:
            if (needs_context or launches) and self.parent and self.parent.is_used:
                result = INITIALIZATION_ERROR
            else:
                result = handler(self, *frame.registers) or SUCCESS
            at = self._at if result and name not in QUERIES else ""
        except UnknownHandleError:
            result, at = INVALID_RESOURCE_HANDLE, self._at
        except HostMemoryError as error:
            self.checks.bad_copy(self.source, name, str(error))
            result, at = INVALID_VALUE, self._at
        finally:
            if "Launch" in name:
                self.launched_from.pop(frame.thread, None)
            if outer is not None:
                self.frame = outer
        if result and name not in QUERIES and name.startswith(("cuda", "__cudaLaunch")):
            self.last_error = result
            if not name.startswith("__"):  # a launch: it is a finding, with its reason
                self.errors[f"{name} gave {error_name(result)}{at}"] += 1
        return result

    # -- the call under way ------------------------------------------------------------

    @property
    def name(self) -> str:
        """The function that is called."""
        index = self.frame.index
        return plain_name(_NAMES[index]) if index < len(_NAMES) else f"function {index}"

    def stack_words(self, count: int) -> tuple[int, ...]:
        """The seventh integer argument and further ones."""
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
        """The address of a C string in the program."""
        if text not in self._texts:
            self._texts[text] = self.connection.store_text(text)
        return self._texts[text]
