"""Global arrays of a trace, with the access count and last writer of each element."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import Arguments
from kernels.arguments.symbols import declared_element
from kernels.arguments.values import Value
from kernels.source.element_types import dtype_of

from ...compile.program import Program
from ...core.geometry import Flat
from ...isa import DTYPES
from ...memory.addressing.provenance import named, origins
from ...memory.storage.layout import array_address, array_number
from ...memory.storage.word_ops import unique

SHARED, LOCAL, NOWHERE = -1, -2, -3
"""Places that are no global array."""


@dataclass
class ArrayMap:
    """A global array and the accesses of all threads to each of its elements.

    Attributes:
        size: Bytes of an element.
        dtype, shape: Those of the argument; module variables are flat.
        is_typed: Whether the element type is known; else the elements are bytes.
        before, after: Content before and after the launch, flat bytes.
        reads, writes: Accesses of each element; atomics count in both.
        owner: Last writer of each element: block number times threads of a block, plus the thread's
            number; -1 if unwritten.
    """

    number: int
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    before: Flat
    reads: Flat
    writes: Flat
    owner: Flat
    argument: bool = True
    is_typed: bool = True
    after: Flat = field(init=False)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    def count(self, elements: Flat, weight: int, access: str) -> None:
        """Add accesses to elements, so often each; what lies outside is none of them."""
        inside = (elements >= 0) & (elements < len(self.reads))
        some = elements if inside.all() else elements[inside]
        if access != "store":
            np.add.at(self.reads, some, weight)
        if access != "load":
            np.add.at(self.writes, some, weight)

    def own(self, elements: Flat, threads: Flat) -> None:
        """Threads write elements."""
        inside = (elements >= 0) & (elements < len(self.owner))
        self.owner[elements[inside]] = threads[inside]

    def copied(self, places: Flat, size: int, thread: int, access: str) -> None:
        """Count pieces that a thread's bulk copy reads or writes, by their generic addresses."""
        starts = (places - array_address(self.number))[:, None]
        elements = unique((starts + np.arange(0, size, min(size, self.size))) // self.size)
        self.count(elements, 1, access)
        if access != "load":
            self.own(elements, np.full(len(elements), thread))


def element_type(kernel: Kernel, program: Program, number: int) -> np.dtype[Any] | None:
    """Return the element type of a module variable, ``None`` if it is unknown.

    It is the type in the source, or in the PTX, which often has plain bytes, or that of all
    accesses whose address derives from the variable.
    """
    for placed in program.layout.placed.values():
        variable = placed.variable
        if array_number(placed.address) != number or variable.space not in ("global", "const"):
            continue
        found = dtype_of(declared_element(kernel, variable))
        if found is None and variable.type not in ("b8", "u8"):
            found = np.dtype(DTYPES[variable.type])
        if found is None:
            found = _accessed(program, variable.name)
        if found is not None and variable.nbytes % found.itemsize == 0:
            return found
    return None


def pointed_types(kernel: Kernel, arguments: Arguments) -> dict[int, np.dtype[Any] | None]:
    """Return what the parameters that point to plain memory point to, ``None`` if they differ."""
    types: dict[int, set[np.dtype[Any] | None]] = {number: set() for number in arguments.plain}
    for kind, param, value in zip(
        kernel.element_types, arguments.params, arguments.values, strict=True
    ):
        slots = value.addresses if isinstance(value, Value) and not param.is_struct else ()
        for slot in slots:
            if slot.array in types:
                types[slot.array].add(dtype_of(kind))
    return {n: some.pop() if len(some) == 1 else None for n, some in types.items()}


def _accessed(program: Program, name: str) -> np.dtype[Any] | None:
    """Return the type of the accesses of a module variable, ``None`` if they differ."""
    known = {function.name: origins(function) for function in program.module.functions.values()}
    sites = (site for site in program.sites if site.function in known)
    kinds = {site.type for site in sites if name in named(known[site.function], site)}
    if len(kinds) != 1:
        return None
    return cast("np.dtype[Any]", np.dtype(DTYPES[kinds.pop()]))
