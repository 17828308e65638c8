"""How the arguments that a front end's user passes become the parameters of its kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .pointers import Pointer, first_byte, owner
from .uninitialised import Unset


@dataclass(frozen=True)
class Adapter:
    """Between a front end's arguments and PTX' parameters.

    Attributes:
        given: Names of the arguments that the user passes.
        names: What to call each parameter of the PTX in reports.
        flatten: The parameters' values for the user's arguments; raises ``TypeError`` or
            ``ValueError`` for what the kernel was not compiled for.
        repeats: Whether its compiler lets several threads load the same, for one of them to use.
        notes: What a report has to say of the kernel, a sentence each.
    """

    given: tuple[str, ...]
    names: tuple[str, ...]
    flatten: Callable[[Sequence[Any]], list[Any]]
    repeats: bool = False
    notes: tuple[str, ...] = ()

    def __call__(self, kernel: str, args: Sequence[Any]) -> list[Any]:
        """Return the parameters' values.

        Raises:
            TypeError: A wrong count or kind; ``ValueError``: a value that does not fit.
        """
        if len(args) != len(self.given):
            listed = ", ".join(self.given) or "none"
            raise TypeError(
                f"{kernel} takes {len(self.given)} arguments, not {len(args)}: {listed}"
            )
        return self.flatten(args)


@dataclass(frozen=True)
class Made:
    """Kernel that a front end's compiler made of a function.

    Attributes:
        text: PTX with one entry.
        name: What the user calls the kernel.
        adapter: From the user's arguments to the parameters.
        path: The Python file it was written in, for reports; ``None`` if there is none.
        dynamic_bytes: Dynamic shared memory that it needs.
    """

    text: str
    name: str
    adapter: Adapter
    path: Path | None
    dynamic_bytes: int = 0


def python_file(function: Any) -> Path | None:
    """Return the file in which a function was written."""
    code = getattr(getattr(function, "fn", function), "__code__", None)
    path = Path(code.co_filename) if code else None
    return path.resolve() if path and path.is_file() else None


def as_array(value: Any) -> Any:
    """Return the NumPy array that shares memory with a tensor of PyTorch's; others as they are.

    8-bit floats and bfloat16, which NumPy lacks, come as whole numbers of their size.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "data_ptr"):
        return value
    import torch  # it made the value

    with torch._C.DisableTorchFunction():
        flat = value.detach()
        if not value.is_contiguous() or value.untyped_storage().nbytes() != value.nbytes:
            flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        try:
            whole = flat.numpy()
        except TypeError:
            plain = {1: torch.uint8, 2: torch.int16}[value.element_size()]
            whole = flat.view(plain).numpy()
    if flat.shape == value.shape:
        return whole
    axes = [n * value.element_size() for n in value.stride()]
    at = value.storage_offset() * value.element_size()
    return np.ndarray(tuple(value.shape), whole.dtype, whole, at, axes)


def in_memory(name: str, array: Any) -> Any:
    """Return a C-contiguous view of an array's memory, whatever the order of its axes.

    Raises:
        ValueError: The array is a view of one that is not contiguous; the message names it.
    """
    if array.flags.c_contiguous:
        return array
    if array.flags.f_contiguous:
        return array.T
    base = owner(array)
    flat = base if base.flags.c_contiguous else base.T if base.flags.f_contiguous else None
    if flat is None:
        raise ValueError(f"{name}: neither the array nor what it is a view of is contiguous")
    at = first_byte(array) - first_byte(base)
    whole = flat.reshape(-1)
    if isinstance(array, Unset):
        whole = array.of_its_memory(whole)
    if at % array.itemsize == 0 and whole.dtype == array.dtype:
        return Pointer(whole, at // array.itemsize)
    return Pointer(whole.view(np.uint8), at)
