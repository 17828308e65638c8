"""One launch of a session, and the place in the user's code that made it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernels import Kernel
from simulator import Run

from ..gpu.prediction_inputs import Forecast

Place = tuple[str, str, int]
"""A kernel's name, and the file and line that launch it."""


@dataclass(frozen=True)
class RecordedLaunch:
    """One launch of a session.

    Attributes:
        kernel: The kernel.
        file: File of the launch, in the user's own code.
        line: Line of the launch.
        run: The result.
        checked: Whether it was checked; ``sampled``: a launch that it is alike was.
        forecast: Its predicted time, or why there is none; ``None``: not requested.
        words: The launch as words of a command, behind the file's name; empty if unknown.
    """

    kernel: Kernel
    file: str
    line: int
    run: Run
    checked: bool | str = True
    forecast: Forecast | None = None
    words: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Name of the kernel, with file and line of the launch."""
        return self.kernel.name, self.file, self.line

    def to_dict(self, by_line: bool = True) -> dict[str, Any]:
        """Return ``Run.to_dict`` with the place, what was checked, and the predicted time."""
        own = {"file": self.file, "line": self.line, "checked": self.checked}
        return own | {"predicted_ms": self.predicted_ms} | self.run.to_dict(by_line)

    @property
    def predicted_ms(self) -> float | None:
        """Predicted time in milliseconds; ``None`` without a prediction."""
        made = self.forecast.prediction if self.forecast else None
        return made.time_ms if made else None


@dataclass(frozen=True)
class Predicted:
    """Predicted time of several launches together.

    Attributes:
        ms: Sum of the predicted times in milliseconds; ``None`` if no launch has one.
        launches: Number of launches with a prediction.
        missing: Number of launches without one, by the reason.
        gpu: Name of the GPU.
    """

    ms: float | None
    launches: int
    missing: Counter[str]
    gpu: str

    @classmethod
    def of(cls, launches: Iterable[RecordedLaunch]) -> "Predicted":
        """Return the sum over launches for which predictions were requested."""
        made = [launch.forecast for launch in launches if launch.forecast]
        found = [one.prediction for one in made if one.prediction]
        missing = Counter(one.reason for one in made if not one.prediction)
        gpu = found[0].gpu.name if found else ""
        ms = sum(one.time_ms for one in found) if found else None
        return cls(ms, len(found), missing, gpu)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"gpu": self.gpu or None, "ms": self.ms, "launches": self.launches,
                "not_predicted": dict(self.missing)}  # fmt: skip
