"""Errors of the GPU path."""

from __future__ import annotations


class DeviceError(Exception):
    """A driver call failed, or there is no GPU to call.

    Attributes:
        call: The driver function, such as ``cuLaunchKernel``.
        code: The driver's name for what happened, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``.
    """

    def __init__(self, message: str, call: str = "", code: str = "") -> None:
        super().__init__(message)
        self.call, self.code = call, code
