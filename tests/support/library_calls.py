"""Calls of a library's stand-ins as the shim passes them on, without a program."""

import struct
from typing import Any

import numpy as np

from simulator import Device, Source
from simulator.host_checks import HostChecks
from simulator.host_order import Order
from tilescope.programs.connection import RuntimeCall
from tilescope.programs.host_process import HostMemoryError
from tilescope.programs.libraries import cublas, cufft, curand, cusparse  # noqa: F401
from tilescope.programs.libraries.state import LibraryState
from tilescope.programs.runtime.calls import CALLS
from tilescope.programs.runtime.graphs.graph import GraphTables
from tilescope.scripts.streams import Streams
from tilescope.scripts.virtual_device import VirtualDevice

_STACK, _HOST = 0x1000, 0x10000


class Caller:
    """A program's process: its memory is a ``bytearray`` at address ``0x10000``."""

    def __init__(self) -> None:
        self.device, self.checks, self.libraries = Device(), HostChecks(), LibraryState()
        self.machine = VirtualDevice(order=Order())
        self.streams, self.graphs = Streams(self.machine), GraphTables()
        self.process, self.source = self, Source("main.cu", 7)
        self._memory, self._stack, self._end = bytearray(1 << 16), b"", 0

    # -- as the process and the runtime of the stand-ins ---------------------------------

    def read(self, address: int, nbytes: int) -> bytes:
        if not _HOST <= address <= _HOST + len(self._memory) - nbytes:
            raise HostMemoryError("the program has no such memory")
        return bytes(self._memory[address - _HOST : address - _HOST + nbytes])

    def write(self, address: int, content: bytes) -> None:
        self.read(address, len(content))
        self._memory[address - _HOST : address - _HOST + len(content)] = content

    def put(self, address: int, value: int, nbytes: int = 8) -> None:
        self.write(address, (value & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little"))

    def stream(self, handle: int) -> int:
        return handle

    def stack_words(self, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}Q", self._stack)

    # -- for tests -----------------------------------------------------------------------

    def host(self, value: Any) -> int:
        """The address of a copy of an array or number in the process's memory."""
        raw = np.asarray(value).tobytes()
        at, self._end = _HOST + self._end, self._end + -(-len(raw) // 16) * 16
        self.write(at, raw)
        return at

    def on_device(self, array: Any) -> int:
        """The address of a copy in the device's memory."""
        made = self.device.allocate(array.nbytes, place="main.cu:3")
        made.array[...] = np.frombuffer(array.tobytes(), np.uint8)
        return made.address

    def at(self, address: int, count: int, kind: Any) -> Any:
        """Elements of the device's memory."""
        found = self.device.bytes_at(address, count * np.dtype(kind).itemsize)
        assert found is not None
        return np.array(found).view(kind)

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function; Python floats are ``double``, ``np.float32`` is ``float``."""
        integers, floats, stack = [], [], []
        for one in arguments:
            is_float = isinstance(one, (float, np.floating))
            kind = "<f" if isinstance(one, np.float32) else "<d" if is_float else "<q"
            word = int.from_bytes(struct.pack(kind, one), "little")
            room = floats if is_float else integers
            (room if len(room) < (8 if is_float else 6) else stack).append(word)
        registers = (*integers, *[0] * (6 - len(integers)))
        self._stack = struct.pack(f"<{len(stack)}Q", *stack)
        self.frame = RuntimeCall(
            registers, (*floats, *[0] * (8 - len(floats))), _STACK, 0, 0, 1
        )  # fmt: skip
        result = CALLS[function](self, *registers)
        return result or 0

    def new(self, function: str, *arguments: Any, nbytes: int = 8) -> int:
        """Call a function whose first argument is where it puts a handle; return that."""
        at = self.host(np.zeros(1, np.int64))
        assert self.call(function, at, *arguments) == 0
        return int.from_bytes(self.read(at, nbytes), "little")

    @property
    def found(self) -> list[str]:
        """The kinds of what was reported."""
        return [hazard.kind for hazard in self.checks.hazards()]
