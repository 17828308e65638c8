"""Pinned and managed memory in this process, at the address that the device has for it."""

import ctypes
import mmap

from simulator import Device
from simulator.memory.storage.device import AddressesExhaustedError, DeviceAllocation

_FIXED_NOREPLACE = 0x100000
"""``MAP_FIXED_NOREPLACE`` of Linux."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def allocate(device: Device, nbytes: int, kind: str, place: str) -> DeviceAllocation:
    """Return memory of a kind that the host reaches, mapped at its address.

    Raises:
        AddressesExhaustedError: No address is left, or it is used by something else here.
    """
    made = device.allocate(nbytes, kind, place)
    if not map_file(made.address, made.mapped_bytes, made.file):
        device.free(made.address)
        raise AddressesExhaustedError(f"the process uses the memory at {made.address:#x}")
    return made


def release(made: DeviceAllocation) -> None:
    """Unmap what ``allocate`` mapped, after it was freed."""
    unmap(made.address, made.mapped_bytes)


def map_file(address: int, nbytes: int, file: int) -> bool:
    """Map a file at an address of this process; whether it could be."""
    flags = mmap.MAP_SHARED | _FIXED_NOREPLACE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    return bool(_LIBC.mmap(address, nbytes, access, flags, file, 0) == address)


def unmap(address: int, nbytes: int) -> None:
    """Undo ``map_file``."""
    _LIBC.munmap(address, nbytes)
