"""Predictions shown next to a run or timing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import simulator
from kernels import Kernel, KernelError
from simulator import Prediction, Run, SimulatorError
from simulator.gpus.table import Gpu

from ..cli.progress import ProgressBar
from ..cli.target import Target

GPU = "h200"
"""For which advice is given where no GPU is named."""


@dataclass(frozen=True)
class Forecast:
    """A prediction, or the reason why there is none."""

    prediction: Prediction | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-ready; nothing without a prediction."""
        return self.prediction.to_dict() if self.prediction else None

    def after(self, run: Run) -> "Forecast":
        """Return the forecast of a launch that has run: none if it has hazards."""
        return Forecast(None, "it has hazards") if _is_faulty(run) else self


def forecast(
    target: Target, args: Sequence[Any], symbols: Mapping[str, Any], gpu: str | Gpu,
    registers: int | None = None, quiet: bool = False,
) -> Forecast:  # fmt: skip
    """Predict a target's launch on its original arguments, which are not modified.

    As it accompanies another result, a failure is a reason and not an error.
    """
    with ProgressBar(f"{target.name}, predicted", quiet, hint=""):
        return predicted(
            target.kernel, target.grid, target.block, args=args, gpu=gpu, symbols=symbols,
            shared_bytes=target.shared_bytes, registers=registers, **target.how,
        )  # fmt: skip


def _is_faulty(run: Run) -> bool:
    """Whether a launch has hazards: it may behave differently on a GPU, and is not predicted."""
    return any(hazard.severity != "note" for hazard in run.hazards)


def forecast_of(run: Run, gpu: str | Gpu = GPU) -> Forecast:
    """Predict a recorded launch without hazards on its original arguments."""
    if run.trace is None or not run.checked or _is_faulty(run):
        return Forecast(None, "not a recorded run that was checked and has no hazards")
    return predicted(run.trace.kernel, run.grid, run.block, gpu=gpu, **run.trace.given)


def predicted(kernel: Kernel, grid: Sequence[int], block: Sequence[int], **given: Any) -> Forecast:
    """Return ``simulator.predict`` of a launch, or the reason why there is no prediction."""
    if kernel.build == "source":
        return Forecast(None, "the source build is not what a GPU usually runs")
    try:
        found = simulator.predict(kernel, grid, block, **given)
    except (KernelError, SimulatorError, ValueError, MemoryError) as error:
        return Forecast(None, (str(error).splitlines() or ["not enough memory"])[0])
    return Forecast(found)
