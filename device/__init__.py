"""The GPU path: the identical PTX through NVIDIA's driver API."""

from .errors import DeviceError
from .launch import Output, available, device_name, driver_version, launch
from .validate import Comparison, Validation, validate

__all__ = [
    "Comparison", "DeviceError", "Output", "Validation", "available", "device_name",
    "driver_version", "launch", "validate",
]  # fmt: skip
