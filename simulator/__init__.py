"""The CPU simulator: PTX in, results, counters and hazards out."""

from .counters import Traffic
from .errors import ArgumentWarning, LaunchError, PtxError, SimulatorError
from .hazard import Cure, Hazard, Involved, Source
from .launch import CHECKS, launch
from .run import Counters, Line, Run

__all__ = [
    "CHECKS", "ArgumentWarning", "Counters", "Cure", "Hazard", "Involved", "LaunchError", "Line",
    "PtxError", "Run", "SimulatorError", "Source", "Traffic", "launch",
]  # fmt: skip
