"""The memory of the program's process, read and written from outside of it."""

import ctypes
import errno
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = 4096


class _Extent(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_uint64), ("nbytes", ctypes.c_uint64))


for _function in (_LIBC.process_vm_readv, _LIBC.process_vm_writev):
    _function.restype = ctypes.c_ssize_t
    _function.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong,
        ctypes.c_ulong,
    ]  # fmt: skip


class HostMemoryError(Exception):
    """The program has no such memory."""

    @classmethod
    def at(cls, address: int, nbytes: int) -> "HostMemoryError":
        """Return the error of bytes at an address."""
        return cls(f"the program has no {nbytes:,} bytes at {address:#x}")


class _Transfer(Protocol):
    """Transfer of bytes by the program itself, if the OS forbids access from outside."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of the program."""

    def write(self, address: int, content: bytes) -> None:
        """Replace bytes of the program."""


class HostProcess:
    """A process by its number; ``instead`` serves where ``process_vm_readv`` is not allowed."""

    def __init__(self, pid: int, instead: _Transfer) -> None:
        self.pid = pid
        self._fallback = instead

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes at an address.

        Raises:
            HostMemoryError: Not all of them are readable.
        """
        return bytes(self.read_array(address, nbytes))

    def read_array(self, address: int, nbytes: int) -> Any:
        """Return bytes at an address as a new array, uint8."""
        content = np.empty(nbytes, np.uint8)
        self.read_into(address, content)
        return content

    def read_into(self, address: int, content: Any) -> None:
        """Read bytes at an address into a contiguous array, uint8.

        Raises:
            HostMemoryError: Not all of them are readable; some may have been read.
        """
        nbytes = content.nbytes
        if nbytes and not self._move(_LIBC.process_vm_readv, address, content):
            content[:] = np.frombuffer(self._fallback.read(address, nbytes), np.uint8)

    def write(self, address: int, content: Any) -> None:
        """Replace bytes at an address; ``content``: bytes, or an array of them.

        Raises:
            HostMemoryError: Not all of them are writable.
        """
        raw = np.ascontiguousarray(np.frombuffer(content, np.uint8))
        if raw.nbytes and not self._move(_LIBC.process_vm_writev, address, raw):
            self._fallback.write(address, raw.tobytes())

    def _move(self, function: Any, address: int, local: Any) -> bool:
        """Whether the kernel moved them."""
        done, base = 0, int(local.__array_interface__["data"][0])
        while done < local.nbytes:
            here = _Extent(base + done, local.nbytes - done)
            there = _Extent(address + done, local.nbytes - done)
            count = function(self.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if count <= 0:
                if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                    return False
                raise HostMemoryError.at(address, local.nbytes)
            done += count
        return True

    def read_parts(self, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return bytes at several places, each ``(address, size)``, in one call of the system."""
        total = sum(nbytes for _, nbytes in parts)
        content = np.empty(max(total, 1), np.uint8)
        here = _Extent(int(content.__array_interface__["data"][0]), total)
        there = (_Extent * len(parts))(*[_Extent(*part) for part in parts])
        count = _LIBC.process_vm_readv(
            self.pid, ctypes.byref(here), 1, there, len(parts), 0
        ) if total else 0  # fmt: skip
        if count != total:
            return [self.read(*part) for part in parts]
        raw, found, at = content.tobytes(), [], 0
        for _, nbytes in parts:
            found.append(raw[at : at + nbytes])
            at += nbytes
        return found

    def text(self, address: int, longest: int = 1 << 16) -> str:
        """Return a C string."""
        found = b""
        while b"\0" not in found and len(found) < longest:
            at = address + len(found)
            found += self.read(at, min(256, _PAGE - at % _PAGE))
        return found.partition(b"\0")[0].decode(errors="replace")
