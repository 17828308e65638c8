"""Check a target: run its builds, look for fixes, and put the findings together."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kernels import Kernel, KernelError
from kernels.library import Agreement
from simulator import CHECKS, Hazard, Run, SimulatorError
from simulator.fixes import INTERRUPTED, Watch, find_fixes, find_source_fixes, trial_steps

from ..cli.target import Target
from .build_comparison import NOT_COMPARED, Builds
from .builds import merge
from .launcher import Launcher
from .policy import apply, set_aside
from .verification_runs import trials

SCHEMA = 1
"""Version of ``Verdict.to_dict``'s layout; it changes when a key changes its meaning."""


@dataclass
class Verdict:
    """What checking found.

    Attributes:
        runs: One a build.
        hazards: Of all builds, each finding once, errors first.
        left_out: How many hazards the policy left out.
        refused: Why a build could not be checked, by its name; the others were.
        set_aside: How many hazards comments in the source, or the baseline, say are known.
        results: By build how each output compares with the reference that the user gave.
        not_compared: Why the results of the builds are not, where they could have been.
        kernels: By build the kernel that ran.
        interrupted: Whether Ctrl-C kept it from running all builds.
        search: How the search for fixes went; ``None``: there was none.
        notes_before: How many notes each hazard had before that search.
    """

    target: Target
    runs: list[Run]
    hazards: list[Hazard]
    left_out: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    results: list[tuple[str, Agreement]] = field(default_factory=list)
    set_aside: int = 0
    not_compared: str = ""
    kernels: dict[str, Kernel] = field(default_factory=dict)
    interrupted: bool = False
    search: Watch | None = None
    notes_before: list[int] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether the search for fixes was."""
        return self.search is not None and self.search.ended == INTERRUPTED

    @property
    def errors(self) -> int:
        """How many of the hazards are errors."""
        return sum(hazard.severity == "error" for hazard in self.hazards)

    @property
    def warnings(self) -> int:
        """How many of the hazards are warnings."""
        return sum(hazard.severity == "warning" for hazard in self.hazards)

    @property
    def checked(self) -> tuple[str, ...]:
        """Names of the checks that ran."""
        return self.runs[0].checked

    @property
    def builds(self) -> tuple[str, ...]:
        """Which builds ran."""
        return tuple(run.build for run in self.runs)

    @property
    def notes(self) -> list[str]:
        """What the kernel did and no run shows; and what was not compared."""
        notes = [note for run in self.runs for note in run.notes]
        return list(dict.fromkeys([*notes, *filter(None, [self.not_compared])]))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is likely a mistake in the arguments: as bad as a warning, and no hazard."""
        return self.runs[0].warnings

    @property
    def of_results(self) -> list[Hazard]:
        """The hazards that no run has: what the builds left, held beside each other."""
        kinds = {hazard.kind for run in self.runs for hazard in run.hazards}
        return [hazard for hazard in self.hazards if hazard.kind not in kinds]

    def fails(self, on: str, fixed: bool = False) -> bool:
        """Whether something at least as severe as ``on`` was found, and not ``fixed`` by a fix."""
        severities = [h.severity for h in self.hazards if not (fixed and h.fix and h.fix.edit)]
        doubtful = "warning" in severities or bool(self.doubts)
        wrong = not all(agreement.within for _, agreement in self.results)
        return "error" in severities or wrong or (on == "warning" and doubtful)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; ``schema`` says which layout."""
        run, target = self.runs[0], self.target
        return {
            "schema": SCHEMA,
            "name": target.name,
            "kernel": run.kernel,
            "size": list(target.size),
            "tile": target.tile or None,
            "grid": list(run.grid),
            "block": list(run.block),
            "shared_bytes": run.shared_bytes,
            "schedule": run.schedule,
            "checks": list(self.checked),
            "not_checked": [check for check in CHECKS if check not in self.checked],
            "errors": self.errors,
            "warnings": self.warnings,
            "left_out": self.left_out,
            "set_aside": self.set_aside,
            "refused": self.refused,
            "notes": self.notes,
            "argument_warnings": list(self.doubts),
            "builds": [
                {
                    "build": run.build,
                    "sha256": run.sha256,
                    "seconds": run.seconds,
                    "hazards": len(run.hazards),
                    "holds_for_all_data": run.holds_for_all_data,
                    "padding_assumed": list(run.padding),
                    "one_order": run.one_order or None,
                    "data_dependence": str(run.data_dependence) if run.data_dependence else None,
                }
                for run in self.runs
            ],
            "results": [{"build": b} | agreement.to_dict() for b, agreement in self.results],
            "hazards": [hazard.to_dict() for hazard in self.hazards],
            "fix_search": {"tried": self.search.tried, "ended": self.search.ended or None}
            if self.search
            else None,
        }


@dataclass
class Checker:
    """Check of a target: runs of its builds, and the search for fixes of what they show."""

    launcher: Launcher

    def check(self, builds: Collection[str], fixes: bool = True) -> Verdict:
        """Run some builds, and look for fixes of what is found.

        Raises:
            KernelError: No build can be had.
            SimulatorError: None can be launched.
        """
        verdict = self.find(builds)
        if fixes:
            self.find_fixes(verdict, Watch())
        return verdict

    def find(self, builds: Collection[str]) -> Verdict:
        """Run some builds. Ctrl-C leaves what those before it have found.

        Raises:
            KernelError: No build can be had.
            SimulatorError: None can be launched.
            KeyboardInterrupt: Before anything was found.
        """
        runs: list[Run] = []
        left_out, aside, interrupted = 0, 0, False
        results: list[tuple[str, Agreement]] = []
        built, launcher = Builds(self.launcher), self.launcher
        target = launcher.target
        refusals: dict[str, Exception | str] = {}
        for build in builds if target.kernel.origin else [target.kernel.build]:
            try:
                kernel = launcher.kernel(build)
                symbols = launcher.symbols()
                run, args = launcher.observe(
                    kernel, launcher.checks, launcher.schedule, counters="all", symbols=symbols
                )
            except (KernelError, SimulatorError) as error:
                refusals[build] = error
                continue
            except KeyboardInterrupt:
                if not runs:
                    raise
                refusals[build], interrupted = "interrupted", True
                break
            built.add(kernel, args, symbols)
            found, known = set_aside(launcher.policy, run.hazards, run.kernel)
            run.hazards, ignored = apply(launcher.policy, found)
            left_out, aside = max(left_out, ignored), max(aside, known)
            runs.append(run)
            results += [(run.build, agreement) for agreement in self._results(run, args)]
        for why in refusals.values():
            if not runs and isinstance(why, Exception):
                raise why
        try:
            hazards, known = built.merged(runs, results, bool(left_out or aside))
        except KeyboardInterrupt:
            hazards, known, interrupted, built.note = merge(runs), 0, True, NOT_COMPARED
        refused = {build: str(error) for build, error in refusals.items()}
        return Verdict(
            target, runs, hazards, left_out, refused, results, aside + known, built.note,
            built.kernels, interrupted,
        )  # fmt: skip

    def find_fixes(self, verdict: Verdict, watch: Watch) -> None:
        """Look for fixes of what was found; ``watch`` follows the search, and may stop it."""
        runs, hazards, launcher = verdict.runs, verdict.hazards, self.launcher
        own = launcher.target.kernel
        verdict.search, verdict.notes_before = watch, [len(hazard.notes) for hazard in hazards]
        limit = trial_steps(runs, launcher.step_limit)
        brief = dataclasses.replace(launcher, step_limit=limit, quiet=True)
        if own.origin is None:
            find_fixes(own, runs[0], brief.rerun, races=brief.races, watch=watch)
            verdict.hazards = merge(runs)
            return
        built, weight = verdict.kernels, max(run.counters.thread_instructions for run in runs)
        find_source_fixes(
            built, hazards, brief.rerun,
            lambda known: trials(brief, built, known, weight), runs, watch,
        )  # fmt: skip

    def _results(self, run: Run, args: list[Any]) -> list[Agreement]:
        """How the outputs of a user's own kernel compare with the reference it came with."""
        target = self.launcher.target
        if target.entry is not None or target.launch is None or target.expected is None:
            return []
        return target.compare(args, run)
