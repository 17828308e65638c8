"""CPU simulator of CUDA kernels: PTX runs on NumPy arrays, with counters and hazard checks."""

from kernels.errors import ArgumentWarning, LaunchError, PtxError, SimulatorError

from .hazards.hazard import Fix, Hazard, Participant, Source
from .hazards.kinds import CHECKS
from .launch import launch
from .memory.storage.device import Device
from .observe.counters.totals import Counters, Line
from .observe.counters.traffic import Traffic
from .prediction.predict import Prediction, predict
from .run import Run

__all__ = [
    "CHECKS",
    "ArgumentWarning",
    "Counters",
    "Device",
    "Fix",
    "Hazard",
    "LaunchError",
    "Line",
    "Participant",
    "Prediction",
    "PtxError",
    "Run",
    "SimulatorError",
    "Source",
    "Traffic",
    "launch",
    "predict",
]  # fmt: skip
