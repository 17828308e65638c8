"""The runtime's calls of an extension, answered in the process that makes them."""

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

from simulator import Source

from ..programs.connection import RuntimeCall
from ..programs.executable import ProgramRefusedError
from ..programs.fatbin import FatBinaryError
from ..programs.host_process import HostProcess
from ..programs.runtime.calls import UnsupportedCallError
from ..programs.runtime.state import Runtime
from ..programs.shim.build import exports
from ..scripts.host_pages import map_file, unmap
from ..scripts.virtual_device import RefusedError, VirtualDevice

_WORDS = 18
"""Of a frame (``shim.c``)."""
_UNKNOWN = 999
"""``cudaErrorUnknown``: what calls give after an exception."""
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64 * _WORDS))
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
_REFUSED = (UnsupportedCallError, ProgramRefusedError, FatBinaryError)
_REGISTERS = frozenset(
    i for i, (_, name) in enumerate(exports()) if name.startswith("__cudaRegister")
)
_TEXTS = frozenset(i for i, (_, name) in enumerate(exports()) if name.startswith("cudaGetError"))
"""Functions that return a pointer, which an extension reads after an exception too."""
_registered: list[RuntimeCall] = []
"""Calls by which loaded extensions have registered device code. A library stays loaded, and does so
once; the runtime of a further run in this process gets the same calls again."""


class _OwnMemory:
    """This process's memory where ``process_vm_readv`` is not allowed."""

    def read(self, address: int, nbytes: int) -> bytes:
        return ctypes.string_at(address, nbytes)

    def write(self, address: int, content: bytes) -> None:
        ctypes.memmove(address, content, len(content))


class InProcessConnection:
    """A ``Connection`` without a socket: the bridge calls ``function``.

    Attributes:
        answer: Gives the result of each call; ``Runtime.attach`` sets it.
        function: The callback, for ``set_answer`` of the bridge.
        error: An exception of a call, which is raised once the extension has returned.
    """

    def __init__(self) -> None:
        self.process = HostProcess(os.getpid(), _OwnMemory())
        self.answer: Callable[[RuntimeCall], int] = lambda frame: 0
        self.function = _ANSWER(self._serve)
        self.error: BaseException | None = None
        self._texts: list[Any] = []
        self._library = ctypes.CDLL(None)

    @property
    def address(self) -> int:
        """The callback's address."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def _serve(self, frame: Any) -> int:
        words = tuple(frame.contents)
        call = RuntimeCall(words[:6], words[6:14], *words[14:])
        if self.error is not None and call.index not in _TEXTS:
            return _UNKNOWN
        try:
            return self.answer(call) & (1 << 64) - 1
        except BaseException as error:
            self.error = error
            return _UNKNOWN

    def raise_error(self) -> None:
        """Raise what a call raised, if any did.

        Raises:
            RefusedError: The extension asks for what has no stand-in.
        """
        error, self.error = self.error, None
        if isinstance(error, _REFUSED):
            raise RefusedError(str(error)) from None
        if error is not None:
            raise error

    def call(self, function: int, *arguments: int) -> None:
        """Call a function of the extension with up to three arguments."""
        _FUNCTION(function)(*[*arguments, 0, 0, 0][:3])

    def map(self, address: int, nbytes: int, file: int) -> bool:
        """Map a file at an address; whether it could be."""
        return map_file(address, nbytes, file)

    def unmap(self, address: int, nbytes: int) -> None:
        """Undo ``map``."""
        unmap(address, nbytes)

    def replace(self, address: int, nbytes: int, file: int) -> bool:
        """Refuse to replace pages: they may be Python's own."""
        return False

    def print(self, text: str) -> None:
        """Print what a kernel has printed."""
        sys.stdout.write(text)

    def flush(self) -> None:
        """Flush the standard output of C and of Python."""
        self._library.fflush(None)
        sys.stdout.flush()

    def store_text(self, text: str) -> int:
        """The address of a C string that lives as long as the process."""
        return self.store_bytes(text.encode())

    def store_bytes(self, content: bytes) -> int:
        """The address of bytes that live as long as the process."""
        self._texts.append(ctypes.create_string_buffer(content))
        return ctypes.addressof(self._texts[-1])

    def find(self, library: str, name: str) -> int:
        """Return 0: the driver's functions are linked into each extension, where none can look."""
        return 0


class ExtensionRuntime(Runtime):
    """The runtime of all extensions of a script.

    Attributes:
        calls: Its connection.
        script_line: The line of the script that has called the extension.
    """

    def __init__(self, machine: VirtualDevice) -> None:
        super().__init__(machine, [])
        self.calls, self.script_line = InProcessConnection(), Source("", 0)
        connection: Any = self.calls  # it does what a Connection does, without a socket
        self.attach(connection)
        for frame in list(_registered):
            super().answer(frame)

    def answer(self, frame: RuntimeCall) -> int:
        """Return the result of one call."""
        result = super().answer(frame)
        if frame.index in _REGISTERS:
            _registered.append(frame)
        return result

    @property
    def source(self) -> Source:
        """The line of the C++ that makes a call; else the script's that has called it."""
        found = super().source
        return found if found.file else self.script_line
