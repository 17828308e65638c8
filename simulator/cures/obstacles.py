"""Why no cure was found, as far as the statements of the source tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernels.toolkit import short_path

from ..hazards.hazard import Hazard
from ..hazards.kinds import SHORT
from .fences import NO_FENCE
from .places import reads_and_writes
from .remedies import between_blocks, grid_barriers, instead, no_barrier, obstacle, remedies

if TYPE_CHECKING:
    from .source_cures import SourceSearch

NOT_LANES = "no cure of lanes alone looked for: threads further apart race at the same lines"


def obstacle_of(search: SourceSearch, hazard: Hazard) -> str:
    """Why no edit was found, as far as the statements tell; empty: nothing was looked for."""
    if away := search.proposals.absent(hazard):
        return f"no cure looked for: the compiler names {away}, which is not at hand to edit"
    if odd := next((file for file, text in search.files.items() if not _has_lines(text)), None):
        return f"no cure looked for: {short_path(str(odd))} ends its lines with CR alone, not LF"
    if search.told_by_another(hazard):
        return NOT_LANES + instead(hazard, search.hazards)
    if id(hazard) in search.cut:
        return search.cut[id(hazard)] + instead(hazard, search.hazards)
    if hazard.row.ends:
        told = hazard.case == SHORT or not search.proposals.waits(hazard)
        return "" if told else obstacle(())
    if between_blocks(hazard):
        grid = [(text, 0) for text in grid_barriers(search.syntax)[:1]]
        return (obstacle(grid) if grid else NO_FENCE) + instead(hazard, search.hazards)
    text = no_barrier(hazard, search.hazards)
    others = remedies(search.syntax, hazard.case)
    if others is not None:
        return obstacle(others)
    if instead(hazard, search.hazards):
        return text  # of a lost update no order is missing
    points = [search.proposals.points(hazard, i) for i in range(len(hazard.involved))][:2]
    if len(points) < 2 or not hazard.row.reads or not all(points):
        return text
    one, two = (search.syntax.levels(several) for several in points)
    both = reads_and_writes(search.syntax, one, two, (points[0][0], points[1][0]))
    every = [one for h in search.hazards for one in (h, *h.follows)]
    collide = any(not h.row.reads and h.places & hazard.places and search.curable(h) for h in every)
    if both is None or collide:
        near = search.missed.get(id(hazard))
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


def _has_lines(text: bytes) -> bool:
    """Whether lines end as edits know it: by LF, or CR and LF."""
    return len(re.findall(rb"\r(?!\n)", text)) <= text.count(b"\n")
