"""CUDA driver API with checked return codes and readable errors.

``cuda.bindings.driver`` is imported on first use, so that all other modules work without a driver.
"""

import functools
import re
from pathlib import Path
from typing import Any


class DeviceError(Exception):
    """A driver call failed, or there is no GPU.

    Attributes:
        call: The driver function, such as ``cuLaunchKernel``.
        code: The driver's error name, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``.
    """

    def __init__(self, message: str, call: str = "", code: str = "") -> None:
        super().__init__(message)
        self.call, self.code = call, code


_FRESH = "This process cannot use the GPU any more; a fresh one can"
_WHERE = f"run `tilescope check` to see where. {_FRESH}"

_HELP = {
    "CUDA_ERROR_INVALID_PTX": "the driver's compiler refuses this PTX",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "this GPU is older than the architecture the PTX asks for",
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"the kernel went outside its arrays; {_WHERE}",
    "CUDA_ERROR_MISALIGNED_ADDRESS": f"a misaligned access; {_WHERE}",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": f"an address of the wrong space; {_WHERE}",
    "CUDA_ERROR_INVALID_PC": f"the kernel jumped outside its code; {_WHERE}",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": f"an illegal instruction or a trap; {_WHERE}",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": f"the kernel's call stack is full or spoilt; {_WHERE}",
    "CUDA_ERROR_LAUNCH_FAILED": f"the kernel failed while running; {_WHERE}",
    "CUDA_ERROR_ASSERT": f"an assertion in the kernel failed; {_WHERE}",
    "CUDA_ERROR_LAUNCH_TIMEOUT": (
        f"the kernel ran longer than this machine allows; {_WHERE}"
    ),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "too many registers or threads for this GPU",
    "CUDA_ERROR_INVALID_VALUE": "the driver refuses these values",
    "CUDA_ERROR_NO_DEVICE": "no NVIDIA GPU on this machine, or none that is visible",
    "CUDA_ERROR_INVALID_DEVICE": "there is no GPU of that number",
}  # fmt: skip
"""What helps, by the code's name; a code that is not here stands by the driver's own words."""

STICKY = tuple(code for code, text in _HELP.items() if _FRESH in text)
"""After one of these every call fails until the process ends."""


@functools.cache
def bindings() -> Any:
    """Return the initialised driver bindings.

    Raises:
        DeviceError: The bindings are not installed, or there is no driver.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(f"cuda-python is not installed ({error})") from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:  # the bindings' own, for want of libcuda
        raise DeviceError("no NVIDIA driver on this machine (libcuda cannot be loaded)") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise _error(driver, "cuInit", status)
    return driver


def call(name: str, *args: Any, doing: str = "") -> Any:
    """Call a driver function; return its result, or a tuple of several.

    ``doing``: purpose of the call, for the error message.

    Raises:
        DeviceError: The function did not return ``CUDA_SUCCESS``.
    """
    driver = bindings()
    status, *values = getattr(driver, name)(*args)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise _error(driver, name, status, doing)
    return values[0] if len(values) == 1 else tuple(values)


def cuda_version() -> str:
    """Return the newest CUDA release that the driver supports, such as ``13.0``."""
    number = call("cuDriverGetVersion")
    return f"{number // 1000}.{number % 1000 // 10}"


def release() -> str:
    """Return the driver's version, such as ``580.159``; without one, its CUDA release."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:  # not Linux, or hidden from this container
        text = ""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else f"of CUDA {cuda_version()}"


def _error(driver: Any, name: str, status: Any, doing: str = "") -> DeviceError:
    code = getattr(status, "name", str(status))
    _, text = driver.cuGetErrorString(status)
    meaning = text.decode() if isinstance(text, bytes) else str(text)
    message = f"{name} failed: {code} ({meaning})"
    if doing:
        message += f" while {doing}"
    if hint := _hint(driver, code):
        message += f"; {hint}"
    return DeviceError(message, name, code)


def _hint(driver: Any, code: str) -> str:
    """Return advice for an error; may query the driver, but never raises."""
    if code == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        status, number = driver.cuDriverGetVersion()
        if status != driver.CUresult.CUDA_SUCCESS:
            return "this PTX is newer than the driver reads"
        newest = f"{number // 1000}.{number % 1000 // 10}"
        return (
            f"this PTX is newer than the driver reads, which knows CUDA {newest}: install "
            f"nvidia-cuda-nvrtc=={newest}.* or a newer driver"
        )
    if code == "CUDA_ERROR_OUT_OF_MEMORY":
        status, *sizes = driver.cuMemGetInfo()
        if status != driver.CUresult.CUDA_SUCCESS:
            return "the GPU has not that much free memory"
        return f"of the GPU's {sizes[1]:,} bytes {sizes[0]:,} are free"
    return _HELP.get(code, "")
