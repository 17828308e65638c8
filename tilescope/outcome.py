"""Run a target, and keep together what came of it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import simulator
from kernels.library import Agreement
from simulator import Run

from .progress import STEP_LIMIT, ProgressBar
from .target import Target


@dataclass
class Outcome:
    """A target, its run, and how its outputs compare with the reference.

    Attributes:
        agreements: One an output; empty where there is no reference.
    """

    target: Target
    run: Run
    agreements: list[Agreement] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether something is wrong: a hazard that is an error, or a wrong result."""
        hazard = any(hazard.severity == "error" for hazard in self.run.hazards)
        return hazard or not all(agreement.within for agreement in self.agreements)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the run's own layout, and what the target adds."""
        target = self.target
        return self.run.to_dict() | {
            "name": target.name,
            "size": list(target.size),
            "tile": target.tile or None,
            "result": {
                "checked": bool(self.agreements),
                "outputs": [agreement.to_dict() for agreement in self.agreements],
            },
        }


def execute(
    target: Target,
    schedule: str | int,
    checks: str | Collection[str],
    quiet: bool = False,
    step_limit: int = STEP_LIMIT,
) -> Outcome:
    """Launch a target on the simulator, with a progress bar if it takes long.

    Raises:
        SimulatorError: It cannot be launched.
    """
    with ProgressBar(target.name, quiet) as progress:
        run = simulator.launch(
            target.kernel,
            target.grid,
            target.block,
            target.args,
            shared_bytes=target.shared_bytes,
            schedule=schedule,
            checks=checks,
            progress=progress,
            step_limit=step_limit,
        )
    if target.launch is None or target.expected is None:
        return Outcome(target, run)
    return Outcome(target, run, target.launch.compare(target.expected))
