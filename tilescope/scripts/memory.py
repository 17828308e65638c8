"""Addresses of a GPU that is not there: what ``cuMemAlloc`` gives, and what stands at it."""

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels import Kernel, Pointer
from kernels.arguments.uninitialised import unset
from kernels.ptx.header import Param
from kernels.ptx.types import DTYPES
from kernels.source.structures import SCALARS

_FIRST = 0x3_0000_0000_0000
_ALIGNED = 256


class Memory:
    """Allocations by address; far from any address of the host's.

    ``elsewhere``: the bytes at an address of another front end's, PyTorch's.
    """

    def __init__(self, elsewhere: Callable[[int], Pointer | None] = lambda address: None) -> None:
        self._elsewhere = elsewhere
        self._next = _FIRST
        self._starts: list[int] = []
        self._arrays: dict[int, Any] = {}

    def allocate(self, nbytes: int, array: Any = None) -> int:
        """The address of new memory, which nothing has written (or which an array holds)."""
        address = self._next
        self._next += -(-max(nbytes, 1) // _ALIGNED) * _ALIGNED + _ALIGNED
        self._starts.append(address)
        self._arrays[address] = unset((nbytes,), np.uint8) if array is None else array
        return address

    def free(self, address: int) -> bool:
        """Give memory back; whether there was any."""
        if self._arrays.pop(address, None) is None:
            return False
        self._starts.remove(address)
        return True

    def find(self, address: int) -> tuple[Any, int] | None:
        """The bytes in which an address lies (or at whose end), and its place in them."""
        number = bisect.bisect_right(self._starts, address) - 1
        if number < 0:
            return None
        array = self._arrays[self._starts[number]]
        offset = address - self._starts[number]
        return (array, offset) if offset <= array.nbytes else None

    def bytes_at(self, address: int, nbytes: int) -> Any:
        """``nbytes`` bytes from an address on, to read and to write; ``None`` if they are not."""
        found = self.find(address)
        if found is None or found[1] + nbytes > found[0].nbytes:
            return None
        return found[0][found[1] : found[1] + nbytes]

    def arguments_of(self, kernel: Kernel, number: int, value: int) -> Any:
        """A whole number as a launch's argument: an array where it is an address."""
        names = kernel.element_types
        return self._pointer(value, names[number]) or value

    def arguments(self, kernel: Kernel, raws: Sequence[bytes]) -> list[Any]:
        """A launch's arguments, given the bytes of each: addresses become arrays."""
        names = kernel.element_types
        return [self._argument(*of) for of in zip(kernel.params, raws, names, strict=True)]

    def _argument(self, param: Param, raw: bytes, element: str) -> Any:
        if param.is_struct:
            return self._structure(raw)
        if param.nbytes == 8 and (found := self._pointer(int.from_bytes(raw, "little"), element)):
            return found
        dtype = DTYPES[param.type]
        return np.frombuffer(raw, dtype)[0]

    def _pointer(self, address: int, element: str = "") -> Pointer | None:
        found = self.find(address)
        if found is None:
            other = self._elsewhere(address)
            if other is None:
                return None
            found = other.array, other.offset
        array, offset = found
        dtype = DTYPES[SCALARS[element]] if element in SCALARS else np.dtype("V1")
        if array.nbytes % dtype.itemsize or offset % dtype.itemsize:
            dtype = np.dtype("V1")
        return Pointer(array.view(dtype), offset // dtype.itemsize)

    def _structure(self, raw: bytes) -> Any:
        """A structure with addresses in its words, wherever one is an address that was given."""
        words = np.frombuffer(raw[: len(raw) // 8 * 8], "<u8")
        found = {8 * i: self._pointer(int(word)) for i, word in enumerate(words)}
        places = {at: pointer for at, pointer in found.items() if pointer is not None}
        if not places:
            return raw
        bounds = sorted({0, len(raw), *places, *(at + 8 for at in places)})
        names, formats, values = [], [], []
        for at, end in itertools.pairwise(bounds):
            names.append(str(at))
            formats.append(np.dtype(object) if at in places else np.dtype((np.uint8, end - at)))
            values.append(places.get(at, np.frombuffer(raw[at:end], np.uint8)))
        layout = {"names": names, "formats": formats, "offsets": bounds[:-1], "itemsize": len(raw)}
        made: Any = np.zeros((), np.dtype(layout))  # type: ignore[call-overload]
        for name, value in zip(names, values, strict=True):
            made[name] = value
        return made[()]
