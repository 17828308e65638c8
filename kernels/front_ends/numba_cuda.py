"""Numba's kernels: compiled without a GPU, called with arrays as Numba's user passes them.

Numba flattens its arguments (numba-cuda 0.30, ``dispatcher._Kernel._prepare_args``): an array is
two unused words, its elements, their size, its address, its shape and its strides in bytes.
"""

import contextlib
import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..arguments.adapter import Adapter, Made, as_array, in_memory, python_file
from ..errors import KernelError
from ..machine_code.architecture import architecture
from ..ptx.names import NUMBA_SHARED
from ..source.array_shapes import shared_in_python
from .numba_links import linked
from .versions import warn_of


def compiled(function: Any, signature: Any, arch: str | int, options: dict[str, Any]) -> Made:
    """Return a kernel of a Python function, for the types of a signature.

    Raises:
        KernelError: Numba is not installed, or refuses the function.
    """
    try:
        import numba_cuda
        from numba import cuda
        from numba.core import sigutils
        from numba.cuda import types
    except ImportError as error:
        raise KernelError(f"Kernel.from_numba needs the extra 'numba': {error}") from None
    warn_of("numba-cuda", numba_cuda.__version__)
    python = getattr(function, "py_func", function)
    if isinstance(signature, str):
        signature, result = sigutils.normalize_signature(signature)
    elif hasattr(signature, "args"):
        signature, result = signature.args, signature.return_type
    else:
        result = types.void
    if result not in (None, types.void):
        raise KernelError(f"{python.__name__} returns {result}; a kernel returns nothing")
    kinds = tuple(signature)
    given = tuple(inspect.signature(python).parameters)
    if len(given) != len(kinds):
        raise KernelError(
            f"{python.__name__} has {len(given)} parameters ({', '.join(given)}), "
            f"the signature {len(kinds)}"
        )
    number = architecture(arch)
    capability = divmod(number, 10)
    try:
        with warnings.catch_warnings(), _device(capability):
            warnings.simplefilter("ignore")
            text, _ = cuda.compile_ptx(
                python, types.void(*kinds), cc=capability, device=False, abi="numba",
                **({"lineinfo": True} | options),
            )  # fmt: skip
    except Exception as error:  # Numba's errors have many bases
        raise KernelError(f"Numba refuses {python.__name__}: {error}") from error
    return from_text(text, python, given, kinds)


@contextlib.contextmanager
def _device(capability: tuple[int, int]) -> Iterator[None]:
    """Numba asks for the device when it compiles what a kernel calls."""
    from numba.cuda import api

    old = api.current_context
    device = SimpleNamespace(compute_capability=capability)
    api.current_context = lambda *_: SimpleNamespace(device=device)
    try:
        yield
    finally:
        api.current_context = old


def from_text(text: str, python: Any, given: Sequence[str], kinds: Sequence[Any]) -> Made:
    """Return a kernel of PTX that Numba made of a Python function for some types."""
    names = tuple(
        name for one, kind in zip(given, kinds, strict=True) for name in _names(one, kind)
    )

    def flatten(args: Sequence[Any]) -> list[Any]:
        return [
            value
            for name, kind, arg in zip(given, kinds, args, strict=True)
            for value in _values(name, kind, arg)
        ]

    adapter = Adapter(tuple(given), names, flatten)
    text = _with_names(linked(text.rstrip("\0"), python.__name__), python)
    return Made(text, python.__name__, adapter, python_file(python))


def _number(symbol: str) -> int:
    return int(symbol.removeprefix(NUMBA_SHARED))


def _with_names(text: str, python: Any) -> str:
    """Return the PTX with shared arrays called as the Python function calls them.

    Numba numbers them in the order of the function; arrays of functions that it calls are more.
    """
    pattern = rf"\b{NUMBA_SHARED}\d+\b"
    symbols = sorted(set(re.findall(pattern, text)), key=_number)
    try:
        names = shared_in_python(inspect.getsource(python))
    except (OSError, TypeError):  # the source is not at hand
        return text
    if len(names) != len(symbols):
        return text
    given = dict(zip(symbols, names, strict=True))
    return re.sub(pattern, lambda m: f"{m[0]}${given[m[0]]}", text)


def _names(name: str, kind: Any) -> Iterator[str]:
    """Yield the names of the parameters that one argument becomes."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        axes = range(kind.ndim)
        yield from (f"{name}.{part}" for part in ("meminfo", "parent", "size", "itemsize"))
        yield name
        yield from (f"{name}.{part}[{i}]" for part in ("shape", "strides") for i in axes)
    elif isinstance(kind, types.Complex):
        yield from (f"{name}.real", f"{name}.imag")
    elif isinstance(kind, types.BaseTuple):
        for i, one in enumerate(kind):
            yield from _names(f"{name}[{i}]", one)
    else:
        yield name


def _values(name: str, kind: Any, arg: Any) -> Iterator[Any]:
    """Yield an argument's values as parameters."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        yield from _array(name, kind, as_array(arg))
    elif isinstance(kind, types.Complex):
        yield from (complex(arg).real, complex(arg).imag)
    elif isinstance(kind, types.BaseTuple):
        if len(arg) != len(kind):
            raise ValueError(f"{name} takes {len(kind)} values, not {len(arg)}")
        for i, (one, value) in enumerate(zip(kind, arg, strict=True)):
            yield from _values(f"{name}[{i}]", one, value)
    elif isinstance(kind, types.Record):
        if not isinstance(arg, (np.ndarray, np.void)):
            raise TypeError(f"{name} is a record; it takes a NumPy structured array or scalar")
        yield np.asarray(arg)
    elif isinstance(kind, (types.NPDatetime, types.NPTimedelta)):
        yield np.asarray(arg).view(np.int64)[()]
    elif kind == types.float16:
        yield int(np.float16(arg).view(np.uint16))
    elif isinstance(kind, types.EnumMember):
        yield arg.value
    elif isinstance(kind, (types.Number, types.Boolean, types.RawPointer, types.CPointer)):
        yield arg
    else:
        raise TypeError(f"{name} is {kind}: of this type nothing is known of its parameters")


def _array(name: str, kind: Any, arg: Any) -> Iterator[Any]:
    if not isinstance(arg, np.ndarray):
        raise TypeError(f"{name} is {kind}; cannot convert {type(arg).__name__}")
    if arg.ndim != kind.ndim:
        raise ValueError(f"{name} has {kind.ndim} axes, the array {arg.ndim}")
    ordered = {"C": arg.flags.c_contiguous, "F": arg.flags.f_contiguous}
    if not ordered.get(kind.layout, True):
        raise ValueError(f"{name} is compiled for arrays in {kind.layout} order; this one is not")
    yield from (0, 0, arg.size, arg.itemsize)
    yield in_memory(name, arg)
    yield from (*arg.shape, *arg.strides)
