"""``Device``: global memory that outlives a launch, with addresses that pointers may hold.

A launch on a device sees every allocation at the address that ``allocate`` gave, so that pointers
kept in memory (lists, ``float**``, pointers in ``__constant__``) mean what they mean on a GPU.
"""

from __future__ import annotations

import bisect
import functools
import mmap
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.arguments.pointers import BorrowedMemory, existence, first_byte, owner
from kernels.arguments.texture import Surface, Texture
from kernels.arguments.uninitialised import Unset, missing_of, unset
from kernels.ptx.names import variable_name
from kernels.ptx.parser import parse

from ...core.geometry import Flat
from .heap import HeapContent
from .image_handles import picture_handle
from .layout import (
    HEAP,
    MAX_ARRAY,
    MODULE_VARIABLES,
    array_address,
    array_number,
    function_addresses,
    lay_out,
    variable_bytes,
)

_HOST_SLOTS = (*range(24 << 4, 80 << 4), *range(90 << 4, 120 << 4))
"""Numbers whose addresses a process on Linux can map (below 2^47, clear of what it maps itself)."""
_HOST_RANGES = frozenset(
    number
    for first, end in ((80, 90), (120, 128), (160, 176), (240, 256))
    for number in range(first << 4, end << 4)
)
"""Numbers in whose addresses Linux puts programs, their heaps and stacks: 0x55.. and 0x7f.. on
x86-64, 0xaaaa.. and 0xffff.. on aarch64. No device memory lies there, live or freed."""
_NOT_DEVICE = _HOST_RANGES | {*_HOST_SLOTS}
_OTHER_FILES = 256
"""File descriptors that are not those of allocations."""
_WAITING = 64
"""Freed numbers that are not given out again yet: reports say where their memory was freed."""
_PAGE, _SECTOR = 4096, 32
_SWEPT = 256
"""Adoptions between two looks for those whose memory is gone."""
_Key = tuple[str, int]
"""Of a module: its PTX text, and ``Kernel.module``."""


class FreedMemory(NamedTuple):
    """A freed allocation: its size in bytes, and where it was freed, for reports."""

    nbytes: int
    text: str


class AddressesExhaustedError(MemoryError):
    """The device has no addresses left for another allocation."""


@dataclass
class DeviceAllocation:
    """One allocation.

    Attributes:
        number: Its place in the address space; ``address`` is that of its first byte.
        array: Its bytes, uint8, which know which of them nothing has written.
        buffer: The same, padded to a multiple of 32 bytes.
        kind: ``device``; or ``managed``, ``pinned`` and ``variable`` (a managed one of a module),
            which have a ``file`` (a memfd) that the host maps at the same address.
        place: Where the program allocated it, for reports.
        may_leak: Whether the program has to free it, by a call.
        exists: Whether the memory of an adopted array is still that array's.
    """

    number: int
    array: Flat
    buffer: Flat
    kind: str
    place: str
    file: int = -1
    may_leak: bool = True
    exists: Callable[[], bool] = lambda: True

    @property
    def address(self) -> int:
        """The generic address of the first byte."""
        return array_address(self.number)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return int(self.array.nbytes)

    @property
    def mapped_bytes(self) -> int:
        """Bytes that the host maps."""
        return _padded(self.nbytes, _PAGE)


@dataclass
class DeviceModule:
    """A PTX text's module-scope variables, by name: arrays of uint8, and their addresses.

    ``first_variable``: the number of the first one (``layout.lay_out``).
    """

    first_variable: int
    arrays: dict[str, Flat] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)


class Device:
    """A GPU's memory: allocations and module variables persist from launch to launch.

    ``simulator.launch(..., device=device)`` takes for each parameter its bytes, or a number
    (addresses among them), as ``cuLaunchKernel`` does. Host memory is not part of it.

    Attributes:
        allocations: By number; ``freed``: those that are given back.
        heap: What kernels have allocated with ``malloc`` and not freed.
    """

    def __init__(self) -> None:
        self.allocations: dict[int, DeviceAllocation] = {}
        self.freed: dict[int, FreedMemory] = {}
        self._modules: dict[_Key, DeviceModule] = {}
        self._hosts: list[tuple[int, int]] = []
        """First byte in this process's memory and number of each allocation, ascending."""
        self._adoptions = 0
        self._variables: dict[int, tuple[str, Flat]] = {}
        self.heap: HeapContent | None = None
        self._pictures: dict[int, list[Texture | Surface]] = {}
        self._free_numbers: list[int] = []
        self._host_numbers = list(reversed(_HOST_SLOTS))
        self._next, self._next_variable = 0, MODULE_VARIABLES

    # -- memory ------------------------------------------------------------------------

    def allocate(
        self, nbytes: int, kind: str = "device", place: str = "", address: int = 0
    ) -> DeviceAllocation:
        """Return uninitialised memory (managed and pinned: zeros, as the host maps them).

        Args:
            nbytes: Its size.
            kind: ``device``; ``managed`` or ``pinned``: in a file that the host can map.
            place: Where the program asks for it, for reports.
            address: One of memory that was freed with ``is_reserved``; 0: any.

        Raises:
            AddressesExhaustedError: No address is left for it.
        """
        if nbytes > MAX_ARRAY:
            raise AddressesExhaustedError(f"an allocation may have {MAX_ARRAY:,} bytes")
        if kind == "device":
            number, file = array_number(address) if address else self._number(), -1
            memory = unset((_padded(nbytes, _SECTOR),), np.uint8)
            buffer = memory.view(np.ndarray)
        else:
            limit = _host_allocations()
            if len(_HOST_SLOTS) - len(self._host_numbers) >= limit:
                alive = f"{limit:,} managed and pinned allocations"
                raise AddressesExhaustedError(f"{alive} are alive, as many as can be")
            file, mapped = _host_memory(_padded(nbytes, _PAGE))
            number, memory = self._host_numbers.pop(), np.frombuffer(mapped, np.uint8)
            buffer = memory[: _padded(nbytes, _SECTOR)]
        return self._enter(DeviceAllocation(number, memory[:nbytes], buffer, kind, place, file))

    def _enter(self, made: DeviceAllocation) -> DeviceAllocation:
        self.allocations[made.number] = made
        self.freed.pop(made.number, None)
        bisect.insort(self._hosts, (first_byte(made.array), made.number))
        return made

    def _number(self) -> int:
        while self._next in _NOT_DEVICE:
            self._next += 1
        if len(self._free_numbers) > _WAITING or (self._next >= HEAP and self._free_numbers):
            return self._free_numbers.pop(0)
        if self._next >= HEAP:
            raise AddressesExhaustedError(
                f"{len(self.allocations):,} allocations are alive, as many as can be"
            )
        self._next += 1
        return self._next - 1

    def free(
        self, address: int, place: str = "", is_reserved: bool = False
    ) -> DeviceAllocation | None:
        """Give an allocation back; ``None`` where none begins at the address.

        ``is_reserved``: whether no other allocation gets its address.
        """
        made = self.allocations.get(array_number(address))
        if made is None or made.address != address:
            return None
        del self.allocations[made.number]
        self._pictures.pop(made.number, None)
        text = f"memory freed{f' at {place}' if place else ''}"
        self.freed[made.number] = FreedMemory(made.nbytes, text)
        at = bisect.bisect_left(self._hosts, (first_byte(made.array), made.number))
        del self._hosts[at : at + 1]
        if made.file >= 0:
            os.close(made.file)
            self._host_numbers.insert(0, made.number)
        elif not is_reserved:
            self._free_numbers.append(made.number)
        return made

    def freed_at(self, address: int) -> str:
        """Return where the freed memory in which an address lies was freed; else an empty text."""
        self.live(number := array_number(address))
        freed = self.freed.get(number)
        inside = freed is not None and 0 <= address - array_address(number) <= freed.nbytes
        return freed.text if freed and inside else ""

    def live(self, number: int) -> DeviceAllocation | None:
        """Return the allocation of a number; one whose memory is gone is freed first."""
        made = self.allocations.get(number)
        if made is None or made.exists():
            return made
        self.free(made.address)
        return None

    def find(self, address: int) -> DeviceAllocation | None:
        """Return the allocation in whose range of addresses one lies, or at whose end."""
        made = self.live(array_number(address))
        return made if made and made.address <= address <= made.address + made.nbytes else None

    def bytes_at(self, address: int, nbytes: int) -> Flat | None:
        """Return a view of bytes, uint8; ``None`` if they are not all in one allocation."""
        number = array_number(address)
        made = self.live(number)
        array = made.array if made else self._variables.get(number, ("", None))[1]
        offset = address - array_address(number)
        if array is None or offset < 0 or offset + nbytes > array.nbytes:
            return None
        return array[offset : offset + nbytes]

    def picture(self, number: int, of: Texture | Surface, instead: int = 0) -> int:
        """Return the handle of a texture or surface of an allocation, by its number.

        Args:
            number: The allocation's.
            of: The object; its array has the shape and type of the texels.
            instead: Handle of an object that is destroyed, whose place the new one takes.

        Raises:
            LaunchError: The allocation has ``image_handles.MAX_IMAGES`` objects already.
        """
        made = self._pictures.setdefault(number, [])
        which = min(instead & 0xFF if instead else len(made), len(made))
        handle = picture_handle(number, which, "an array")
        made[which : which + 1] = [of]
        return handle

    @property
    def pictures(self) -> Mapping[int, list[Texture | Surface]]:
        """Textures and surfaces of live allocations, by the allocations' numbers."""
        return self._pictures

    def copy(self, numbers: Collection[int] | None = None) -> Device:
        """Return a device with the same contents at the same addresses, which no host maps.

        ``numbers``: of the allocations that are copied; ``None``: all.
        """
        made = Device()
        made.heap = self.heap
        made.freed, made._next = dict(self.freed), self._next
        made._next_variable = self._next_variable
        made._free_numbers = list(self._free_numbers)
        made._host_numbers = list(self._host_numbers)
        arrays: dict[int, Flat] = {}
        for number in list(self.allocations) if numbers is None else numbers:
            one = self.live(number)
            if one is None:
                continue
            memory = unset((one.buffer.nbytes,), np.uint8)
            buffer = memory.view(np.ndarray)
            buffer[:] = one.buffer
            array = memory[: one.nbytes]
            flags = missing_of(one.array)
            if flags is None:
                array = buffer[: one.nbytes]
            else:
                array.missing[...] = flags
            arrays[id(one.array)] = array
            made._enter(replace(one, array=array, buffer=buffer, file=-1, exists=lambda: True))
            pictures = self._pictures.get(number, [])
            made._pictures[number] = [_moved(of, one.buffer, buffer) for of in pictures]
        for key, module in self._modules.items():
            copies = {n: arrays.setdefault(id(a), a.copy()) for n, a in module.arrays.items()}
            made._modules[key] = replace(module, arrays=copies, addresses=dict(module.addresses))
        for number, (name, array) in self._variables.items():
            made._variables[number] = name, arrays.setdefault(id(array), array.copy())
        return made

    def copy_variables(self, ptx: str, other: str) -> None:
        """Give the variables of one module the contents of another's of the same name and size."""
        known = self.variables(ptx)
        for name, array in self.variables(other).items():
            if name in known and known[name].nbytes == array.nbytes:
                array[:] = known[name]

    # -- arrays of the process --------------------------------------------------------------

    def adopt(
        self, array: NDArray[np.generic], kind: str = "device", place: str = ""
    ) -> DeviceAllocation:
        """Return the allocation in which an array of this process lies: memory of a front end.

        If there is none, the memory of the array (or of what it is a view of) gets an address for
        as long as it exists. The device does not keep it alive.

        Raises:
            AddressesExhaustedError: No address is left for it.
        """
        begin = first_byte(array)
        if found := self.lent(begin, array.nbytes if array.flags.c_contiguous else 0):
            return found
        whole = owner(array)
        is_dense = whole.flags.c_contiguous or whole.flags.f_contiguous
        if not is_dense or not 0 <= begin - first_byte(whole) <= whole.nbytes:
            whole = array
        flags = array.tracked if isinstance(array, Unset) else None
        exists = existence(array)
        return self.adopt_memory(first_byte(whole), whole.nbytes, exists, flags, kind, place)

    def adopt_memory(
        self, start: int, nbytes: int, exists: Callable[[], bool],
        unset_bytes: tuple[int, Flat] | None = None, kind: str = "device", place: str = "",
    ) -> DeviceAllocation:  # fmt: skip
        """Give memory of this process an address.

        Args:
            start: Its address in the process.
            nbytes: Its size.
            exists: Whether the memory is still there.
            unset_bytes: Where memory begins of which some may be unset, and its flags (``Unset``).
            kind: As for ``allocate``.
            place: Where the program asks for it, for reports.

        Raises:
            AddressesExhaustedError: No address is left for it.
        """
        self._adoptions += 1
        if self._adoptions % _SWEPT == 0 or self._next >= HEAP:
            for number in list(self.allocations):
                self.live(number)
        memory = np.asarray(BorrowedMemory(start, nbytes, exists))
        if unset_bytes:
            memory = Unset.over(memory, *unset_bytes)
        buffer = memory.view(np.ndarray)
        return self._enter(
            DeviceAllocation(self._number(), memory, buffer, kind, place, -1, False, exists)
        )

    def lent(self, begin: int, nbytes: int = 0) -> DeviceAllocation | None:
        """Return the allocation in whose bytes some of this process's memory lie."""
        while True:
            at = bisect.bisect_right(self._hosts, (begin, HEAP)) - 1
            if at < 0:
                return None
            start, number = self._hosts[at]
            made = self.live(number)
            if made is not None:
                return made if begin + nbytes <= start + made.nbytes else None

    def address_of(self, array: NDArray[np.generic]) -> int:
        """Return the address of an array's first element; see ``adopt``."""
        made = self.adopt(array)
        return made.address + first_byte(array) - first_byte(made.array)

    # -- module variables -----------------------------------------------------------------

    def module(self, ptx: str, number: int = 0) -> DeviceModule:
        """Return the variables of a PTX text as launches and the host left them.

        ``number``: tells apart modules that were loaded from one text (``Kernel.module``).

        Raises:
            PtxError: The text cannot be read.
        """
        key = ptx, number
        if key not in self._modules:
            parsed = parse(ptx)
            layout = lay_out(parsed, [], first_variable=self._next_variable)
            addresses = function_addresses(parsed.functions) | {
                name: placed.address for (scope, name), placed in layout.placed.items() if not scope
            }
            scopes = [parsed.variables, *(f.variables for f in parsed.functions.values())]
            count = sum(
                one.space in ("global", "const") for scope in scopes for one in scope.values()
            )
            made = DeviceModule(self._next_variable if count else MODULE_VARIABLES)
            for (scope, name), placed in layout.placed.items():
                variable = placed.variable
                if scope or variable.space not in ("global", "const") or not variable.nbytes:
                    continue
                array = np.zeros(variable.nbytes, np.uint8)
                initial = variable_bytes(layout, variable, addresses)
                array[: len(initial)] = np.frombuffer(initial, np.uint8)
                made.addresses[name] = placed.address
                self._set_variable(made, name, array)
            self._next_variable += count
            self._modules[key] = made
        return self._modules[key]

    def share_variable(self, ptx: str, name: str, allocation: DeviceAllocation) -> None:
        """Make an allocation's bytes a module variable's: a ``__managed__`` one, by PTX name."""
        module = self.module(ptx)
        allocation.array[:] = module.arrays[name]
        self._set_variable(module, name, allocation.array)

    def _set_variable(self, module: DeviceModule, name: str, array: Flat) -> None:
        module.arrays[name] = array
        self._variables[array_number(module.addresses[name])] = variable_name(name), array

    @property
    def variables_by_number(self) -> Collection[int]:
        """Array numbers of all module variables."""
        return self._variables.keys()

    def variable_at(self, number: int) -> tuple[str, Flat] | None:
        """Name and bytes of the module variable of an array number."""
        return self._variables.get(number)

    def variables(self, ptx: str) -> Mapping[str, Flat]:
        """Module variables by their names in C++, arrays of uint8."""
        return {variable_name(name): array for name, array in self.module(ptx).arrays.items()}


def _moved(of: Texture | Surface, memory: Flat, other: Flat) -> Texture | Surface:
    """Return an object of the same texels in a copy of the memory that they are in."""
    begin, start = map(first_byte, (of.array, memory))
    texels = np.ndarray(of.array.shape, of.array.dtype, other, begin - start, of.array.strides)
    return replace(of, array=texels)


def _padded(nbytes: int, unit: int) -> int:
    """Return the next multiple of a unit, one at least."""
    return -(-max(nbytes, 1) // unit) * unit


def _host_memory(nbytes: int) -> tuple[int, mmap.mmap]:
    """Return a new file in memory and a view of it."""
    file = os.memfd_create("tilescope")
    try:
        os.ftruncate(file, nbytes)
        return file, mmap.mmap(file, nbytes)
    except OSError as error:
        os.close(file)
        raise MemoryError(str(error)) from None


@functools.cache
def _host_allocations() -> int:
    """Return how many allocations the host can map: each takes two file descriptors here.

    A process may have 1,024 by default; the limit becomes what all addresses need, where the
    system allows it.
    """
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = _OTHER_FILES + 2 * len(_HOST_SLOTS)
    if soft != resource.RLIM_INFINITY and soft < need:
        soft = need if hard == resource.RLIM_INFINITY else min(need, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return min(len(_HOST_SLOTS), max(1, (soft - _OTHER_FILES) // 2))
    return len(_HOST_SLOTS)
