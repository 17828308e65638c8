"""Addresses inside arrays: ``Pointer``, and how the arrays of a launch become allocations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Pointer:
    """The address of an element of an array, as an argument or in a structure's field.

    Attributes:
        array: A NumPy array of any shape.
        offset: Elements, in C order, from its first one; its size is one past the last.
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
        """Bytes from the array's first element."""
        return int(self.offset) * int(self.array.dtype.itemsize)


@dataclass(frozen=True)
class AddressSlot:
    """Where an address stands in an argument's bytes, and what it points to.

    Attributes:
        at: Byte of the argument (or of the table of addresses) that it begins at.
        array: Number of the array; ``offset``: bytes from its first element.
        of: A texture or a surface of that array, whose handle stands there instead, or a tensor map
            of it, which itself does.
    """

    at: int
    array: int
    offset: int = 0
    of: Any = None


@dataclass
class Gathered:
    """The arrays that a launch's arguments name, in the order in which they are met.

    Overlapping views become addresses in the array of which they are views: one allocation,
    as on a GPU.

    Attributes:
        tables: What stands in those arrays that are tables of addresses, by number.
    """

    arrays: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    tables: dict[int, Any] = field(default_factory=dict)

    def add(self, array: Any, label: str) -> int:
        """The number of an array; the same one for an array that is here."""
        if array.dtype.hasobject:
            raise TypeError(f"{label}: an array of Python objects cannot be given to a kernel")
        for number, other in enumerate(self.arrays):
            if other is array or _same(other, array):
                return number
        self.arrays.append(array)
        self.labels.append(label)
        return len(self.arrays) - 1

    def allocations(self) -> tuple[list[Any], list[str], list[tuple[int, int]]]:
        """Arrays that share no memory, their labels, and where each of these stands in them.

        Raises:
            ValueError: Arrays overlap that are no contiguous views of one array.
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
        places = {v: (i, _begin(self.arrays[v]) - _begin(made[i]) if len(vs) > 1 else 0)
                  for i, vs in enumerate(views) for v in vs}  # fmt: skip
        return made, labels, [places[number] for number in range(len(self.arrays))]

    def _base(self, numbers: Sequence[int], label: str) -> Any:
        """The array of which some arrays are views."""
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
    """The array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _begin(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _overlap(a: Any, b: Any) -> bool:
    return bool(np.may_share_memory(a, b) and np.shares_memory(a, b))


def _same(a: Any, b: Any) -> bool:
    return bool(
        _begin(a) == _begin(b)
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
        and a.size > 0
    )
