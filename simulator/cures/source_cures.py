"""Cures of races as edits of the CUDA C++: which are tried, and which is chosen."""

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels import Kernel
from kernels.source_edit import Edit, decoded, diff, joined, with_text
from kernels.toolkit import short_path

from ..hazards.hazard import Cure, Hazard, Source
from ..hazards.kinds import SHORT, UPDATES
from .budget import USED_UP, Budget
from .fences import NO_FENCE
from .places import reads_and_writes
from .proofs import Failed, Prover, Trial, fact
from .proposals import Proposals
from .remedies import (
    BLOCK_BARRIER,
    WAITED,
    between_blocks,
    grid_barriers,
    instead,
    named_barriers,
    no_barrier,
    obstacle,
    remedies,
)
from .several import leaner, several
from .statements import Syntax

NOT_LANES = "no cure of lanes alone looked for: threads further apart race at the same lines"
_TRIES = 32
_APART = 4
"""Places where a barrier for all would do, but some threads are missing: others are tried."""
_HALVES = 2
"""Edits that do some of it, each of which is tried together with any other."""
_MORE = 8
"""How many further places are tried for one that cures every error, when one was found."""
_FEW = 2
"""And for one that cures the warnings as well, when one was found that cures every error."""


class SourceSearch:
    """Looks for the edits that cure the hazards of one launch.

    ``budget``: what may be spent on edits that come to nothing; ``others``: hazards of builds that
    are not asked about; the rest is as ``Prover`` takes it.
    """

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        files: Mapping[Path, bytes],
        hazards: Sequence[Hazard],
        trials: Sequence[Trial],
        budget: Budget,
        others: Sequence[Hazard] = (),
    ) -> None:
        self.kernels, self.files, self.hazards = kernels, files, hazards
        self.syntax = Syntax(files)
        self.proposals = Proposals(kernels, self.syntax)
        self.facts = [fact(hazard, {}) for hazard in hazards]
        known = [*self.facts, *(fact(hazard, {}) for hazard in others)]
        self.prover, self.budget = Prover(kernels, files, trials, known, budget), budget
        self._tried = {id(hazard) for hazard in hazards if self.proposals.any(hazard)}
        self._missed: dict[int, Edit] = {}
        self._cut: set[int] = set()

    def run(self) -> int:
        """Set each hazard's ``cure``, or say what stands in the way; how many got one."""
        groups = 0
        for number in sorted(range(len(self.hazards)), key=self._late):
            hazard = self.hazards[number]
            if (
                hazard.cure is not None
                or not self._curable(hazard)
                or self._told_by_another(hazard)
            ):
                continue
            cure, mended = self._cure(number)
            if cure is None:
                continue
            groups += 1
            if cure.edit is not None:
                self.syntax.take(cure.edit)
            for group in {h.cure.group for h in self.hazards if h.cure is not None}:
                members = [
                    i for i, h in enumerate(self.hazards) if h.cure and h.cure.group == group
                ]
                if set(members) <= set(mended):  # that cure is needless now
                    for member in members:
                        self.hazards[member].cure = None
            for other in [number, *mended]:
                if self.hazards[other].cure is None:
                    self.hazards[other].cure = dataclasses.replace(cure, group=groups)
        for hazard in self.hazards:
            if hazard.cure is None and self._curable(hazard) and hazard.severity == "error":
                note = self._obstacle(hazard)
                hazard.notes = (*hazard.notes, note) if note else hazard.notes
        self._together()
        return sum(hazard.cure is not None for hazard in self.hazards)

    def _curable(self, hazard: Hazard) -> bool:
        """Whether there is an edit to try."""
        return id(hazard) in self._tried

    def _late(self, number: int) -> bool:
        """Whether a race is put off.

        Of two copies, as the wait that a reader needs orders them; of two writes of updates, as
        what a lock lacks between its holders does; of lanes, as what orders warps or blocks orders
        these as well.
        """
        hazard = self.hazards[number]
        writes = hazard.case in (*WAITED, *UPDATES) and not hazard.row.reads
        return writes or hazard.reach == "lane"

    def _told_by_another(self, hazard: Hazard) -> bool:
        """Whether a race is the mild side of an error that has no cure."""
        errors = [h for h in self.hazards if h.severity == "error" and h.cure is None]
        mild = hazard.severity != "error"
        if mild and any(self._curable(h) and h.places & hazard.places for h in errors):
            return True
        return hazard.reach == "lane" and any(
            h.row.is_race and h.reach != "lane" and h.places >= hazard.places for h in errors
        )

    # -- one hazard -----------------------------------------------------------------

    def _cure(self, number: int) -> tuple[Cure | None, list[int]]:
        """The edit that leaves fewest errors, then fewest races, the first such; what it cures."""
        hazard = self.hazards[number]
        errors = [i for i, h in enumerate(self.hazards) if h.severity == "error"]
        racing = [i for i, h in enumerate(self.hazards) if i != number and self._curable(h)]
        lesser = [i for i in racing if i not in errors and self.hazards[i].cure is None]
        more = _MORE if {*errors} & {*racing} else _FEW if lesser else 0
        found: list[tuple[int, int, int, Edit, list[int]]] = []
        tried, half, harmless, apart = [], [], list[Edit](), list[Edit]()

        def attempt(edit: Edit, tries: int) -> bool:
            """Whether it leaves nothing that an edit might cure."""
            if self.budget.used_up:
                self._cut.add(id(hazard))
                raise Failed
            before = self.budget.left
            left, partly = self.prover.check([edit], self.facts[number], hazard)
            if self.prover.present(self.facts[number], left):
                if partly:
                    half.append(edit)
                    harmless.append(edit)
                return False
            mended = [i for i, one in enumerate(self.facts) if not self.prover.present(one, left)]
            remaining = sum(i not in mended for i in errors)
            others = sum(i not in mended for i in lesser)
            if not remaining and not others:  # no other is tried: one that fails elsewhere is none
                self.prover.prove([edit], [self.facts[number]], clean=True)
                self.budget.left = before
            found.append((remaining, others, tries, edit, mended))
            return not remaining and not others

        for tries, edit in enumerate(self.proposals.edits(hazard)):
            if tries >= _TRIES or (found and more <= 0) or id(hazard) in self._cut:
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
                    self._missed.setdefault(id(hazard), edit)
                    apart.append(edit)
                if failed.needless:
                    harmless.append(edit)
        if not found or any(min(found, key=lambda f: f[:3])[:2]):
            for tries, edit in enumerate(self.proposals.chains(hazard, self.hazards), _TRIES):
                with contextlib.suppress(Failed):
                    if attempt(edit, tries):
                        break
        if not found:
            for first, second in itertools.product(half[:_HALVES], tried):
                both = joined(first, second)
                with contextlib.suppress(Failed):
                    if both is not None and attempt(both, len(found)):
                        break
        if not found:
            several(harmless, attempt)
        some = named_barriers(self.syntax) if apart and not found else ()
        for edit, text in itertools.product(apart[:_APART], some):
            with contextlib.suppress(Failed):
                if attempt(with_text(edit, text), len(found)):
                    break
        leaner(found, attempt)
        for remaining, _, _, edit, mended in sorted(found, key=lambda f: f[:3]):
            before = self.budget.left
            try:
                proof = self.prover.prove([edit], [self.facts[number]], clean=not remaining)
            except Failed:
                continue
            self.budget.left = before
            return self._made(edit, remaining, proof), mended
        return None, []

    # -- what is said -----------------------------------------------------------------

    def _made(self, edit: Edit, left: int, proof: str) -> Cure:
        content, name = self.files[edit.file], short_path(str(edit.file))
        code = decoded(b"".join(content.splitlines()[edit.line - 1 : edit.line])).strip()
        return Cure(
            Source(name, edit.line, code), (), left, None, edit.where, edit.text, edit.how,
            decoded(diff(content, [edit], name, context=2)), proof,
            dataclasses.replace(edit, content=content),
        )  # fmt: skip

    def _obstacle(self, hazard: Hazard) -> str:
        """Why no edit was found, as far as the statements tell; empty: nothing was looked for."""
        if away := self.proposals.absent(hazard):
            return f"no cure looked for: the compiler names {away}, which is not at hand to edit"
        if odd := next((file for file, text in self.files.items() if not _has_lines(text)), None):
            return (
                f"no cure looked for: {short_path(str(odd))} ends its lines with CR alone, not LF"
            )
        if self._told_by_another(hazard):
            return NOT_LANES + instead(hazard, self.hazards)
        if id(hazard) in self._cut:
            return USED_UP + instead(hazard, self.hazards)
        if hazard.row.ends:
            told = hazard.case == SHORT or not self.proposals.waits(hazard)
            return "" if told else obstacle(())
        if between_blocks(hazard):
            grid = [(text, 0) for text in grid_barriers(self.syntax)[:1]]
            return (obstacle(grid) if grid else NO_FENCE) + instead(hazard, self.hazards)
        text = no_barrier(hazard, self.hazards)
        others = remedies(self.syntax, hazard.case)
        if others is not None:
            return obstacle(others)
        points = [self.proposals.points(hazard, i) for i in range(len(hazard.involved))][:2]
        if len(points) < 2 or not hazard.row.reads or not all(points):
            return text
        one, two = (self.syntax.levels(several) for several in points)
        both = reads_and_writes(self.syntax, one, two, (points[0][0], points[1][0]))
        collide = any(
            not h.row.reads and h.places & hazard.places and self._curable(h) for h in self.hazards
        )
        if both is None or collide:
            near = self._missed.get(id(hazard))
            if near is not None:
                return (
                    f"no cure in one place: __syncthreads() {near.where} line {near.line} would "
                    "order the two, but threads that a return or branch keeps from it would be "
                    "missing there"
                )
            return text
        what, line = both
        return (
            f"no cure in one place: the {what} on line {line} both reads and writes, and has to be "
            "split, with a barrier for all threads between its halves"
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
            said = self.prover.prove(edits, wanted, clean=not errors)
        except Failed:
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


def _has_lines(text: bytes) -> bool:
    """Whether lines end as edits know it: by LF, or CR and LF."""
    return len(re.findall(rb"\r(?!\n)", text)) <= text.count(b"\n")
