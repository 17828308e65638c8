"""Search for source edits: which are tried, and which is chosen."""

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels import Kernel
from kernels.compiler.toolkit import short_path
from kernels.source.source_edit import Edit, decoded, diff, joined, with_text

from ..hazards.hazard import Fix, Hazard, Source
from ..hazards.kinds import UPDATES
from .budget import Budget
from .edits.candidates import Proposals
from .edits.statements import Syntax
from .edits.sync_statements import BLOCK_BARRIER, WAITED, named_barriers
from .multi_barrier import minimise, several
from .obstacles import Obstacles
from .progress import ENDED, INTERRUPTED, Watch
from .verification import Failed, FixVerifier, Trial, fact

_TRIES = 32
_MAX_SPLITS = 4
"""Places where a barrier for all would do, but some threads are missing: others are tried."""
_HALVES = 2
"""Edits that do some of it, each of which is tried together with any other."""
_MORE = 8
"""How many further places are tried for one that fixes every error, when one was found."""
_FEW = 2
"""And for one that fixes the warnings as well, when one was found that fixes every error."""


class SourceSearch:
    """Searches source edits for the hazards of one launch.

    ``budget``: work for unsuccessful edits. ``others``: hazards of builds without a search.
    ``watch``: follows the search. Other arguments are those of ``FixVerifier``.
    """

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        files: Mapping[Path, bytes],
        hazards: Sequence[Hazard],
        trials: Sequence[Trial],
        budget: Budget,
        others: Sequence[Hazard] = (),
        watch: Watch | None = None,
    ) -> None:
        self.watch = watch or Watch()
        self.kernels, self.files, self.hazards = kernels, files, hazards
        self.syntax = Syntax(files)
        self.proposals = Proposals(kernels, self.syntax)
        self.facts = [fact(hazard, {}) for hazard in hazards]
        known = [*self.facts, *(fact(hazard, {}) for hazard in others)]
        self.prover, self.budget = FixVerifier(kernels, files, trials, known, budget), budget
        self.obstacles = Obstacles(files, hazards, self.syntax, self.proposals)

    def run(self) -> int:
        """Set each hazard's ``fix``, or note the obstacle; return the number of hazards with a fix.

        Ctrl-C or the ``Watch`` may stop the search; its results remain.
        """
        try:
            self._each()
        except self.watch.stops:
            self.watch.ended = INTERRUPTED
        for hazard in self.hazards:
            if hazard.fix is None and self.obstacles.fixable(hazard) and hazard.severity == "error":
                if self.watch.ended == INTERRUPTED:
                    self.obstacles.cut[id(hazard)] = ENDED[INTERRUPTED]
                note = self.obstacles.of(hazard)
                hazard.notes = (*hazard.notes, note) if note else hazard.notes
        try:
            proved = self.watch.ended != INTERRUPTED and self._together()
        except self.watch.stops:
            self.watch.ended, proved = INTERRUPTED, False
        if not proved:
            self._first_alone()
        return sum(hazard.fix is not None for hazard in self.hazards)

    def _each(self) -> None:
        """Search a fix of each hazard in turn."""
        groups = 0
        for number in sorted(range(len(self.hazards)), key=self._late):
            hazard = self.hazards[number]
            if (
                hazard.fix is not None
                or not self.obstacles.fixable(hazard)
                or self.obstacles.is_covered_by_another(hazard)
            ):
                continue
            fix, mended = self._best_fix(number)
            if fix is None:
                continue
            groups += 1
            if fix.edit is not None:
                self.syntax.take(fix.edit)
            for group in {h.fix.group for h in self.hazards if h.fix is not None}:
                members = [i for i, h in enumerate(self.hazards) if h.fix and h.fix.group == group]
                if set(members) <= set(mended):  # that fix is needless now
                    for member in members:
                        self.hazards[member].fix = None
            for other in [number, *mended]:
                if self.hazards[other].fix is None:
                    self.hazards[other].fix = dataclasses.replace(fix, group=groups)

    def _late(self, number: int) -> bool:
        """Whether a race is postponed, because another one's fix may order it as well.

        These are races of two copies (ordered by the readers' wait), of two writes of updates (by
        what a lock lacks), and of lanes (by what orders warps or blocks).
        """
        hazard = self.hazards[number]
        writes = hazard.case in (*WAITED, *UPDATES) and not hazard.row.reads
        return writes or hazard.reach == "lane"

    # -- one hazard -----------------------------------------------------------------

    def _best_fix(self, number: int) -> tuple[Fix | None, list[int]]:
        """Return the first edit with fewest errors, then fewest races, and the hazards it fixes."""
        hazard = self.hazards[number]
        errors = [i for i, h in enumerate(self.hazards) if h.severity == "error"]
        racing = [
            i for i, h in enumerate(self.hazards) if i != number and self.obstacles.fixable(h)
        ]
        lesser = [i for i in racing if i not in errors and self.hazards[i].fix is None]
        more = _MORE if {*errors} & {*racing} else _FEW if lesser else 0
        found: list[tuple[int, int, int, Edit, list[int]]] = []
        tried, half, harmless, splits = [], [], list[Edit](), list[Edit]()
        edits = list(itertools.islice(self.proposals.edits(hazard), _TRIES))
        number_of_tries = 0

        def attempt(edit: Edit, tries: int, prove: bool = True) -> bool:
            """Try an edit; return whether nothing fixable remains."""
            nonlocal number_of_tries
            if why := self.budget.used_up:
                self.obstacles.cut[id(hazard)] = ENDED[why]
                self.watch.ended = why
                raise Failed
            number_of_tries += 1
            self.watch.attempt(number_of_tries, max(number_of_tries, len(edits)), hazard)
            before = self.budget.remaining
            errors_after, partly = self.prover.check([edit], self.facts[number], hazard)
            if self.prover.present(self.facts[number], errors_after):
                if partly:
                    half.append(edit)
                    harmless.append(edit)
                return False
            mended = [
                i for i, one in enumerate(self.facts) if not self.prover.present(one, errors_after)
            ]
            remaining = sum(i not in mended for i in errors)
            others = sum(i not in mended for i in lesser)
            if not remaining and not others:  # no other is tried: one that fails elsewhere is none
                if prove:
                    self.prover.prove([edit], [self.facts[number]], clean=True)
                self.budget.remaining = before
            found.append((remaining, others, tries, edit, mended))
            return not remaining and not others

        for tries, edit in enumerate(edits):
            if (found and more <= 0) or id(hazard) in self.obstacles.cut:
                break
            if any(not remaining for remaining, *_ in found):
                more = min(more, _FEW)
            more -= bool(found)
            tried.append(edit)
            try:
                if attempt(edit, tries):
                    break
            except Failed as failed:
                if failed.divergence and edit.text == BLOCK_BARRIER:
                    self.obstacles.missed.setdefault(id(hazard), edit)
                    splits.append(edit)
                if failed.needless:
                    harmless.append(edit)
        if not found or any(min(found, key=lambda f: f[:3])[:2]):
            for tries, edit in enumerate(self.proposals.chains(hazard, self.hazards), _TRIES):
                with contextlib.suppress(Failed):
                    if attempt(edit, tries):
                        break
        if not found:
            several(harmless, attempt)
        if not found:
            for first, second in itertools.product(half[:_HALVES], tried):
                both = joined(first, second)
                with contextlib.suppress(Failed):
                    if both is not None and attempt(both, len(found)):
                        break
        some = named_barriers(self.syntax) if splits and not found else ()
        for edit, text in itertools.product(splits[:_MAX_SPLITS], some):
            with contextlib.suppress(Failed):
                if attempt(with_text(edit, text), len(found)):
                    break
        minimise(found, attempt)
        for remaining, _, _, edit, mended in sorted(found, key=lambda f: f[:3]):
            before = self.budget.remaining
            try:
                proof = self.prover.prove([edit], [self.facts[number]], clean=not remaining)
            except Failed:
                continue
            self.budget.remaining = before
            return self._made(edit, remaining, proof), mended
        return None, []

    # -- what is said -----------------------------------------------------------------

    def _made(self, edit: Edit, errors: int, proof: str) -> Fix:
        content, name = self.files[edit.file], short_path(str(edit.file))
        code = decoded(b"".join(content.splitlines()[edit.line - 1 : edit.line])).strip()
        return Fix(
            Source(name, edit.line, code), (), errors, None, edit.where, edit.text, edit.how,
            decoded(diff(content, [edit], name, context=2)), proof,
            dataclasses.replace(edit, content=content),
        )  # fmt: skip

    def _together(self) -> bool:
        """Verify all fixes together, if there are several; return whether they hold."""
        fixes = {h.fix.group: h.fix for h in self.hazards if h.fix is not None}
        edits = [fix.edit for fix in fixes.values() if fix.edit is not None]
        if len(edits) < 2:
            return True
        wanted = [fact for fact, h in zip(self.facts, self.hazards, strict=True) if h.fix]
        errors = sum(h.severity == "error" and h.fix is None for h in self.hazards)
        try:
            said = self.prover.prove(edits, wanted, clean=not errors)
        except Failed:
            return False
        for hazard in self.hazards:
            if hazard.fix is not None:
                fix = dataclasses.replace(hazard.fix, proof=said)
                if fix.errors_left:
                    fix = dataclasses.replace(fix, together=errors)
                hazard.fix = fix
        return True

    def _first_alone(self) -> None:
        """Drop all fixes but the first, if they do not hold together."""
        groups = [hazard.fix.group for hazard in self.hazards if hazard.fix is not None]
        for hazard in self.hazards:
            if hazard.fix is not None and hazard.fix.group != min(groups):
                hazard.fix = None
                hazard.notes = (*hazard.notes, "run check again for a fix of its own")
