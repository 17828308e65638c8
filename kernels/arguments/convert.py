"""Validation and conversion of a launch's shape and arguments, as CUDA does it."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import Kernel, Param
from kernels.source.element_types import doubts, vector_of, wrapped

from ..errors import ArgumentWarning, LaunchError
from ..host.host_arguments import element_word
from ..source.signatures import parameter_label
from ..source.structures import layout_of
from .pointers import Gathered, Pointer
from .tensor_map import NBYTES, TensorMap
from .texture import NBYTES as HANDLE_BYTES
from .texture import Surface, Texture
from .values import Packer, Value

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_LOCAL = 524_288
MAX_STATIC_SHARED = 49_152
MAX_SHARED = 232_448
"""Limits of compute capability 9.0 (CUDA C++ Programming Guide, "Technical Specifications")."""
MAX_RESIDENT, MAX_RESIDENT_BLOCKS = 1 << 19, 1 << 13
"""Threads and blocks that no GPU holds at a time."""

Dim3 = tuple[int, int, int]
Object = TensorMap | Texture | Surface
OBJECTS = (TensorMap, Texture, Surface)
"""What is made of an array, and given to a kernel in its place."""


def dim3(value: Any, name: str) -> Dim3:
    """Return one to three positive numbers as a triple, x first, padded with ones.

    Raises:
        LaunchError: The value is anything else.
    """
    items = (value,) if isinstance(value, (int, np.integer)) else value
    try:
        numbers = tuple(int(n) for n in items)
        exact = all(int(n) == n for n in items)
    except (TypeError, ValueError, OverflowError):
        raise LaunchError(f"{name} must be one to three whole numbers, not {value!r}") from None
    if not exact or not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        said = times(numbers) if exact and numbers else repr(value)
        raise LaunchError(f"{name} must be one to three positive whole numbers, not {said}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def check_shape(grid: Dim3, block: Dim3) -> None:
    """Check that a GPU accepts a grid and block shape.

    Raises:
        LaunchError: It does not.
    """
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchError(
            f"{threads} threads in a block of {times(block)}; a GPU allows {MAX_THREADS}"
        )
    for limits, shape, name in ((MAX_BLOCK, block, "block"), (MAX_GRID, grid, "grid")):
        for axis, limit, n in zip("xyz", limits, shape, strict=True):
            if n > limit:
                raise LaunchError(f"{name} of {times(shape)}: {axis} may be {limit} at most")


def check_resident(grid: Dim3, block: Dim3) -> None:
    """Check that the blocks of a cooperative launch can be resident together on some GPU.

    Raises:
        LaunchError: There are too many.
    """
    blocks = math.prod(grid)
    if blocks > MAX_RESIDENT_BLOCKS or blocks * math.prod(block) > MAX_RESIDENT:
        raise LaunchError(
            f"a cooperative launch of {blocks:,} blocks of {math.prod(block)} threads, which run "
            "together: no GPU holds so many"
        )


def check_threads(block: Dim3, limits: Sequence[int], required: Sequence[int]) -> None:
    """Check a block against the kernel's ``.maxntid`` and ``.reqntid``.

    Raises:
        LaunchError: The block does not match.
    """
    threads = math.prod(block)
    if limits and threads > math.prod(limits):
        raise LaunchError(
            f"{threads} threads in a block, but the kernel is compiled for {math.prod(limits)} "
            "at most (.maxntid, __launch_bounds__)"
        )
    if required and (*required, 1, 1)[:3] != block:
        raise LaunchError(
            f"the kernel requires a block of {times(required)} (.reqntid), not {times(block)}"
        )


def check_memory(static: int, dynamic: int, total: int, local: int) -> None:
    """Check a block's shared memory and a thread's local memory against a GPU's limits.

    All arguments are in bytes. ``static``: declared by the kernel. ``dynamic``: added by the
    launch. ``total``: both, with padding. ``local``: of a thread.

    Raises:
        LaunchError: A limit is exceeded, or a size is negative.
    """
    if dynamic < 0:
        raise LaunchError(f"shared_bytes cannot be negative: {dynamic}")
    if local > MAX_LOCAL:
        raise LaunchError(
            f"{local:,} bytes of local memory in a thread; a GPU allows {MAX_LOCAL:,}"
        )
    if static > MAX_STATIC_SHARED:
        raise LaunchError(
            f"{static:,} bytes of static shared memory in a block; a GPU allows "
            f"{MAX_STATIC_SHARED:,}, and more only as dynamic shared memory"
        )
    if total > MAX_SHARED:
        raise LaunchError(
            f"{total:,} bytes of shared memory in a block; a GPU of compute capability 9.0 "
            f"allows {MAX_SHARED:,}"
        )


def times(shape: Sequence[int]) -> str:
    """Format a shape as ``16x16x1``."""
    return "x".join(str(n) for n in shape)


@dataclass
class Arguments:
    """Validated arguments, for simulator and device.

    Attributes:
        arrays: The user's arrays, each once; a pointer is an index into them. ``None``: an
            allocation of a ``Device`` that the launch cannot reach.
        labels: Name of each array for reports.
        values: For each parameter its bytes and the addresses in them, or its object: a tensor map,
            texture or surface.
        tables: For arrays that are tables of addresses, their entries, by number.
        warnings: Likely mistakes that do not prevent the launch.
        symbols: Arrays that fill module variables, by the variables' names in the PTX.
        filled: Contents of module variables that are not arrays of the user.
        buffers: Bytes of arrays by number, padded as allocations are, where that is no copy.
        pictures: Textures and surfaces that arrays have already, by the arrays' numbers.
        plain: Numbers of memory of a ``Device`` that has no dtype of its own.
        others: Further global memory by its array number, with names: variables of other modules.
        is_unreached: Whether a number is that of memory of a ``Device`` that was left out.
    """

    params: tuple[Param, ...]
    arrays: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    values: list[Value | tuple[int, Object]] = field(default_factory=list)
    tables: dict[int, Value] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    symbols: dict[str, Any] = field(default_factory=dict)
    filled: dict[str, Value] = field(default_factory=dict)
    buffers: dict[int, Any] = field(default_factory=dict)
    pictures: Mapping[int, list[Any]] = field(default_factory=dict)
    plain: set[int] = field(default_factory=set)
    others: dict[int, tuple[str, Any]] = field(default_factory=dict)
    is_unreached: Callable[[int], bool] | None = None

    def warn(self) -> None:
        """Issue the ``warnings`` at the caller of ``launch``."""
        for text in self.warnings:
            warnings.warn(text, ArgumentWarning, stacklevel=3)

    def parameter_buffer(
        self, address: Callable[[int], int], encode: Callable[[Object, int], bytes]
    ) -> bytes:
        """Return the parameter buffer; ``address`` and ``encode`` give addresses and objects."""
        buffer = bytearray()
        for param, value in zip(self.params, self.values, strict=True):
            buffer = buffer.ljust(param.offset, b"\0")
            if isinstance(value, Value):
                buffer += value.filled(address, encode)
            else:
                buffer += encode(value[1], address(value[0]))
        return bytes(buffer)

    def table(
        self, number: int, address: Callable[[int], int], encode: Callable[[Object, int], bytes]
    ) -> Any:
        """Return the initial content of a table of addresses and handles, flat uint8."""
        return np.frombuffer(self.tables[number].filled(address, encode), np.uint8)


def content(array: Any) -> Any:
    """Return an array's bytes in C order, flat uint8."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def write_back(array: Any, raw: Any) -> None:
    """Replace an array's content by the bytes after a launch, unless it is read-only."""
    if array.flags.writeable:
        array[...] = raw.view(array.dtype).reshape(array.shape)


def convert(
    kernel: Kernel, args: Sequence[Any], names: Sequence[str] = (),
    fills: Mapping[str, Callable[[Packer], Value]] | None = None, gathered: Gathered | None = None,
) -> Arguments:  # fmt: skip
    """Validate arguments against the kernel's parameters and lay them out.

    ``args``: as for ``simulator.launch``. ``names``: the parameters' names in the source, if known.
    ``fills``: functions that pack contents of module variables. ``gathered``: what numbers arrays.

    Raises:
        TypeError: The number or a kind of the arguments is wrong; the message names the parameter.
        ValueError: A value does not fit; the message names the parameter.
    """
    params = kernel.params
    if kernel.adapter:
        args = kernel.adapter(kernel.name, args)
    if len(args) != len(params):
        raise TypeError(
            f"{kernel.name} takes {len(params)} argument{'s' * (len(params) != 1)}, not "
            f"{len(args)}: {_listed(kernel, names)}"
        )
    has_addresses = gathered is not None  # on a Device, where arrays have addresses
    made, gathered = Arguments(params), gathered or Gathered()
    packer = Packer(gathered, made.warnings)
    kinds = kernel.parameter_types
    elements = kernel.element_types
    for i, (param, arg) in enumerate(zip(params, args, strict=True)):
        label = parameter_label(names, i)
        if isinstance(arg, OBJECTS):
            nbytes = NBYTES if isinstance(arg, TensorMap) else HANDLE_BYTES
            if param.nbytes != nbytes:
                what = "tensor map" if isinstance(arg, TensorMap) else type(arg).__name__.lower()
                raise TypeError(f"{label} has {param.nbytes} bytes, a {what} {nbytes}")
            made.values.append((gathered.add(arg.array, label), arg))
            continue
        array = arg.array if isinstance(arg, Pointer) else arg
        if isinstance(array, np.ndarray):
            doubt = doubts(elements[i], kinds[i], array.dtype)
            made.warnings += [f"{label}: {wrong}" for wrong in doubt]
        elif isinstance(arg, (int, np.integer)):
            if arg and kinds[i].endswith("*") and not has_addresses:
                raise TypeError(
                    f"{label} is a pointer ({kinds[i]}), {_array_wanted(kinds[i], int(arg))}"
                )
            if wrong := wrapped(kinds[i], int(arg)):
                made.warnings.append(f"{label}: {wrong}")
        layout = layout_of(kinds[i], kernel.declarations) if param.is_struct else None
        made.values.append(packer.value(param, arg, layout, label, kinds[i]))
    for name, fill in (fills or {}).items():
        made.filled[name] = value = fill(packer)
        made.symbols[name] = np.zeros(len(value.raw), np.uint8)
    _allocate(made, gathered)
    return made


def _array_wanted(kind: str, number: int) -> str:
    """Return what to give for a pointer instead of a number."""
    element = element_word(vector_of(kind.rstrip("*"))[0]) or "u8"
    if kind.endswith("**"):
        return f"not the number {number}: give a list of arrays; 0 is the null pointer"
    return (
        f"not the number {number}: give an array, as in {element}[1024] or "
        f"{element}[1024]=@file.npy; 0 is the null pointer"
    )


def _listed(kernel: Kernel, names: Sequence[str]) -> str:
    """Return a kernel's parameters as in C++, or else as in the PTX."""
    kinds = kernel.parameter_types
    known = len(names) == len(kinds)
    listed = [
        " ".join(word for word in (kind, name) if word) or str(param)
        for kind, name, param in zip(
            kinds, names if known else [""] * len(kinds), kernel.params, strict=True
        )
    ]
    return ", ".join(listed) or "none"


def _allocate(made: Arguments, gathered: Gathered) -> None:
    """Assign a number to every array and an allocation to every address."""
    made.arrays, made.labels, places = gathered.allocations()
    made.values = [
        value.moved(places) if isinstance(value, Value) else (_whole(places, *value), value[1])
        for value in made.values
    ]
    made.tables = {places[n][0]: value.moved(places) for n, value in gathered.tables.items()}
    made.filled = {name: value.moved(places) for name, value in made.filled.items()}
    values = [*made.values, *made.tables.values(), *made.filled.values()]
    addresses = [a for value in values if isinstance(value, Value) for a in value.addresses]
    pointed = {a.array for a in addresses if not a.of}
    objects = [value for value in made.values if not isinstance(value, Value)]
    objects += [(_whole([(a.array, a.offset)], 0, a.of), a.of) for a in addresses if a.of]
    for number, of in objects:
        linear = isinstance(of, TensorMap) or (isinstance(of, Texture) and of.linear)
        if number in pointed and not linear:
            raise ValueError(
                f"{made.labels[number]} is a {type(of).__name__.lower()}'s array, which no pointer "
                "reaches (cudaArray): give the kernel a copy, or a texture of linear memory"
            )


def _whole(places: list[tuple[int, int]], number: int, of: Object) -> int:
    found, offset = places[number]
    if offset:
        raise ValueError(
            f"a {type(of).__name__}'s array overlaps another one that begins before it"
        )
    return found
