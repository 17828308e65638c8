"""Launches of a target under given checks and schedules, always on its original inputs."""

import dataclasses
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kernels import Kernel
from kernels.arguments.argument_copies import copies
from simulator import CHECKS, Run
from simulator.gpus.table import Gpu

from ..cli.menu.choices import STEP_LIMIT
from ..cli.target import Target
from .outcome import copied, simulate
from .policy import Policy, judge


@dataclass
class Launcher:
    """Launches a target repeatedly on its original inputs.

    Attributes:
        schedule, checks: As for ``simulator.launch``.
        policy: Severities of disputed hazards.
        quiet: Whether to hide the progress bar.
        step_limit: Basic blocks after which a launch counts as endless.
        gpu: GPU whose resources a block must fit; default: an H200.
    """

    target: Target
    schedule: str | int = "lockstep"
    checks: str | Collection[str] = "all"
    policy: Policy = field(default_factory=Policy)
    quiet: bool = False
    step_limit: int = STEP_LIMIT
    began: float = field(default_factory=time.monotonic)
    gpu: Gpu | None = None

    def kernel(self, build: str) -> Kernel:
        """Return the target's kernel in a build; PTX has one only."""
        own = self.target.kernel
        return own if build == own.build or own.origin is None else own.rebuild(build)

    def symbols(self) -> dict[str, Any]:
        """Return copies of the target's symbols for one launch."""
        return copied(self.target)

    def launch(self, kernel: Kernel, checks: str | Collection[str]) -> Run:
        """Run the kernel once on copies of the arguments."""
        return self.observe(kernel, checks, self.schedule)[0]

    def observe(
        self,
        kernel: Kernel,
        checks: str | Collection[str],
        schedule: str | int,
        target: Target | None = None,
        counters: str = "none",
        symbols: dict[str, Any] | None = None,
    ) -> tuple[Run, list[Any]]:
        """Run the kernel once; return the run and the arguments afterwards.

        ``target``: another target. ``symbols``: contents of module variables, updated in place;
        default: copies of the target's.
        """
        target = target or self.target
        args = copies(target.args)
        run = simulate(
            target, kernel, args, self.quiet, self.began,
            schedule=schedule, checks=checks, step_limit=self.step_limit, counters=counters,
            limits=self.gpu if counters == "all" else "none",
            symbols=copied(target) if symbols is None else symbols,
        )  # fmt: skip
        return run, args

    def rerun(self, kernel: Kernel) -> Run:
        """Run an edited kernel with all checks, judged by the same policy."""
        run = self.launch(kernel, "all")
        return dataclasses.replace(run, hazards=judge(self.policy, run.hazards, run.kernel))

    def races(self, kernel: Kernel) -> Run:
        """Run an edited kernel with the race check only."""
        return self.launch(kernel, {*CHECKS} - {"uninitialised"})
