"""Check of a target: run its builds, search fixes, and collect the findings."""

import dataclasses
import html
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kernels import Kernel, KernelError
from kernels.library import Agreement
from simulator import CHECKS, Hazard, Run, SimulatorError
from simulator.fixes import INTERRUPTED, Watch, find_fixes, find_source_fixes, trial_steps
from simulator.hazards.hazard_list import HazardList

from ..cli.target import Target
from .build_comparison import NOT_COMPARED, Builds
from .builds import merge
from .launcher import Launcher
from .policy import apply, set_aside
from .verification_runs import trials

SCHEMA = 1
"""Version of ``Verdict.to_dict``'s layout; it changes when a key changes its meaning."""


@dataclass(repr=False)
class Verdict:
    """Result of a check.

    Attributes:
        runs: One for each build.
        hazards: Hazards of all builds, each finding once, errors first.
        left_out: Number of hazards that the policy ignores.
        refused: Why a build could not be checked, by its name, if others were.
        set_aside: Number of hazards that source comments or the baseline exclude.
        results: Comparison of each output with the user's reference, by build.
        not_compared: Why the builds' results are not compared.
        kernels: The kernel of each build.
        interrupted: Whether Ctrl-C prevented some builds.
        search: State of the search for fixes; ``None``: there was none.
        notes_before: Number of notes of each hazard before that search.
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

    def __repr__(self) -> str:
        """Return a one-line summary; ``to_dict`` has everything."""
        run = self.runs[0]
        counts = f"errors: {self.errors}, warnings: {self.warnings}"
        return f"<Verdict {run.kernel}, grid {run.grid}, block {run.block}; {counts}>"

    def _repr_html_(self) -> str:
        """Return the hazards of all builds as a table for Jupyter."""
        said = f"{self.target.name}: {', '.join(self.checked)}; {' and '.join(self.builds)} build"
        said += "".join(
            f"; {build} build not checked: {why}" for build, why in self.refused.items()
        )
        return f"{HazardList(self.hazards)._repr_html_()}\n<p>{html.escape(said)}</p>"

    @property
    def stopped(self) -> bool:
        """Whether the search for fixes was interrupted."""
        return self.search is not None and self.search.ended == INTERRUPTED

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(hazard.severity == "error" for hazard in self.hazards)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return sum(hazard.severity == "warning" for hazard in self.hazards)

    @property
    def checked(self) -> tuple[str, ...]:
        """Names of the checks that ran."""
        return self.runs[0].checked

    @property
    def builds(self) -> tuple[str, ...]:
        """Names of the builds that ran."""
        return tuple(run.build for run in self.runs)

    @property
    def notes(self) -> list[str]:
        """Effects of the kernel that no run shows, and what was not compared."""
        notes = [note for run in self.runs for note in run.notes]
        return list(dict.fromkeys([*notes, *filter(None, [self.not_compared])]))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Likely mistakes in the arguments, which count like warnings."""
        return self.runs[0].warnings

    @property
    def of_results(self) -> list[Hazard]:
        """Hazards of no single run: differing results of the builds."""
        kinds = {hazard.kind for run in self.runs for hazard in run.hazards}
        return [hazard for hazard in self.hazards if hazard.kind not in kinds]

    def fails(self, on: str, fixed: bool = False) -> bool:
        """Whether a hazard is at least as severe as ``on`` and not fixed.

        ``fixed``: whether the fixes have been applied to the files.
        """
        severities = [h.severity for h in self.hazards if not (fixed and h.fix and h.fix.edit)]
        doubtful = "warning" in severities or bool(self.doubts)
        wrong = not all(agreement.within for _, agreement in self.results)
        return "error" in severities or wrong or (on == "warning" and doubtful)

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as JSON-ready values; ``schema`` is the version of the layout."""
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
    """Runs a target's builds and searches fixes for their hazards."""

    launcher: Launcher

    def check(self, builds: Collection[str], fixes: bool = True) -> Verdict:
        """Run builds and search fixes.

        Raises:
            KernelError: No build can be compiled.
            SimulatorError: No build can be launched.
        """
        verdict = self.find(builds)
        if fixes:
            self.find_fixes(verdict, Watch())
        return verdict

    def find(self, builds: Collection[str]) -> Verdict:
        """Run builds; Ctrl-C preserves the findings of completed ones.

        Raises:
            KernelError: No build can be compiled.
            SimulatorError: No build can be launched.
            KeyboardInterrupt: No build was completed.
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
        """Search fixes for the hazards of a verdict; ``watch`` follows and may stop the search."""
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
        in_any_order = not any(run.one_order for run in runs)
        find_source_fixes(
            built, hazards, brief.rerun,
            lambda known: trials(brief, built, known, weight, in_any_order), runs, watch,
        )  # fmt: skip

    def _results(self, run: Run, args: list[Any]) -> list[Agreement]:
        """Compare the outputs of a run with the user's reference."""
        target = self.launcher.target
        if target.entry is not None or target.launch is None or target.expected is None:
            return []
        return target.compare(args, run)
