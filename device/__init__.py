"""GPU execution of the identical PTX through NVIDIA's driver API, and limits of named GPUs.

``launch``, ``time_launches`` and ``validate`` need a GPU. ``find_gpu``, ``occupancy``, ``roofline``
and ``roofline_svg`` are computed without one.
"""

from simulator.gpus.occupancy import Occupancy, occupancy
from simulator.gpus.table import GPUS, Gpu, UnknownGpu
from simulator.gpus.table import find as find_gpu
from simulator.prediction.plot import roofline_svg
from simulator.prediction.roofline import Roofline, roofline

from .driver import DeviceError
from .driver import release as driver_release
from .launch import Output, available, capability, device_name, driver_version, launch, registers
from .session import context
from .timing import Timing, time_launches
from .validate import Comparison, Validation, validate

__all__ = [
    "GPUS", "Comparison", "DeviceError", "Gpu", "Occupancy", "Output", "Roofline", "Timing",
    "UnknownGpu", "Validation", "available", "capability", "context", "device_name",
    "driver_release", "driver_version", "find_gpu", "launch", "occupancy", "registers", "roofline",
    "roofline_svg", "time_launches", "validate",
]  # fmt: skip
