"""The GPU path: the identical PTX through NVIDIA's driver API, and what a named GPU could do.

``launch`` and ``validate`` need a GPU; ``find_gpu``, ``occupancy``, ``roofline`` and
``roofline_svg`` are arithmetic and need none.
"""

from .errors import DeviceError
from .gpus import GPUS, Gpu, UnknownGpu
from .gpus import find as find_gpu
from .launch import Output, available, device_name, driver_version, launch
from .occupancy import Occupancy, occupancy
from .plot import roofline_svg
from .roofline import Roofline, roofline
from .validate import Comparison, Validation, validate

__all__ = [
    "GPUS", "Comparison", "DeviceError", "Gpu", "Occupancy", "Output", "Roofline", "UnknownGpu",
    "Validation", "available", "device_name", "driver_version", "find_gpu", "launch", "occupancy",
    "roofline", "roofline_svg", "validate",
]  # fmt: skip
