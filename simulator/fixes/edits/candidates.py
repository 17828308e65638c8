"""Candidate edits for a hazard, likeliest first, at the places of its accesses."""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernels import Kernel
from kernels.ptx.module import Imm, Instruction
from kernels.source.source_edit import Edit

from ...compile.cfg.basic_blocks import reachable
from ...hazards.hazard import Hazard, Source
from ...hazards.kinds import LEAVES, UPDATES
from ...hazards.relaxed_reads import BEHIND_RELAXED
from ...isa import parse
from ...isa.decoded import roles
from .claims import claim_edits
from .fences import acquiring_edits, handing_edits
from .insertion_points import Levels, barrier_edits, inserted
from .parity import parity_edits
from .splits import split_edits
from .statement_chains import chain_edits
from .statements import Point, Syntax
from .sync_statements import (
    BLOCK_BARRIER,
    QUEUES,
    RIGHT_BEHIND,
    WAITED,
    between_blocks,
    fixable,
    grid_barriers,
    lane_barriers,
    remedies,
)
from .updates import update_edits
from .wait_counts import count_edits

_MEETINGS = 6
"""At how many places a barrier of the grid is tried."""
_BEFORE_MACROS = 8
"""So many places around the lines of a race are tried before those in macros that they call."""
_WIDE = re.compile(r"^st\S*\.[bsu]64\b")
"""A store of an integer of 64 bits."""
_LINE = re.compile(rb"^[ \t]*#[ \t]*(line\b|\d)", re.MULTILINE)


class Proposals:
    """Candidate edits for the hazards of a kernel, in its builds."""

    def __init__(self, kernels: Mapping[str, Kernel], syntax: Syntax) -> None:
        self.kernels, self.syntax = kernels, syntax
        self._phase_waits: list[Instruction] = []
        self._instructions: dict[tuple[str, int], Instruction] = {}
        for build, kernel in kernels.items():
            for function in reachable(parse(kernel.ptx), kernel.entry):
                for ins in function.body:
                    self._instructions[build, ins.line] = ins
                    if roles(ins).row.phase == "wait":
                        self._phase_waits.append(ins)

    def edits(self, hazard: Hazard) -> Iterator[Edit]:
        """Yield each candidate once."""
        if hazard.row.is_endless or hazard.case == "transaction":
            yield from parity_edits(self.syntax, self.waits(hazard))
            return
        levels = [self.levels(hazard, i) for i in range(len(hazard.involved))]
        if between_blocks(hazard):
            yield from self._between_blocks(hazard, levels)
        if hazard.case in UPDATES:
            points = (self.points(hazard, i) for i in range(len(hazard.involved)))
            wide = any(_WIDE.search(item.instruction) for item in hazard.involved)
            every = [*itertools.chain(*points)]
            yield from update_edits(self.syntax, every, wide)
            yield from claim_edits(self.syntax, every)
        if between_blocks(hazard):
            return
        pairs = [(0, 1)] + [(i, k) for k in range(2, len(levels)) for i in (0, 1)]
        begun = [
            level
            for number, found in enumerate(levels)
            if (ins := self._instruction(hazard, number)) and _begins(ins)
            for level in found
        ]
        others = remedies(self.syntax, hazard.case, begun)
        texts, visited = self._barriers(hazard), set()
        if others is not None and len(levels) == 1:
            for text, _ in others:
                for body, at in levels[0]:
                    index = at + (hazard.case == LEAVES)  # behind the access, or before it
                    edit = inserted(self.syntax, body, index, text)
                    if index in body.gaps() and edit is not None:
                        yield edit
        if len(levels) < 2:
            return
        edits: Iterator[Edit | None]
        if others is None:
            in_macros = [self.syntax.in_macros(self.points(hazard, i)) for i in range(len(levels))]
            ways = (
                [self._ordering(hazard, places[one], places[two], text, some) for text in texts]
                for one, two in pairs
                for places, some in (
                    (levels, slice(_BEFORE_MACROS)),
                    (in_macros, slice(None)),
                    (levels, slice(_BEFORE_MACROS, None)),
                )
            )
            # At each place all texts in turn: one that never helps leaves tries for the others.
            edits = (edit for way in ways for at in itertools.zip_longest(*way) for edit in at)
        else:
            behind = [one for one in others if one[1] == RIGHT_BEHIND]
            edits = itertools.chain(
                self._remedying(hazard, levels, pairs, behind),
                self._fewer(hazard),
                self._remedying(
                    hazard, levels, pairs, [one for one in others if one not in behind]
                ),
            )
        for edit in edits:
            if edit is not None and (edit.file, edit.pieces) not in visited:
                visited.add((edit.file, edit.pieces))
                yield edit

    def _ordering(
        self, hazard: Hazard, earlier: Levels, later: Levels, text: str, some: slice
    ) -> Iterator[Edit]:
        """Yield barriers at some places between two accesses, likeliest first."""
        every = self._every_place(hazard, earlier, later, text)
        return itertools.islice(every, some.start, some.stop)

    def _every_place(
        self, hazard: Hazard, earlier: Levels, later: Levels, text: str
    ) -> Iterator[Edit]:
        """Yield barriers at all places; last those where threads may have diverged."""
        for is_split in (False, True):
            edits = [barrier_edits(self.syntax, earlier, later, text, is_split)]
            if hazard.row.reads and not any(body.macro for body, _ in earlier):
                edits.append(split_edits(self.syntax, earlier, later, text, is_split))
            for edit in itertools.chain(*edits):
                yield _with_place(edit, text == BLOCK_BARRIER) if is_split else edit

    def _remedying(
        self, hazard: Hazard, levels: Sequence[Levels], pairs: Sequence[tuple[int, int]],
        others: Sequence[tuple[str, int]],
    ) -> Iterator[Edit]:  # fmt: skip
        """Yield each of some statements between two accesses, in either order."""
        either = [*pairs, *((two, one) for one, two in pairs[1:])]
        for (text, places), (one, two) in itertools.product(others, either):
            late = hazard.case in WAITED and places != RIGHT_BEHIND
            edits = barrier_edits(self.syntax, levels[one], levels[two], text, late=late)
            yield from itertools.islice(edits, places)

    def _fewer(self, hazard: Hazard) -> Iterator[Edit]:
        """Yield existing waits with a smaller number of pending groups."""
        waits = [
            (pending, points)
            for ins in dict.fromkeys(self._instructions.values())
            if (pending := _pending_groups(ins, hazard.case)) is not None
            for points in [[point for point in self._chain(ins) if point.file in self.syntax.files]]
        ]
        touches = [
            number
            for number in range(len(hazard.involved))
            if not ((ins := self._instruction(hazard, number)) and _begins(ins))
        ]
        later = [point for number in touches or [1] for point in self.points(hazard, number)]
        return count_edits(self.syntax, waits, later, hazard.case)

    def chains(self, hazard: Hazard, hazards: Iterable[Hazard]) -> Iterator[Edit]:
        """Yield the simultaneous split of all statements of a race, if some race alone."""
        own = _lines(hazard, "read", "write")
        both = [_lines(h, "read") & _lines(h, "write") for h in hazards if h.row.reads]
        if between_blocks(hazard) or not own & set().union(*both):
            return
        levels = [self.levels(hazard, i) for i in range(len(hazard.involved))]
        raw = hazard.kind.startswith("raw")  # what only writes there need not be split
        written = [raw and item.role == "write" for item in hazard.involved]
        for text in self._barriers(hazard):
            yield from chain_edits(self.syntax, levels, written, text)

    def _barriers(self, hazard: Hazard) -> list[str]:
        """Return the barriers that may order the racing threads: of the block or of a warp."""
        return lane_barriers(self.syntax) if hazard.reach == "lane" else [BLOCK_BARRIER]

    def _between_blocks(self, hazard: Hazard, levels: Sequence[Levels]) -> Iterator[Edit]:
        """Yield grid barriers, if the program has one, and fences for atomics or flags."""
        for text in grid_barriers(self.syntax):
            edits = barrier_edits(self.syntax, levels[0], levels[-1], text, False)
            yield from itertools.islice(edits, _MEETINGS)
        roles_of = [item.role for item in hazard.involved]
        if hazard.case in ("blocks", "update") and {"write", "read"} <= {*roles_of}:
            write, read = (levels[roles_of.index(role)] for role in ("write", "read"))
            there = handing_edits(self.syntax, write, read)
            back = handing_edits(self.syntax, read, write)  # the reader signals that it has read
            yield from dict.fromkeys(itertools.chain(there, back))
        if hazard.case in BEHIND_RELAXED:  # in front of what comes behind the look
            later = "write" if hazard.kind.startswith("war") else "read"
            yield from acquiring_edits(self.syntax, levels[roles_of.index(later)])

    def any(self, hazard: Hazard) -> bool:
        """Whether there are any candidates."""
        if between_blocks(hazard):
            return next(self.edits(hazard), None) is not None
        return fixable(hazard)

    def levels(self, hazard: Hazard, number: int) -> Levels:
        """Return the statement lists around an access; all of them at a closing brace."""
        points = self.points(hazard, number)
        return self.syntax.levels(points) or self.syntax.all_lists(points)

    def points(self, hazard: Hazard, number: int) -> list[Point]:
        """Return the source places of an instruction: itself, then its call chain."""
        ins, source = self._instruction(hazard, number), hazard.involved[number].source
        points = self._chain(ins) if ins else []
        points.append(Point(Path(os.path.realpath(source.file)), source.line))
        return list(dict.fromkeys(point for point in points if point.file in self.syntax.files))

    def _instruction(self, hazard: Hazard, number: int) -> Instruction | None:
        build = hazard.builds[0] if hazard.builds else next(iter(self.kernels))
        return self._instructions.get((build, hazard.involved[number].ptx_line))

    def absent(self, hazard: Hazard) -> Source | None:
        """Return the place of an access in a file that cannot be edited, if there is one."""
        by_line = any(_LINE.search(content) for content in self.syntax.files.values())
        sides = [
            item.source
            for i, item in enumerate(hazard.involved)
            if not (self.levels(hazard, i) if by_line else self.points(hazard, i))
        ]
        return sides[0] if sides else None

    def _chain(self, ins: Instruction) -> list[Point]:
        chain = ins.location.chain if ins.location else ()
        return [Point(Path(os.path.realpath(at.file)), at.line) for at in chain]

    def waits(self, hazard: Hazard) -> list[list[Point]]:
        """Return the places of waits for an mbarrier phase, of threads that wait for ever."""
        found = []
        at = {point for i in range(len(hazard.involved)) for point in self.points(hazard, i)}
        for ins in self._phase_waits:
            chain = [point for point in self._chain(ins) if point.file in self.syntax.files]
            if not hazard.row.is_endless or not at.isdisjoint(chain):
                found.append(chain)
        return found


def _lines(hazard: Hazard, *roles_: str) -> set[tuple[str, int]]:
    """Return the lines of a race's accesses with some roles."""
    return {(i.source.file, i.source.line) for i in hazard.involved if i.role in roles_}


def _begins(ins: Instruction) -> bool:
    """Whether an instruction starts an asynchronous operation: a copy or a product."""
    row = roles(ins).row
    return row.asynchronous in ("copy", "bulk") or (row.warpgroup and row.queue == "product")


def _pending_groups(ins: Instruction, case: str) -> int | None:
    """Return the pending count of a wait for the racing operation, if it is one."""
    row = roles(ins).row
    if row.asynchronous != "wait" or row.queue != QUEUES.get(case):
        return None
    return next((item.value for item in ins.operands if isinstance(item, Imm)), 0)


def _with_place(edit: Edit, block: bool) -> Edit:
    """Return a barrier in possibly divergent code, with a remark for its author."""
    who = "threads of the block" if block else "lanes of a warp"
    return dataclasses.replace(edit, how=f"{edit.how}, where all {who} have to come")
