"""The GPU path: the identical PTX through NVIDIA's driver API."""

from .errors import DeviceError
from .launch import Output, available, device_name, driver_version, launch

__all__ = ["DeviceError", "Output", "available", "device_name", "driver_version", "launch"]
