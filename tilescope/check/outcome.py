"""Run of a target with its comparison against the reference."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import simulator
from kernels import Kernel
from kernels.arguments.argument_copies import copies
from kernels.library import Agreement
from simulator import Run

from ..cli.menu.choices import STEP_LIMIT
from ..cli.progress import ProgressBar
from ..cli.target import Target
from .policy import Policy, set_aside


@dataclass
class Outcome:
    """A target, its run, and the comparison of its outputs with the reference.

    Attributes:
        agreements: One for each output; empty without a reference.
        set_aside: Number of hazards that source comments exclude.
        symbols: The target's symbols; arrays hold their contents after the launch.
    """

    target: Target
    run: Run
    agreements: list[Agreement] = field(default_factory=list)
    set_aside: int = 0
    symbols: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether there is an error hazard or a wrong result."""
        hazard = any(hazard.severity == "error" for hazard in self.run.hazards)
        return hazard or not all(agreement.within for agreement in self.agreements)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values: the run's layout with the target's additions."""
        target = self.target
        return self.run.to_dict() | {
            "name": target.name,
            "size": list(target.size),
            "tile": target.tile or None,
            "set_aside": self.set_aside,
            "result": {
                "checked": bool(self.agreements),
                "outputs": [agreement.to_dict() for agreement in self.agreements],
            },
        }


def simulate(
    target: Target, kernel: Kernel, args: Sequence[Any], quiet: bool = False,
    began: float | None = None, **how: Any,
) -> Run:  # fmt: skip
    """Call ``simulator.launch`` in a target's shape, on all cores, with a progress bar.

    Raises:
        SimulatorError: The target cannot be launched.
    """
    with ProgressBar(target.name, quiet, began) as progress:
        return simulator.launch(
            kernel, target.grid, target.block, args, target.shared_bytes, progress=progress,
            **{"workers": "all", "symbols": copied(target)} | target.how | how,
        )  # fmt: skip


def execute(
    target: Target,
    schedule: str | int,
    checks: str | Collection[str],
    quiet: bool = False,
    step_limit: int = STEP_LIMIT,
    **how: Any,
) -> Outcome:
    """Launch a target on the simulator; raises what ``simulate`` raises.

    ``how``: further arguments of ``simulator.launch``.
    """
    symbols = copied(target)
    run = simulate(
        target, target.kernel, target.args, quiet,
        schedule=schedule, checks=checks, step_limit=step_limit, symbols=symbols, **how,
    )  # fmt: skip
    run.hazards, known = set_aside(Policy(), run.hazards, run.kernel)
    if target.launch is None or target.expected is None:
        return Outcome(target, run, [], known, symbols)
    return Outcome(target, run, target.compare(target.args, run), known, symbols)


def copied(target: Target) -> dict[str, Any]:
    """Copy a target's symbols for one of several launches."""
    return dict(zip(target.symbols, copies([*target.symbols.values()]), strict=True))
