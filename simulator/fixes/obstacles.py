"""Reasons why no fix was found, from the statements of the source."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels.compiler.toolkit import short_path
from kernels.source.source_edit import Edit

from ..hazards.hazard import Hazard
from ..hazards.kinds import SHORT
from .edits.candidates import Proposals
from .edits.fences import NO_FENCE
from .edits.insertion_points import reads_and_writes
from .edits.statements import Syntax
from .edits.sync_statements import (
    between_blocks,
    grid_barriers,
    instead,
    no_barrier,
    obstacle,
    remedies,
)

NOT_LANES = "no fix for one warp looked for: threads of other warps race at the same lines"


class Obstacles:
    """Obstacles to fixes of a launch's hazards, collected by the search.

    Attributes:
        cut: Why the search for a hazard ended early, by the hazard's ``id``.
        missed: First barrier that would suffice if all threads reached it, by the hazard's ``id``.
    """

    def __init__(
        self,
        files: Mapping[Path, bytes],
        hazards: Sequence[Hazard],
        syntax: Syntax,
        proposals: Proposals,
    ) -> None:
        self.files, self.hazards = files, hazards
        self.syntax, self.proposals = syntax, proposals
        self.cut: dict[int, str] = {}
        self.missed: dict[int, Edit] = {}
        self._fixable = {id(hazard) for hazard in hazards if proposals.any(hazard)}

    def fixable(self, hazard: Hazard) -> bool:
        """Whether there is an edit to try."""
        return id(hazard) in self._fixable

    def is_covered_by_another(self, hazard: Hazard) -> bool:
        """Whether a race is the milder side of an error without a fix."""
        errors = [h for h in self.hazards if h.severity == "error" and h.fix is None]
        mild = hazard.severity != "error"
        if mild and any(self.fixable(h) and h.places & hazard.places for h in errors):
            return True
        return hazard.reach == "lane" and any(
            h.row.is_race and h.reach != "lane" and h.places >= hazard.places for h in errors
        )

    def of(self, hazard: Hazard) -> str:
        """Return why no edit was found for a hazard; ``""``: no edit applies."""
        if away := self.proposals.absent(hazard):
            return f"no fix looked for: the compiler names {away}, which cannot be read"
        if odd := next((file for file, text in self.files.items() if not _has_lines(text)), None):
            return f"no fix looked for: {short_path(str(odd))} ends its lines with CR alone, not LF"
        if self.is_covered_by_another(hazard):
            return NOT_LANES + instead(hazard, self.hazards)
        if id(hazard) in self.cut:
            return self.cut[id(hazard)] + instead(hazard, self.hazards)
        if hazard.row.is_endless:
            is_explained = hazard.case == SHORT or not self.proposals.waits(hazard)
            return "" if is_explained else obstacle(())
        if between_blocks(hazard):
            grid = [(text, 0) for text in grid_barriers(self.syntax)[:1]]
            return (obstacle(grid) if grid else NO_FENCE) + instead(hazard, self.hazards)
        text = no_barrier(hazard, self.hazards)
        others = remedies(self.syntax, hazard.case)
        if others is not None:
            return obstacle(others)
        if instead(hazard, self.hazards):
            return text  # of a lost update no order is missing
        points = [self.proposals.points(hazard, i) for i in range(len(hazard.involved))][:2]
        if len(points) < 2 or not hazard.row.reads or not all(points):
            return text
        one, two = (self.syntax.levels(several) for several in points)
        both = reads_and_writes(self.syntax, one, two, (points[0][0], points[1][0]))
        every = [one for h in self.hazards for one in (h, *h.follows)]
        collide = any(
            not h.row.reads and h.places & hazard.places and self.fixable(h) for h in every
        )
        if both is None or collide:
            near = self.missed.get(id(hazard))
            if near is not None:
                return (
                    f"no fix in one place: __syncthreads() {near.where} line {near.line} would "
                    "order the two, but threads that a return or branch keeps from it would be "
                    "missing there"
                )
            return text
        what, line = both
        return (
            f"no fix in one place: the {what} on line {line} both reads and writes, and has to be "
            "split, with a barrier for all threads between its halves"
        )


def _has_lines(text: bytes) -> bool:
    """Whether lines end with LF or CR LF, which edits require."""
    return len(re.findall(rb"\r(?!\n)", text)) <= text.count(b"\n")
