"""``Pointer``: addresses inside arrays, and the allocations of a launch's arrays."""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Pointer:
    """Address of an array element, as an argument or in a structure's field.

    Attributes:
        array: A NumPy array of any shape.
        offset: Index of the element in C order; the array's size is one past the last element.
    """

    array: Any
    offset: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.array, np.ndarray):
            raise TypeError(f"Pointer takes a NumPy array, not {type(self.array).__name__}")
        if not isinstance(self.offset, (int, np.integer)):
            raise TypeError(f"Pointer: an offset is a whole number, not {self.offset!r}")
        if not 0 <= self.offset <= self.array.size:
            raise ValueError(
                f"Pointer: element {self.offset} of an array of {self.array.size} elements"
            )

    @property
    def nbytes(self) -> int:
        """Offset in bytes from the array's first element."""
        return int(self.offset) * int(self.array.dtype.itemsize)


@dataclass(frozen=True)
class AddressSlot:
    """Position of an address in an argument's bytes, and its target.

    Attributes:
        at: Byte offset in the argument (or in the table of addresses).
        array: Number of the target array.
        offset: Byte offset in the target array.
        of: Texture or surface of the array, whose handle is stored instead; or a tensor map, which
            is stored itself.
    """

    at: int
    array: int
    offset: int = 0
    of: Any = None


@dataclass
class Gathered:
    """Arrays named by a launch's arguments, in order of appearance.

    Overlapping views become addresses in their base array: one allocation, as on a GPU.

    Attributes:
        tables: Entries of arrays that are tables of addresses, by number.
    """

    arrays: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    tables: dict[int, Any] = field(default_factory=dict)

    def add(self, array: Any, label: str) -> int:
        """Return the number of an array, which is the same for repeated arrays."""
        if array.dtype.hasobject:
            raise TypeError(f"{label}: an array of Python objects cannot be given to a kernel")
        for number, other in enumerate(self.arrays):
            if other is array or _same(other, array):
                return number
        self.arrays.append(array)
        self.labels.append(label)
        return len(self.arrays) - 1

    def allocations(self) -> tuple[list[Any], list[str], list[tuple[int, int]]]:
        """Return arrays without overlap, their labels, and the place of each original array.

        Raises:
            ValueError: Arrays overlap and are no contiguous views of one array.
        """
        made: list[Any] = []
        labels: list[str] = []
        views: list[list[int]] = []
        for number, array in enumerate(self.arrays):
            touched = [i for i, other in enumerate(made) if _overlap(other, array)]
            mine = [number, *(v for i in touched for v in views[i])]
            if touched:
                array = self._base(mine, self.labels[number])
            for i in reversed(touched[1:]):
                del made[i], labels[i], views[i]
            if touched:
                made[touched[0]], views[touched[0]] = array, mine
            else:
                made.append(array)
                labels.append(self.labels[number])
                views.append(mine)
        places = {v: (i, first_byte(self.arrays[v]) - first_byte(made[i]) if len(vs) > 1 else 0)
                  for i, vs in enumerate(views) for v in vs}  # fmt: skip
        return made, labels, [places[number] for number in range(len(self.arrays))]

    def _base(self, numbers: Sequence[int], label: str) -> Any:
        """Return the common base of some arrays."""
        views = [self.arrays[n] for n in numbers]
        bases = {id(base): base for base in map(owner, views)}
        whole = all(v.flags.c_contiguous for v in (*views, *bases.values()))
        if len(bases) > 1 or not whole:
            raise ValueError(
                f"{label} overlaps another array, and they are no contiguous views of one: "
                "give the kernel one array, and kernels.Pointer(array, offset)"
            )
        base = next(iter(bases.values()))
        if any(v.flags.writeable for v in views):
            return base
        base = base.view()
        base.flags.writeable = False
        return base


def owner(array: Any) -> Any:
    """Return the array that owns a view's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class BorrowedMemory:
    """Memory of another owner, for ``np.asarray``; ``exists``: whether it is still there."""

    def __init__(self, start: int, nbytes: int, exists: Callable[[], bool]) -> None:
        self.exists = exists
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (start, False),
        }  # fmt: skip


def existence(array: Any) -> Callable[[], bool]:
    """Return a function that says whether an array's memory still belongs to what owns it."""
    own = owner(array)
    if isinstance(own.base, BorrowedMemory):
        return own.base.exists
    if type(own.base).__module__.partition(".")[0] == "torch":
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = StorageWeakRef(own.base.untyped_storage())
        return lambda: not storage.expired()
    reference = weakref.ref(own)
    return lambda: reference() is not None


def first_byte(array: Any) -> int:
    """Return the host's address of an array's first byte."""
    return int(array.__array_interface__["data"][0])


def _overlap(a: Any, b: Any) -> bool:
    return bool(np.may_share_memory(a, b) and np.shares_memory(a, b))


def _same(a: Any, b: Any) -> bool:
    return bool(
        first_byte(a) == first_byte(b)
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
        and a.size > 0
    )
