"""Shapes of arrays, from the launch's arguments and the source's declarations."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from kernels.ptx.debug_sections import LocalVariable, local_variables
from kernels.source import signatures
from kernels.source.array_shapes import Shape as Shape
from kernels.source.array_shapes import declared, local_arrays, shared_element
from kernels.source.element_types import is_structure, pointed_to, spelled
from kernels.source.structures import TypeLayout, layout_of

from ...execute.prepare import PreparedLaunch


class LocalVariableExtent(NamedTuple):
    """A local variable: its place in the function's local memory, and its shape."""

    name: str
    start: int
    nbytes: int
    shape: Shape


class Shapes:
    """Known shapes of a launch's arrays; the kernel's sources have the declarations."""

    def __init__(self, launch: PreparedLaunch) -> None:
        self.launch = launch
        self.python = any(file.endswith(".py") for file in launch.kernel.sources)
        self._elements: dict[tuple[str, bool], str] = {}
        self._structures: dict[tuple[str, bool], TypeLayout | None] = {}
        self._variables: dict[tuple[str, bool, int, int], Shape] = {}

    def argument(self, number: int, size: int) -> Shape:
        """Return the shape of a global array for an element size; empty if sizes differ."""
        arrays = self.launch.arguments.arrays
        array = arrays[number] if 0 <= number < len(arrays) else None
        if array is None or array.dtype.itemsize != size or not array.flags.c_contiguous:
            return ()
        return tuple(array.shape)

    def element(self, name: str, shared: bool) -> str:
        """Return the declared element type of a shared array or a parameter; empty if unknown."""
        key = name, shared
        if key not in self._elements:
            self._elements[key] = self._declared_element(*key)
        return self._elements[key]

    def _declared_element(self, name: str, shared: bool) -> str:
        sources, entry = self.launch.kernel.declarations, self._entry
        if shared:
            return shared_element(sources, entry, name)
        found = signatures.find(sources, entry)
        kinds = [kind for kind, own in found.params if own == name] if found else []
        return pointed_to(spelled(kind, sources) for kind in kinds)[0] if kinds else ""

    def structure(self, name: str, shared: bool) -> TypeLayout | None:
        """Return the layout of an array's elements if the source declares them as structures."""
        key = name, shared
        if key not in self._structures:
            kind, found = self.element(name, shared), None
            if is_structure(kind):
                found = layout_of(kind, self.launch.kernel.declarations)
            self._structures[key] = found if found and found.nbytes and found.fields else None
        return self._structures[key]

    def member(self, name: str, shared: bool, nbytes: int, at: int, size: int) -> str:
        """Return ``[31].value`` for a byte of an array of structures; empty for other arrays.

        ``nbytes``: the array's size; ``size``: of the accessed element. A byte between two fields,
        or within an element of one, has no name.
        """
        if (layout := self.structure(name, shared)) is None:
            return ""
        number, within = divmod(at, layout.nbytes)
        for field, first, inner in layout.fields:
            inside = within - first
            if 0 <= inside < inner.nbytes and inside % min(size, inner.nbytes) == 0:
                index = self.index(self.variable(name, shared, nbytes, layout.nbytes), number)
                return f"{index}.{field}"
        return ""

    def place(self, name: str, number: int, at: int, size: int) -> str:
        """Return ``[3][0]`` or ``[31].value`` for a byte of a global array, by its number."""
        return self.member(name, False, 0, at, size) or self.index(
            self.argument(number, size), at // size
        )

    def variable(self, name: str, shared: bool, nbytes: int, size: int) -> Shape:
        """Return the declared shape of an array with a given size and element size."""
        key = name, shared, nbytes, size
        if key not in self._variables:
            self._variables[key] = self._declared_shape(*key)
        return self._variables[key]

    def _declared_shape(self, name: str, shared: bool, nbytes: int, size: int) -> Shape:
        shapes = declared(self.launch.kernel.declarations, self._entry, name, shared)
        fitting = [shape for shape in shapes if math.prod(shape) * size == nbytes]
        return fitting[0] if len(fitting) == 1 else ()

    @property
    def _entry(self) -> str:
        """Return the kernel's name as the source has it."""
        kernel = self.launch.kernel
        return kernel.origin.entry if kernel.origin else kernel.name

    @functools.cached_property
    def _locals(self) -> list[LocalVariable]:
        return local_variables(self.launch.kernel.ptx)

    def piece(
        self, memory: str, at: int, nbytes: int, size: int, code: str
    ) -> LocalVariableExtent | None:
        """Return the variable at, or next to, a byte of a function's local memory.

        Optimised code has no such information. There it is the array that the line's code names, if
        that fills the memory.
        """
        own = [one for one in self._locals if one.memory == memory]
        if own:
            one = min(own, key=lambda v: max(v.offset - at, at - v.end + 1, 0))
            fits = one.nbytes == size and one.sizes
            return (
                LocalVariableExtent(one.name, one.offset, one.end - one.offset, one.sizes)
                if fits
                else None
            )
        names = local_arrays(self.launch.kernel.declarations, code)
        found = [(name, self.variable(name, False, nbytes, size)) for name in names]
        fitting = [(name, shape) for name, shape in found if shape]
        return (
            LocalVariableExtent(fitting[0][0], 0, nbytes, fitting[0][1])
            if len(fitting) == 1
            else None
        )

    def index(self, shape: Shape, element: int) -> str:
        """Return ``[16][0]`` for an element number; beyond the array in its first dimension."""
        numbers = list[int]()
        for count in reversed(shape[1:]):
            element, rest = divmod(element, count)
            numbers.append(rest)
        numbers.append(element)
        texts = map(str, reversed(numbers))
        return f"[{', '.join(texts)}]" if self.python else "".join(f"[{text}]" for text in texts)
