"""Verification of edits: copies are compiled in both builds, run, and compared.

Hazards of the edited kernel are compared with those of the original.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.compiler.recompile import recompiled
from kernels.errors import SimulatorError
from kernels.source.source_edit import Edit, applied, old_lines

from ..hazards.hazard import Hazard
from ..run import Run
from .budget import Budget, given_up


@dataclass(frozen=True)
class HazardFingerprint:
    """Identity of a hazard across edits, in line numbers of the unedited files.

    Attributes:
        kind: The hazard's kind; races with a read have one kind, whichever access is named first.
        reach: Threads between which a race occurs.
        hazard: The hazard itself.
    """

    kind: str
    space: str
    reach: str
    places: frozenset[tuple[str, int]]
    severity: str
    hazard: Hazard = field(compare=False)

    def within(self, other: HazardFingerprint) -> bool:
        """Whether another fingerprint includes this one."""
        mine, others = (self.kind, self.space, self.reach), (other.kind, other.space, other.reach)
        return mine == others and self.places <= other.places


def fact(hazard: Hazard, lines: Mapping[str, list[int]]) -> HazardFingerprint:
    """Return the fingerprint of a hazard.

    ``lines``: for edited files, by real path, the original line of each line.
    """
    places = set()
    for source in hazard.sources:
        if source.line:
            file = os.path.realpath(source.file)
            old = lines.get(file, [])
            line = old[source.line - 1] if 0 < source.line <= len(old) else source.line
            places.add((file, line))
    kind = "a read and a write" if hazard.row.reads else hazard.kind
    return HazardFingerprint(
        kind, hazard.space, hazard.reach, frozenset(places), hazard.severity, hazard
    )


def same(found: HazardFingerprint, known: Sequence[HazardFingerprint]) -> list[HazardFingerprint]:
    """Return the known fingerprints of a finding: equal places, or else more places."""
    wider = [old for old in known if found.within(old)]
    exact = [old for old in wider if old.places == found.places]
    return [old for old in exact if old.severity == found.severity] or exact or wider


def nothing_new(found: Sequence[Hazard], known: Sequence[Hazard]) -> bool:
    """Whether the hazards of one launch are all among those of another."""
    facts = [fact(hazard, {}) for hazard in known]
    return all(any(fact(hazard, {}).within(old) for old in facts) for hazard in found)


@dataclass(frozen=True)
class Trial:
    """A launch that an edited kernel has to pass.

    Attributes:
        shape: Grid and block, or size, in words.
        schedule: As for ``simulator.launch``.
        launch: Runs a kernel on fresh inputs; returns also whether its result is right, or unknown.
    """

    shape: str
    schedule: str | int
    launch: Callable[[Kernel], tuple[Run, bool]]


class Failed(Exception):
    """An edit that does not compile or run, or causes new hazards.

    Attributes:
        divergence: Whether the only new hazard is a barrier that some threads do not reach.
        needless: Whether the edit changes nothing.
    """

    def __init__(self, new: Sequence[HazardFingerprint] = (), needless: bool = False) -> None:
        self.needless = needless
        found = {(f.hazard.row.check, f.severity) for f in new}
        self.divergence = found == {("barriers", "warning")}


class FixVerifier:
    """Compiles and runs edited kernels, and compares their hazards with the original ones.

    ``kernels``: the kernel in each build. ``files``: the user's files by real path. ``trials``:
    launches to pass, those of the hazards' shape first. ``known``: hazards of the first trials
    without an edit. ``budget``: charged for runs.
    """

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        files: Mapping[Path, bytes],
        trials: Sequence[Trial],
        known: list[HazardFingerprint],
        budget: Budget,
    ) -> None:
        self.kernels, self.files, self.trials = kernels, files, trials
        self.known, self.budget = {trials[0]: known}, budget
        self._text = min(len(kernel.ptx) for kernel in kernels.values())  # -G names all it had
        self._kernels: dict[tuple[tuple[Edit, ...], str], Kernel | None] = {}
        self._fingerprints: dict[
            tuple[tuple[Edit, ...], str, Trial], tuple[list[HazardFingerprint], bool] | None
        ] = {}

    def check(
        self, edits: Sequence[Edit], wanted: HazardFingerprint, hazard: Hazard
    ) -> tuple[list[HazardFingerprint], bool]:
        """Return the hazards after an edit in both builds, and whether the wanted one remains.

        If it remains, it is reduced.

        Raises:
            Failed: There are new hazards, or the wanted one is unchanged.
        """
        first = [build for build in self.kernels if build in hazard.builds]
        remaining: list[HazardFingerprint] = []
        lesser = False
        for build in dict.fromkeys([*first, *self.kernels]):
            facts, _ = self._facts(edits, build, self.trials[0])
            remaining += facts
            known = self.known[self.trials[0]]
            rest = [f for f in facts if wanted in same(f, known) or self._renamed(f, wanted, build)]
            whole = any(
                f.places == wanted.places and f.hazard.kind == wanted.hazard.kind for f in rest
            )
            if whole and sum(f.hazard.count for f in rest) >= hazard.count:
                raise Failed(needless=True)
            self._compare(facts, [], self.trials[0])
            lesser = lesser or bool(rest)
        return remaining, lesser

    def _renamed(self, found: HazardFingerprint, wanted: HazardFingerprint, build: str) -> bool:
        """Whether a finding is the wanted one under another name, new in this build.

        A wait before the end of its group waits for nothing, but changes the name of the race.
        """
        what = [(f.kind, f.space, f.places) for f in (found, wanted)]
        if what[0] != what[1] or found.reach == wanted.reach:
            return False
        return not any(
            found.within(old) and build in (old.hazard.builds or self.kernels)
            for old in self.known[self.trials[0]]
        )

    def prove(self, edits: Sequence[Edit], wanted: Sequence[HazardFingerprint], clean: bool) -> str:
        """Run all trials in both builds; return their description.

        Raises:
            Failed: A hazard remains or is new, or a result is wrong.
        """
        for trial in self.trials:
            for build in self.kernels:
                facts, right = self._facts(edits, build, trial)
                self._compare(facts, wanted, trial)
                if clean and not right:
                    raise Failed
        return _in_words(list(self.kernels), self.trials)

    def _known(self, trial: Trial) -> list[HazardFingerprint]:
        """Return the hazards of a trial without an edit."""
        if trial not in self.known:
            found: list[HazardFingerprint] = []
            for build in self.kernels:
                found += self._facts([], build, trial)[0]
            self.known[trial] = found
        return self.known[trial]

    def _compare(
        self, facts: list[HazardFingerprint], wanted: Sequence[HazardFingerprint], trial: Trial
    ) -> None:
        """Compare remaining hazards with the original ones.

        Raises:
            Failed: A wanted hazard remains, or one is new.
        """
        if any(self.present(one, facts) for one in wanted):
            raise Failed
        new = [f for f in facts if not any(f.within(old) for old in self._known(trial))]
        if new:
            raise Failed(new)

    def present(self, fact: HazardFingerprint, facts: Sequence[HazardFingerprint]) -> bool:
        """Whether a finding, at least in part, is among others."""
        known = self.known[self.trials[0]]
        return any(fact in same(other, known) for other in facts)

    def _compiled(self, edits: Sequence[Edit], build: str) -> Kernel:
        if not edits:
            return self.kernels[build]
        key = (tuple(edits), build)
        if key not in self._kernels:
            self._kernels[key] = None
            self.budget.compiled(self._text)
            files = dict(self.files)
            with contextlib.suppress(KernelError, ValueError):
                for file in {edit.file for edit in edits}:
                    files[file] = applied(files[file], [e for e in edits if e.file == file])
                self._kernels[key] = recompiled(self.kernels[build], files, build)
        made = self._kernels[key]
        if made is None:
            raise Failed
        return made

    def _facts(
        self, edits: Sequence[Edit], build: str, trial: Trial
    ) -> tuple[list[HazardFingerprint], bool]:
        """Return the hazards of a trial with an edited kernel, cached."""
        key = (tuple(edits), build, trial)
        if key not in self._fingerprints:
            self._fingerprints[key] = self._shown(edits, self._compiled(edits, build), trial)
        known = self._fingerprints[key]
        if known is None:
            raise Failed
        return known

    def _shown(
        self, edits: Sequence[Edit], kernel: Kernel, trial: Trial
    ) -> tuple[list[HazardFingerprint], bool] | None:
        """Run a trial; ``None``: it cannot run, or does not end with the edit."""
        try:
            run, right = trial.launch(kernel)
        except (SimulatorError, ValueError):
            return None
        if edits:
            self.budget.pay(run)
            if given_up(run.hazards):
                return None
        lines = {
            str(file): old_lines(self.files[file], [e for e in edits if e.file == file])
            for file in {edit.file for edit in edits}
        }
        return [fact(hazard, lines) for hazard in run.hazards], right


def _in_words(builds: Sequence[str], trials: Sequence[Trial]) -> str:
    """Describe the builds and trials of a verification."""
    runs: dict[tuple[str, ...], list[str]] = {}
    for shape in dict.fromkeys(trial.shape for trial in trials):
        schedules = tuple(
            f"seed {t.schedule}" if isinstance(t.schedule, int) else t.schedule
            for t in trials if t.shape == shape
        )  # fmt: skip
        runs.setdefault(schedules, []).append(shape)
    built = " and ".join(builds)
    built += " build" + "s" * (len(builds) > 1)
    parts = [
        f"{'schedule' if len(names) == 1 else 'schedules'} {', '.join(names)} at "
        + " and at ".join(shapes)
        for names, shapes in runs.items()
    ]
    return f"verified in the {built}, {'; '.join(parts)}"
