"""A launch's shape and arguments, checked and converted as CUDA would."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import Kernel, Param
from kernels.element_types import element_types, is_structure, misfit

from .errors import ArgumentWarning, LaunchError
from .ptx.types import DTYPES
from .tensor_map import NBYTES, TensorMap

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


def dim3(value: Any, name: str) -> Dim3:
    """One to three positive numbers, x first, filled up with ones.

    Raises:
        LaunchError: Anything else.
    """
    items = (value,) if isinstance(value, (int, np.integer)) else value
    try:
        numbers = tuple(int(n) for n in items)
        exact = all(int(n) == n for n in items)
    except (TypeError, ValueError):
        raise LaunchError(f"{name} must be one to three whole numbers, not {value!r}") from None
    if not exact or not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LaunchError(f"{name} must be one to three positive whole numbers, not {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def check_shape(grid: Dim3, block: Dim3) -> None:
    """Hold a launch to what a GPU accepts.

    Raises:
        LaunchError: It would not.
    """
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchError(
            f"{threads} threads in a block of {_times(block)}; a GPU allows {MAX_THREADS}"
        )
    for limits, shape, name in ((MAX_BLOCK, block, "block"), (MAX_GRID, grid, "grid")):
        for axis, most, n in zip("xyz", limits, shape, strict=True):
            if n > most:
                raise LaunchError(f"{name} of {_times(shape)}: {axis} may be {most} at most")


def check_resident(grid: Dim3, block: Dim3) -> None:
    """Hold a cooperative launch, whose blocks run together, to what any GPU holds at a time.

    Raises:
        LaunchError: It is larger.
    """
    blocks = math.prod(grid)
    if blocks > MAX_RESIDENT_BLOCKS or blocks * math.prod(block) > MAX_RESIDENT:
        raise LaunchError(
            f"a cooperative launch of {blocks:,} blocks of {math.prod(block)} threads, which run "
            "together: no GPU holds so many"
        )


def check_threads(block: Dim3, most: Sequence[int], required: Sequence[int]) -> None:
    """Hold a block to what the kernel is compiled for: ``.maxntid``, ``.reqntid``.

    Raises:
        LaunchError: It has other threads.
    """
    threads = math.prod(block)
    if most and threads > math.prod(most):
        raise LaunchError(
            f"{threads} threads in a block, but the kernel is compiled for {math.prod(most)} "
            "at most (.maxntid, __launch_bounds__)"
        )
    if required and (*required, 1, 1)[:3] != block:
        raise LaunchError(f"the kernel requires a block of {required} (.reqntid), not {block}")


def check_memory(static: int, dynamic: int, total: int, local: int) -> None:
    """Hold a block's shared memory, and a thread's local memory, to what a GPU has.

    All are bytes: what the kernel declares (``static``), what the launch adds (``dynamic``), both
    and what lies between them (``total``), and a thread's ``local`` memory.

    Raises:
        LaunchError: It is more, or less than none.
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


def _times(shape: Dim3) -> str:
    return "x".join(str(n) for n in shape)


@dataclass
class Arguments:
    """Checked arguments, for either machine.

    Attributes:
        arrays: The user's arrays, each once; a pointer is an index into them.
        labels: What to call each array in reports.
        values: For each parameter the index of its array, or its bytes, or both for a tensor map.
        warnings: What is likely a mistake, and can be run all the same.
        symbols: The arrays that fill module variables, by these' names in the PTX.
        structures: Arrays that hold structures, by the kernel, and whose dtypes do not say which.
    """

    params: tuple[Param, ...]
    arrays: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    values: list[int | bytes | tuple[int, TensorMap]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    structures: set[int] = field(default_factory=set)
    symbols: dict[str, Any] = field(default_factory=dict)

    def warn(self) -> None:
        """Tell the caller of ``launch`` what is likely a mistake."""
        for text in self.warnings:
            warnings.warn(text, ArgumentWarning, stacklevel=3)

    def parameter_buffer(
        self, address: Callable[[int], int], encode: Callable[[TensorMap, int], bytes]
    ) -> bytes:
        """The parameter buffer's bytes, given where each array stands, and what maps become."""
        buffer = bytearray()
        for param, value in zip(self.params, self.values, strict=True):
            buffer = buffer.ljust(param.offset, b"\0")
            if isinstance(value, int):
                buffer += address(value).to_bytes(8, "little")
            else:
                buffer += value if isinstance(value, bytes) else encode(value[1], address(value[0]))
        return bytes(buffer)


def content(array: Any) -> Any:
    """An array's bytes in C order, flat uint8."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def write_back(array: Any, raw: Any) -> None:
    """Replace an array's content by the bytes that a launch left; read-only ones stay."""
    if array.flags.writeable:
        array[...] = raw.view(array.dtype).reshape(array.shape)


def convert(kernel: Kernel, args: Sequence[Any], names: Sequence[str] = ()) -> Arguments:
    """Check arguments against the kernel's parameters and lay them out.

    ``args`` are as ``simulator.launch`` takes them; ``names``: the parameters' in the source, where
    known.

    Raises:
        TypeError: A wrong count or kind; names the parameter.
        ValueError: A value that does not fit; names the parameter.
    """
    params = kernel.params
    if len(args) != len(params):
        listed = ", ".join(str(p) for p in params) or "none"
        raise TypeError(f"{kernel.name} takes {len(params)} arguments, not {len(args)}: {listed}")
    made = Arguments(params)
    elements = element_types(kernel.entry, kernel.sources, kernel.name, len(params))
    for i, (param, arg) in enumerate(zip(params, args, strict=True)):
        label = names[i] if i < len(names) else f"argument {i}"
        pointer = isinstance(arg, np.ndarray)
        if pointer and (wrong := misfit(elements[i], arg.dtype)):
            made.warnings.append(f"{label}: {wrong}; its bytes are taken as they are")
        if isinstance(arg, TensorMap):
            if param.nbytes != NBYTES:
                raise TypeError(f"{label} has {param.nbytes} bytes, a tensor map {NBYTES}")
            made.values.append((_array(made, arg.array, label), arg))
            continue
        if not pointer:
            made.values.append(scalar_bytes(param, arg, label))
            continue
        made.values.append(number := _pointer(made, param, arg, label))
        if is_structure(elements[i]) and arg.dtype.names is None:
            made.structures.add(number)
    return made


def _pointer(made: Arguments, param: Param, array: Any, label: str) -> int:
    if param.is_struct or param.type not in ("u64", "s64", "b64"):
        raise TypeError(f"{label} is {param.type} by value ({param.name}); it cannot be an array")
    return _array(made, array, label)


def _array(made: Arguments, array: Any, label: str) -> int:
    if array.dtype.hasobject:
        raise TypeError(f"{label}: an array of Python objects cannot be given to a kernel")
    for number, other in enumerate(made.arrays):
        if other is array or _same(other, array):
            return number
        if np.may_share_memory(other, array) and np.shares_memory(other, array):
            raise ValueError(
                f"{label} overlaps another array; give the kernel one array and an offset"
            )
    made.arrays.append(array)
    made.labels.append(label)
    return len(made.arrays) - 1


def _same(a: Any, b: Any) -> bool:
    return bool(
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
        and a.size > 0
    )


def scalar_bytes(param: Param, arg: Any, label: str) -> bytes:
    """A by-value argument as the parameter's bytes, little-endian.

    Raises:
        TypeError: It is of another kind; ``ValueError``: it does not fit.
    """
    if param.is_struct:
        if not isinstance(arg, (np.generic, bytes)):  # cuda_fp16.h's __half is a struct, too
            raise TypeError(
                f"{label} is a struct of {param.nbytes} bytes ({param.name}); "
                f"give a NumPy structured scalar, not {type(arg).__name__}"
            )
        raw = bytes(arg) if isinstance(arg, bytes) else arg.tobytes()
        if len(raw) != param.nbytes:
            raise ValueError(f"{label} is a struct of {param.nbytes} bytes, not {len(raw)}")
        return bytes(raw)
    dtype = DTYPES[param.type]
    if isinstance(arg, np.void):
        raw = arg.tobytes()
        if len(raw) != param.nbytes:
            raise ValueError(f"{label} ({param.type}) takes {param.nbytes} bytes, not {len(raw)}")
        return bytes(raw)
    if isinstance(arg, (bool, np.bool_)):
        arg = int(arg)
    if arg is None and dtype.itemsize == 8:
        arg = 0
    if dtype.kind == "f":
        return _float_bytes(dtype, arg, label, param)
    if (
        isinstance(arg, np.floating)
        and arg.dtype.itemsize == dtype.itemsize
        and param.type[0] == "b"
    ):
        return bytes(arg.tobytes())
    if not isinstance(arg, (int, np.integer)):
        raise TypeError(f"{label} is {param.type}; cannot convert {type(arg).__name__} {arg!r}")
    bits = param.nbytes * 8
    value = int(arg)
    # NVRTC writes .u32 for int and unsigned alike: both ranges are taken.
    if not -(1 << (bits - 1)) <= value < (1 << bits):
        raise ValueError(f"{label} is {param.type}; {value} does not fit in {bits} bits")
    return (value & ((1 << bits) - 1)).to_bytes(param.nbytes, "little")


def _float_bytes(dtype: Any, arg: Any, label: str, param: Param) -> bytes:
    if isinstance(arg, np.complexfloating) or not isinstance(arg, (int, float, np.number)):
        raise TypeError(f"{label} is {param.type}; cannot convert {type(arg).__name__} {arg!r}")
    with np.errstate(over="ignore"):
        value = dtype.type(arg)
    if np.isinf(value) and not np.isinf(float(arg)):
        raise ValueError(f"{label} is {param.type}; {arg!r} is out of its range")
    return bytes(value.tobytes())
