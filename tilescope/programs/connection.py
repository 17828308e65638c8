"""Protocol between the shim in a program and tilescope: frames, answers, orders.

The layouts of both are those of ``shim.c``.
"""

import array
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from .host_process import HostMemoryError, HostProcess

_FRAME = struct.Struct("<20Q")
_ORDER = struct.Struct("<5Q")
_ANSWER = 2**64 - 1
_RETURN, _CALL, _MAP, _UNMAP, _PRINT, _TEXT, _FLUSH, _READ, _WRITE, _SHARE, _UNSHARE, _FIND = range(
    12
)
_WORD = 2**64 - 1
_RUN_OF_CALLS = 256
"""Calls of one process that are answered before others that may have come are looked for."""
_PATIENCE = struct.pack("@ll", 0, 20_000)
"""A ``struct timeval``: how long a receiving call waits before it returns nothing."""


class Disconnected(Exception):
    """The program has ended, or has closed its end."""


@dataclass(slots=True)
class RuntimeCall:
    """One call of the runtime.

    Attributes:
        registers: Its first six integer arguments; ``floats``: the low 64 bits of xmm0 to 7.
        stack: Where its further arguments stand; ``caller``: the address that it returns to.
        index: Which function, by its place in ``shim.build.exports``; ``thread`` of the program.
        launched_from: The address of the ``<<<>>>`` that makes it; 0: none does.
    """

    registers: tuple[int, ...]
    floats: tuple[int, ...]
    stack: int
    caller: int
    index: int
    thread: int
    launched_from: int = 0


def _unpack_call(frame: bytes) -> RuntimeCall:
    words = _FRAME.unpack(frame)
    return RuntimeCall(words[:6], words[6:14], *words[14:19])


class Connection:
    """The shim's end of a process; ``answer`` gives the result of each call."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        (pid,) = struct.unpack("<Q", self._receive(8))
        self.process = HostProcess(pid, self)
        self.answer: Callable[[RuntimeCall], int] = lambda frame: 0

    def fileno(self) -> int:
        """Return the socket's number, for ``selectors``."""
        return self._channel.fileno()

    def close(self) -> None:
        """Close the connection, so that the program's next call ends it."""
        self._channel.close()

    def serve(self, is_alone: bool = False) -> None:
        """Answer one call; if there is no other connection, also those that follow shortly.

        The wait for the next call is then the receiving itself, one call of the system.

        Raises:
            Disconnected: There is none any more.
        """
        self._order(_RETURN, self.answer(self._frame()))
        for _ in range(_RUN_OF_CALLS if is_alone else 0):
            begin = self._receive_some(_FRAME.size)
            if not begin:
                return
            rest = self._receive(_FRAME.size - len(begin))
            self._order(_RETURN, self.answer(_unpack_call(begin + rest)))

    def _frame(self) -> RuntimeCall:
        return _unpack_call(self._receive(_FRAME.size))

    def _receive(self, nbytes: int) -> bytes:
        parts = []
        while nbytes:
            part = self._receive_some(min(nbytes, 1 << 20))
            parts.append(part)
            nbytes -= len(part)
        return b"".join(parts)

    def _receive_some(self, nbytes: int) -> bytes:
        """Return up to so many bytes; none if none come for a while."""
        try:
            part = self._channel.recv(nbytes)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Disconnected from error
        if not part:
            raise Disconnected
        return part

    def _order(self, op: int, *words: int, content: bytes = b"", file: int = -1) -> None:
        filled = [*(word & _WORD for word in words), 0, 0, 0, 0][:4]
        message = _ORDER.pack(op, *filled)
        try:
            if file >= 0:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
                self._channel.sendmsg([message], rights)
            else:
                self._channel.sendall(message + content)
        except OSError as error:
            raise Disconnected from error

    def _ordered(self, op: int, *words: int, content: bytes = b"", file: int = -1) -> int:
        """Give an order, answer the calls that its execution makes, and return its result."""
        self._order(op, *words, content=content, file=file)
        while True:
            frame = self._frame()
            if frame.index == _ANSWER:
                return frame.registers[0]
            self._order(_RETURN, self.answer(frame))

    def call(self, function: int, *arguments: int) -> None:
        """Call a function of the program with up to three arguments."""
        self._ordered(_CALL, function, *arguments)

    def map(self, address: int, nbytes: int, file: int) -> bool:
        """Map a file at an address of the program; whether it could be."""
        return self._ordered(_MAP, address, nbytes, file=file) == address

    def replace(self, address: int, nbytes: int, file: int) -> bool:
        """Replace pages by a file's that gets their content; without a file by memory of its own.

        Returns:
            Whether it could be done.
        """
        op = _SHARE if file >= 0 else _UNSHARE
        return self._ordered(op, address, nbytes, file=file) == address

    def unmap(self, address: int, nbytes: int) -> None:
        """Undo ``map``."""
        self._ordered(_UNMAP, address, nbytes)

    def print(self, text: str) -> None:
        """Write to the program's standard output, in order with what it prints itself."""
        content = text.encode("utf-8", "surrogateescape")
        if content:
            self._ordered(_PRINT, len(content), content=content)

    def store_text(self, text: str) -> int:
        """Return the address of a C string that lives as long as the program."""
        return self.store_bytes(text.encode())

    def store_bytes(self, content: bytes) -> int:
        """Return the address of bytes that live as long as the program."""
        return self._ordered(_TEXT, len(content), content=content)

    def find(self, library: str, name: str) -> int:
        """Return the address of a library's function, which the program loads; 0: none."""
        content = f"{library}\0{name}".encode()
        return self._ordered(_FIND, len(content), content=content)

    def flush(self) -> None:
        """Flush the program's standard output."""
        self._ordered(_FLUSH)

    def read(self, address: int, nbytes: int) -> bytes:
        """Return memory of the program, by the program itself.

        Raises:
            HostMemoryError: Not all of it is readable.
        """
        self._order(_READ, address, nbytes)
        content = self._receive(nbytes)
        if not self._frame().registers[0]:
            raise HostMemoryError.at(address, nbytes)
        return content

    def write(self, address: int, content: bytes) -> None:
        """Write memory of the program, by the program itself.

        Raises:
            HostMemoryError: Not all of it is writable.
        """
        if not self._ordered(_WRITE, address, len(content), content=content):
            raise HostMemoryError.at(address, len(content))


class Listener:
    """A Unix socket that programs connect to; its folder is the user's alone."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "socket")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(16)

    def fileno(self) -> int:
        """Return the socket's number, for ``selectors``."""
        return self._socket.fileno()

    def accept(self) -> Connection:
        """Return the process that has connected."""
        channel, _ = self._socket.accept()
        return Connection(channel)

    def close(self) -> None:
        """Take no more connections."""
        self._socket.close()
