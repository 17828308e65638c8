"""Cures of races as edits of the CUDA C++: tried in copies, compiled in both builds, and run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.edited import recompiled

from .errors import SimulatorError
from .hazard import Cure, Hazard, Source
from .module import Instruction, Location
from .parser import parse
from .places import barrier_edits, reads_and_writes
from .run import Run
from .source_edit import Edit, applied, decoded, diff, old_lines
from .sources import short_path
from .splits import split_edits
from .statements import Point, Syntax

BLOCK_BARRIER, WARP_BARRIER = "__syncthreads();", "__syncwarp();"
_TRIES = 32
_MORE = 8
"""How many further places are tried for one that cures everything, when one was found."""
_WITHIN_WARP = "another lane of the warp"


@dataclass(frozen=True)
class Trial:
    """A launch that a cured kernel has to pass.

    Attributes:
        shape: Grid and block, or size, in words.
        schedule: As ``simulator.launch`` takes it.
        launch: Runs a kernel on fresh inputs, and says whether its result is right (or that
            no reference is known).
    """

    shape: str
    schedule: str | int
    launch: Callable[[Kernel], tuple[Run, bool]]


@dataclass(frozen=True)
class _Fact:
    """What one hazard says, told in lines of the files as they were before any edit."""

    kind: str
    space: str
    reach: str
    places: frozenset[tuple[str, int]]
    severity: str

    def within(self, other: _Fact) -> bool:
        """Whether the other says this, too."""
        mine, others = (self.kind, self.space, self.reach), (other.kind, other.space, other.reach)
        return mine == others and self.places <= other.places


class _Failed(Exception):
    """An edit that does not compile, does not run, or brings something new."""


class SourceSearch:
    """Looks for the edits that cure the hazards of one launch.

    Args:
        kernels: The kernel in each build that runs.
        files: The user's files by real path.
        hazards: What was found, in all builds together.
        trials: Launches to pass, those at the shape of the hazards first.
        others: Hazards of builds that are not asked about.
    """

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        files: Mapping[Path, bytes],
        hazards: Sequence[Hazard],
        trials: Sequence[Trial],
        others: Sequence[Hazard] = (),
    ) -> None:
        self.kernels, self.files, self.hazards, self.trials = kernels, files, hazards, trials
        self.syntax = Syntax(files)
        self.facts = [_fact(hazard, {}) for hazard in hazards]
        self.known = {trials[0]: [*self.facts, *(_fact(hazard, {}) for hazard in others)]}
        self.tried = 0
        self._instructions: dict[tuple[str, int], Instruction] = {}
        for build, kernel in kernels.items():
            for function in parse(kernel.ptx).functions.values():
                for ins in function.body:
                    self._instructions[build, ins.line] = ins

    def run(self) -> int:
        """Set ``cure`` of each hazard that has one; say of others what stands in the way.

        Returns:
            How many hazards got a cure.
        """
        groups = 0
        for number, hazard in enumerate(self.hazards):
            if hazard.cure is not None or not curable(hazard) or self._told_by_another(hazard):
                continue
            cure, mended = self._cure(number)
            if cure is None:
                continue
            groups += 1
            for group in {h.cure.group for h in self.hazards if h.cure is not None}:
                members = [i for i, h in enumerate(self.hazards) if _group(h) == group]
                if set(members) <= set(mended):  # that cure is needless now
                    for member in members:
                        self.hazards[member].cure = None
            for other in [number, *mended]:
                if self.hazards[other].cure is None:
                    self.hazards[other].cure = dataclasses.replace(cure, group=groups)
        for hazard in self.hazards:
            if hazard.cure is None and curable(hazard) and hazard.severity == "error":
                hazard.notes = (*hazard.notes, self._obstacle(hazard))
        self._together()
        return sum(hazard.cure is not None for hazard in self.hazards)

    def _told_by_another(self, hazard: Hazard) -> bool:
        """Whether a warning is the mild side of an error that has no cure."""
        return hazard.severity != "error" and any(
            h.severity == "error" and h.cure is None and curable(h) and h.places & hazard.places
            for h in self.hazards
        )

    # -- one hazard -----------------------------------------------------------------

    def _cure(self, number: int) -> tuple[Cure | None, list[int]]:
        """The first edit that leaves no error, else the one that cures most; and what it cures."""
        hazard = self.hazards[number]
        errors = [i for i, h in enumerate(self.hazards) if h.severity == "error"]
        open_errors = [i for i in errors if i != number and curable(self.hazards[i])]
        found: list[tuple[int, int, Edit, list[int]]] = []
        more = _MORE if open_errors else 0
        for tries, edit in enumerate(self._edits(hazard)):
            if tries >= _TRIES or (found and more <= 0):
                break
            more -= bool(found)
            try:
                left = self._check([edit], self.facts[number], hazard)
            except _Failed:
                continue
            mended = [i for i, fact in enumerate(self.facts) if not self._present(fact, left)]
            remaining = sum(i not in mended for i in errors)
            found.append((remaining, tries, edit, mended))
            if not remaining:
                break
        for remaining, _, edit, mended in sorted(found, key=lambda f: f[:2]):
            try:
                proof = self._prove([edit], [self.facts[number]], clean=not remaining)
            except _Failed:
                continue
            return self._made(edit, remaining, proof), mended
        return None, []

    def _edits(self, hazard: Hazard) -> Iterator[Edit]:
        if len(hazard.involved) < 2:
            return
        one, two = (self._points(hazard, i) for i in (0, 1))
        if not one or not two:
            return
        earlier, later = self.syntax.levels(one), self.syntax.levels(two)
        if not earlier or not later:  # a line that has no statement, such as a closing brace
            earlier, later = (
                earlier or self.syntax.all_lists(one),
                later or self.syntax.all_lists(two),
            )
        within_warp = _WITHIN_WARP in hazard.message
        for text in [WARP_BARRIER] * within_warp + [BLOCK_BARRIER] * (not within_warp):
            yield from barrier_edits(self.syntax, earlier, later, text)
            if hazard.kind != "waw-race":
                yield from split_edits(self.syntax, earlier, later, text)

    def _points(self, hazard: Hazard, number: int) -> list[Point]:
        """Where an instruction stands in the user's files: itself, then its chain of calls."""
        item = hazard.involved[number]
        build = hazard.builds[0] if hazard.builds else next(iter(self.kernels))
        ins = self._instructions.get((build, item.ptx_line))
        location: Location | None = ins.location if ins else None
        points = []
        while location is not None:
            points.append(Point(Path(os.path.realpath(location.file)), location.line))
            location = location.inlined_at
        points.append(Point(Path(os.path.realpath(item.source.file)), item.source.line))
        return list(dict.fromkeys(point for point in points if point.file in self.files))

    def _check(self, edits: Sequence[Edit], wanted: _Fact, hazard: Hazard) -> list[_Fact]:
        """What is left after an edit, at the shape of the hazard, in both builds.

        Raises:
            _Failed: The hazard is still there, or something new is.
        """
        first = [build for build in self.kernels if build in hazard.builds]
        builds = dict.fromkeys([*first, *self.kernels])
        left: list[_Fact] = []
        for build in builds:
            facts, _ = self._facts(edits, self._compiled(edits, build), self.trials[0])
            left += facts
            self._compare(facts, [wanted], self.trials[0])
        return left

    def _prove(self, edits: Sequence[Edit], wanted: Sequence[_Fact], clean: bool) -> str:
        """Run all trials in both builds.

        Returns:
            What was run, in words.

        Raises:
            _Failed: A hazard is still there, something new is, or the result is wrong.
        """
        kernels = {build: self._compiled(edits, build) for build in self.kernels}
        for trial in self.trials:
            # What is left may be told the other way round where the later access ran first.
            gone = wanted if clean or trial.schedule == self.trials[0].schedule else ()
            for kernel in kernels.values():
                facts, right = self._facts(edits, kernel, trial)
                self._compare(facts, gone, trial)
                if clean and not right:
                    raise _Failed
        return proof(list(kernels), self.trials)

    def _known(self, trial: Trial) -> list[_Fact]:
        """The hazards that a trial shows without any edit."""
        if trial not in self.known:
            found: list[_Fact] = []
            for kernel in self.kernels.values():
                found += self._facts([], kernel, trial)[0]
            self.known[trial] = found
        return self.known[trial]

    def _compare(self, facts: list[_Fact], wanted: Sequence[_Fact], trial: Trial) -> None:
        """Hold what is left to what was there.

        Raises:
            _Failed: Some of what should be gone is left, or something is new.
        """
        if any(self._present(one, facts) for one in wanted):
            raise _Failed
        if facts and not all(any(f.within(old) for old in self._known(trial)) for f in facts):
            raise _Failed

    def _present(self, fact: _Fact, facts: Sequence[_Fact]) -> bool:
        """Whether a finding, or a part of it, is still among these."""
        known = self.known[self.trials[0]]
        return any(fact in _same(other, known) for other in facts)

    def _compiled(self, edits: Sequence[Edit], build: str) -> Kernel:
        self.tried += 1
        files = dict(self.files)
        try:
            for file in {edit.file for edit in edits}:
                files[file] = applied(files[file], [e for e in edits if e.file == file])
            return recompiled(self.kernels[build], files, build)
        except (KernelError, ValueError):
            raise _Failed from None

    def _facts(
        self, edits: Sequence[Edit], kernel: Kernel, trial: Trial
    ) -> tuple[list[_Fact], bool]:
        try:
            run, right = trial.launch(kernel)
        except (SimulatorError, ValueError):
            raise _Failed from None
        lines = {
            str(file): old_lines(self.files[file], [e for e in edits if e.file == file])
            for file in {edit.file for edit in edits}
        }
        return [_fact(hazard, lines) for hazard in run.hazards], right

    # -- what is said -----------------------------------------------------------------

    def _made(self, edit: Edit, left: int, proof: str) -> Cure:
        content, name = self.files[edit.file], short_path(str(edit.file))
        lines = content.splitlines()
        code = decoded(lines[edit.line - 1]).strip() if edit.line <= len(lines) else ""
        return Cure(
            Source(name, edit.line, code), (), left, None, edit.where, edit.text, edit.how,
            decoded(diff(content, [edit], name, context=2)), proof,
            dataclasses.replace(edit, content=content),
        )  # fmt: skip

    def _obstacle(self, hazard: Hazard) -> str:
        """Why no edit was found, as far as the statements tell."""
        text = "no cure: no __syncthreads() between two statements removes this race alone"
        if _WITHIN_WARP in hazard.message:
            text = text.replace("__syncthreads", "__syncwarp")
        if len(hazard.involved) < 2 or hazard.kind == "waw-race":
            return text
        one, two = (self.syntax.levels(self._points(hazard, i)) for i in (0, 1))
        same = reads_and_writes(self.syntax, one, two)
        collide = any(
            h.kind == "waw-race" and h.places & hazard.places and curable(h) for h in self.hazards
        )
        if same is None or collide:
            return text
        kind, line = same
        return (
            f"no cure in one place: the {kind} on line {line} both reads and writes, and has to be "
            "split: read into a variable, then a barrier for all threads, then write"
        )

    def _together(self) -> None:
        """One more proof with all cures, where several are needed."""
        cures = {h.cure.group: h.cure for h in self.hazards if h.cure is not None}
        edits = [cure.edit for cure in cures.values() if cure.edit is not None]
        if len(edits) < 2:
            return
        wanted = [fact for fact, h in zip(self.facts, self.hazards, strict=True) if h.cure]
        errors = sum(h.severity == "error" and h.cure is None for h in self.hazards)
        try:
            said = self._prove(edits, wanted, clean=not errors)
        except _Failed:
            for hazard in self.hazards:
                if hazard.cure is not None and hazard.cure.group != min(cures):
                    hazard.cure = None
                    hazard.notes = (*hazard.notes, "a cure of its own is left to the next check")
            return
        for hazard in self.hazards:
            if hazard.cure is not None:
                cure = dataclasses.replace(hazard.cure, proof=said)
                if cure.left:
                    cure = dataclasses.replace(cure, together=errors)
                hazard.cure = cure


def proof(builds: Sequence[str], trials: Sequence[Trial]) -> str:
    """What was run to verify a cure, in words."""
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


def _group(hazard: Hazard) -> int:
    return hazard.cure.group if hazard.cure else 0


def curable(hazard: Hazard) -> bool:
    """Whether a barrier might order its accesses."""
    if not hazard.kind.endswith("-race") or len({item.block for item in hazard.involved}) != 1:
        return False
    return hazard.severity == "error" or (
        _WITHIN_WARP in hazard.message and "every write leaves the same value" not in hazard.notes
    )


def nothing_new(found: Sequence[Hazard], known: Sequence[Hazard]) -> bool:
    """Whether hazards of one launch are all among those of another."""
    facts = [_fact(hazard, {}) for hazard in known]
    return all(any(_fact(hazard, {}).within(fact) for fact in facts) for hazard in found)


def _fact(hazard: Hazard, lines: Mapping[str, list[int]]) -> _Fact:
    places = set()
    for source in hazard.sources:
        if not source.line:
            continue
        file = os.path.realpath(source.file)
        old = lines.get(file, [])
        line = old[source.line - 1] if 0 < source.line <= len(old) else source.line
        places.add((file, line))
    kind, _, space, reach, _ = hazard.family
    return _Fact(kind, space, reach, frozenset(places), hazard.severity)


def _same(fact: _Fact, known: Sequence[_Fact]) -> list[_Fact]:
    """What a finding was called before: of the same places, or else of more."""
    wider = [old for old in known if fact.within(old)]
    exact = [old for old in wider if old.places == fact.places]
    return [old for old in exact if old.severity == fact.severity] or exact or wider
