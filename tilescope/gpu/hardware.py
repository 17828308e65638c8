"""GPU detection and errors, shared by the commands that need a GPU."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import device
from kernels.arguments.tensor_map import array_of
from kernels.library import Expected

from ..cli.errors import UserError
from ..cli.target import Target


def require_gpu(index: int, purpose: str) -> str:
    """Return the GPU's name.

    Raises:
        UserError: There is none; the message names the purpose.
    """
    there, what = device.available(index)
    if not there:
        raise UserError(f"{purpose} needs a GPU: {what}")
    return what


@contextmanager
def device_errors() -> Iterator[None]:
    """Convert driver errors to command errors."""
    try:
        yield
    except device.DeviceError as error:
        raise UserError(str(error)) from None


def reference(target: Target) -> Callable[..., Mapping[int, Expected] | None] | None:
    """Return a library kernel's reference for ``device.validate``."""
    if target.launch is None or target.expected is None:
        return None
    places, expected = target.launch.outputs, target.expected

    def expect(*args: Any) -> Mapping[int, Expected]:
        return {place: expected[name] for name, place in places.items()}

    return expect


def numpy_product(target: Target) -> Any | None:
    """Return NumPy's float32 matrix product, for matrix-product kernels."""
    if target.entry is None or target.entry.axes != ("M", "N", "K"):
        return None
    a, b = (array_of(matrix).astype(np.float32, copy=False) for matrix in target.args[:2])
    with np.errstate(all="ignore"):
        return a @ b
