"""The CUDA driver API, each return code checked and put into words.

``cuda.bindings.driver`` is imported on first use only: everything else in the
project works on a machine without a driver.
"""

from __future__ import annotations

import functools
from typing import Any

from .errors import DeviceError

_HELP = {
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "this PTX is newer than the driver reads; install an NVRTC that is not newer than the "
        "driver, such as nvidia-cuda-nvrtc==13.0.*"
    ),
    "CUDA_ERROR_INVALID_PTX": "the driver's compiler refuses this PTX",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "this GPU is older than the architecture the PTX asks for",
    "CUDA_ERROR_OUT_OF_MEMORY": "the GPU has not that much free memory",
    "CUDA_ERROR_ILLEGAL_ADDRESS": (
        "the kernel went outside its arrays; run `tilescope check` to see where. This process "
        "cannot use the GPU any more, a fresh one can"
    ),
    "CUDA_ERROR_MISALIGNED_ADDRESS": (
        "a misaligned access; run `tilescope check` to see where. This process cannot use the "
        "GPU any more, a fresh one can"
    ),
    "CUDA_ERROR_LAUNCH_FAILED": (
        "the kernel failed while running; run `tilescope check`. This process cannot use the "
        "GPU any more, a fresh one can"
    ),
    "CUDA_ERROR_ASSERT": "an assertion in the kernel failed",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "too many registers or threads for this GPU",
    "CUDA_ERROR_INVALID_VALUE": "the driver refuses these values",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the kernel ran longer than this machine allows",
}


@functools.cache
def bindings() -> Any:
    """The driver bindings, initialised.

    Raises:
        DeviceError: They are not installed, or there is no driver.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(f"cuda-python is not installed ({error})") from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # libcuda is not there
        raise DeviceError(
            f"no NVIDIA driver on this machine ({str(error).splitlines()[0]})"
        ) from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise _error(driver, "cuInit", status)
    return driver


def call(name: str, *args: Any, doing: str = "") -> Any:
    """Call a driver function; its result, or a tuple of several.

    Args:
        name: Such as ``cuMemAlloc``.
        args: Its arguments.
        doing: What for, to be named in an error.

    Raises:
        DeviceError: It did not return ``CUDA_SUCCESS``.
    """
    driver = bindings()
    status, *values = getattr(driver, name)(*args)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise _error(driver, name, status, doing)
    return values[0] if len(values) == 1 else tuple(values)


def _error(driver: Any, name: str, status: Any, doing: str = "") -> DeviceError:
    code = status.name
    _, text = driver.cuGetErrorString(status)
    meaning = text.decode() if isinstance(text, bytes) else str(text)
    message = f"{name} failed: {code} ({meaning})"
    if doing:
        message += f" while {doing}"
    if code in _HELP:
        message += f"; {_HELP[code]}"
    return DeviceError(message, name, code)
