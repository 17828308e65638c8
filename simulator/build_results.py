"""Comparison of the results of a kernel's device build and source build."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import content
from kernels.debug.types import Bits
from kernels.ptx.module import Special

from .analysis.taint import decided_by_atomics
from .compile.compiler import compile_ptx
from .compile.program import Program
from .execute.prepare import prepare
from .hazards.hazard import Hazard
from .hazards.kinds import BUILDS_DIFFER
from .isa.memory.stack import STACK_BYTES
from .observe.checks.padding import Members, member_bits

Array: TypeAlias = Any
"""A NumPy array of any dtype, structures among them."""
_CLOCKS = ("%clock", "%globaltimer", "%pm")
"""How the names of registers begin whose values depend on how long instructions take."""
_SHOWN = 3


_MATH = re.compile(
    r"(__)?(a?(sin|cos|tan)h?|(sin|cos)pi|atan2|exp(2|10|m1)?|log(2|10|1p|b)?|pow[if]?|r?cbrt|rsqrt|"
    r"r?hypot|r?norm(3d|4d)?|erf(c|cx|inv|cinv)?|normcdf(inv)?|[tl]gamma|[jy][01n]|fdivide)f?"
)
"""CUDA's functions that a compiler evaluates for constants, by other means than a GPU does."""
_FUNCTION = re.compile(r"^\.func\b[^\n]*?\s(\w+)\(\n(.*?)^\}", re.S | re.M)
_RESULT = re.compile(r"st\.param\.f(32|64)\s+\[func_retval0(?:\+0)?\],\s*(%\w+);")
_FACTORS = {"32": "0f3F802000", "64": "0d3FF0040000000000"}
"""One and 2 to the power of -10."""


@dataclass(frozen=True)
class ResultArray:
    """Content of an array after a launch, under the name of its parameter or module variable."""

    name: str
    array: Array


@dataclass(frozen=True)
class DifferingElements:
    """Elements of an array that have different values after the two builds.

    Attributes:
        name: The array's parameter or module variable.
        values: The array after each build, by the build's name.
        where: Boolean mask in the array's shape: the differing elements.
    """

    name: str
    values: dict[str, Array]
    where: Array


class Padding:
    """Bits of a launch's arrays that belong to members of structures, by the compiler's layout."""

    def __init__(
        self, kernel: Kernel, grid: int | Sequence[int], block: int | Sequence[int],
        args: Sequence[object], shared_bytes: int, **how: Any,
    ) -> None:  # fmt: skip
        launch = prepare(kernel, grid, block, args, shared_bytes, "lockstep", 1, False, **how)
        self._members = Members(launch)

    def members(self, number: int, nbytes: int) -> Bits | None:
        """Return the member bits of an array as uint8; ``None`` if all bits are members.

        Elements of unknown type have no members.
        """
        known = self._members.of(number)
        found = np.zeros(nbytes, np.uint8) if known is None else member_bits(known, nbytes)
        return None if (found == 0xFF).all() else found


def unequal(one: ResultArray, other: ResultArray, members: Bits | None = None) -> Array | None:
    """Return the mask of differing elements in the array's shape; ``None`` if there are none.

    All NaNs are equal, and so are zeros of either sign, because no operation that C++ defines
    distinguishes them. Padding of structures is ignored.
    """
    a, b = one.array, other.array
    mine, theirs = content(a), content(b)
    if np.array_equal(mine, theirs):
        return None
    if members is not None and a.dtype.fields is None:
        differing = (mine ^ theirs) & members != 0
        found = differing.reshape(a.size, a.itemsize).any(axis=1).reshape(a.shape)
    else:
        found = _unequal(a, b)
    return found if found.any() else None


def _unequal(a: Array, b: Array) -> Array:
    if a.dtype.names:
        fields = [_unequal(a[name], b[name]) for name in a.dtype.names]
        return np.logical_or.reduce([_by_element(field, a.ndim) for field in fields])
    if a.dtype.kind in "fc":
        return ~((a == b) | ((a != a) & (b != b)))
    if a.dtype.kind == "V":
        raw = [content(one).reshape(one.size, one.itemsize) for one in (a, b)]
        return (raw[0] != raw[1]).any(axis=1).reshape(a.shape)
    return a != b


def _by_element(field: Array, axes: int) -> Array:
    """Reduce a mask over a field that is itself an array to one value for each element."""
    return field.any(axis=tuple(range(axes, field.ndim))) if field.ndim > axes else field


def reads_clocks(kernel: Kernel) -> bool:
    """Whether a kernel reads a clock, so that its builds may store different values."""
    return any(
        isinstance(operand, Special) and operand.name.startswith(_CLOCKS)
        for block in _program(kernel).blocks
        for ins in block.block.instructions
        for operand in ins.operands
    )


def has_atomics(kernel: Kernel) -> bool:
    """Whether a kernel has atomics, whose order is unspecified."""
    return any(site.access == "atomic" for site in _program(kernel).sites)


def perturbed(kernel: Kernel) -> Kernel | None:
    """Return the source build with perturbed mathematical functions; ``None`` without any.

    Results that change depend on these functions, and so on whether the compiler evaluated one at
    compile time.
    """

    def edited(found: re.Match[str]) -> str:
        if not _MATH.fullmatch(found[1]):
            return found[0]
        return _RESULT.sub(lambda m: f"mul.rn.f{m[1]} {m[2]}, {m[2]}, {_FACTORS[m[1]]};{m[0]}",
                           found[0])  # fmt: skip

    ptx = _FUNCTION.sub(edited, kernel.ptx)
    return None if ptx == kernel.ptx else dataclasses.replace(kernel, ptx=ptx)


def ordered_by_atomics(kernel: Kernel) -> bool:
    """Whether results may depend on the order of lanes in an atomic, which no schedule varies."""
    return decided_by_atomics(_program(kernel))


def _program(kernel: Kernel) -> Program:
    return compile_ptx(kernel.ptx, kernel.entry, 0, STACK_BYTES)


def builds_differ(found: Sequence[DifferingElements], notes: Sequence[str]) -> Hazard:
    """Return the ``builds-differ`` hazard for some differing arrays."""
    said, first = BUILDS_DIFFER.case(), found[0]
    examples = [example for array in found for example in _examples(array)]
    place, value = examples[0]
    details = [f"{int(a.where.sum()):,} of {a.where.size:,} elements of {a.name}" for a in found]
    details += [f"{place} is {value}" for place, value in examples[1:_SHOWN]]
    count = sum(int(array.where.sum()) for array in found)
    return Hazard(
        BUILDS_DIFFER.name, said.message.format(place=place, value=value), said.severity, "global",
        first.name, int(np.argmax(first.where)), (), count, count,
        notes=(*details, *notes), also=tuple(array.name for array in found[1:]),
        builds=tuple(first.values),
    )  # fmt: skip


def _examples(differing: DifferingElements) -> list[tuple[str, str]]:
    """Return some differing elements, each with its value after either build."""
    shape = differing.where.shape or (1,)
    found = []
    for index in np.argwhere(differing.where.reshape(shape))[:_SHOWN].tolist():
        values = (
            f"{array.reshape(shape)[tuple(index)]} in the {build} build"
            for build, array in differing.values.items()
        )
        found.append((f"{differing.name}[{', '.join(map(str, index))}]", " and ".join(values)))
    return found
