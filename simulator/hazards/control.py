"""Hazards of control flow: barriers, deadlocks, endless loops, member masks, traps.

Results do not depend on the order of events, so that every schedule gives the same report: examples
are the lowest thread of the lowest block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernels.ptx.module import Instruction
from kernels.source_access import plain_name

from ..compile.program import CompiledBlock
from ..core.geometry import NO_LANE, Geometry, Mask
from ..events import Awaited, BarrierDivergence, Branch, Stall
from .hazard import Hazard
from .kinds import (
    ASSERT,
    AWAITED,
    BAD_MASK,
    BARRIER_DIVERGENCE,
    BEYOND,
    DEADLOCK,
    EXITED,
    IN_PART,
    INSTEAD,
    LEFT_OUT,
    LIVELOCK,
    MOVE,
    ROUND_UP,
    SHORT,
    STILL,
    TRAP,
    TRIPS,
    UNDEFINED,
    VOTE,
    HazardCase,
    HazardKind,
)
from .sources import Sources, Who


@dataclass
class _Part:
    """Instructions of one source line that take part, with the lanes that execute them."""

    role: str
    instruction: Instruction
    who: Who = field(default_factory=Who)


@dataclass
class _HazardGroup:
    """Key of one hazard: a case of a kind at some source lines."""

    kind: HazardKind
    case: str
    parts: dict[tuple[str, object], _Part] = field(default_factory=dict)
    value: int = 0
    part: int = 0
    notes: set[str] = field(default_factory=set)
    awaited: Awaited | None = None


_EVENTS = {
    "trap": (TRAP, ""),
    "undefined": (TRAP, "undefined"),
    "astray": (TRAP, "astray"),
    "bad-free": (TRAP, "free"),
    "stack": (TRAP, "stack"),
    "assert": (ASSERT, ""),
} | {case: (BAD_MASK, case) for case in BAD_MASK.cases}
"""What the machine's word for an event is here."""


class ControlHazards:
    """Collects control-flow events of the machine."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.groups: dict[tuple[object, ...], _HazardGroup] = {}
        self.geometry: Geometry

    def _group(self, kind: HazardKind, case: str, *lines: object) -> _HazardGroup:
        return self.groups.setdefault((kind.name, case, *lines), _HazardGroup(kind, case))

    def _part(
        self, group: _HazardGroup, role: str, ins: Instruction | None, lanes: Mask | None
    ) -> None:
        if ins is None:
            return
        key = role, ins.user_line
        part = group.parts.get(key)
        if part is None:
            part = group.parts[key] = _Part(role, ins)
        elif ins.line < part.instruction.line:
            part.instruction = ins
        part.who.add(self.geometry, lanes)

    def merge(self, other: ControlHazards) -> None:
        """Merge the events of other blocks."""
        for key, group in other.groups.items():
            mine = self.groups.setdefault(key, group)
            if mine is group:
                continue
            mine.value, mine.part = group.value, group.part
            mine.notes |= group.notes
            mine.awaited = mine.awaited or group.awaited
            for role, theirs in group.parts.items():
                part = mine.parts.setdefault(role, theirs)
                if part is not theirs:
                    part.who.merge(theirs.who)
                    part.instruction = min(
                        part.instruction, theirs.instruction, key=lambda ins: ins.line
                    )

    # -- barriers -------------------------------------------------------------------

    def barrier_divergence(self, divergence: BarrierDivergence) -> None:
        """Record threads of a block that do not reach a barrier together."""
        end = divergence.block.block.end
        assert end is not None
        if divergence.how == "gone":
            self._gone(divergence, end)
            return
        group = self._group(BARRIER_DIVERGENCE, divergence.how, end.user_line)
        group.value = divergence.value
        for block, lanes in [(divergence.block, divergence.lanes), *divergence.elsewhere]:
            self._part(group, "waits" if block.holds else "arrives", block.block.end, lanes)
        self._branches(group, divergence.branches)

    def _gone(self, divergence: BarrierDivergence, end: Instruction) -> None:
        """Record threads that exited, by an early return or on a path around the barrier."""
        known: Mask = NO_LANE
        for branch in divergence.branches:
            known = known | branch.lanes
            early = branch.leaves and self._returns(branch.block)
            group = self._group(BARRIER_DIVERGENCE, "return" if early else "skip", end.user_line)
            self._part(group, "waits", end, divergence.lanes)
            self._branches(group, [branch], "exited" if early else "branch")
        assert divergence.others is not None
        unknown = divergence.others & ~known
        if unknown.any():
            group = self._group(BARRIER_DIVERGENCE, "return", end.user_line)
            self._part(group, "waits", end, divergence.lanes)
            self._part(group, "exited", end, unknown)

    def _branches(self, group: _HazardGroup, branches: list[Branch], role: str = "branch") -> None:
        for branch in branches:
            self._part(group, role, branch.block.block.end, branch.lanes)

    def _returns(self, block: CompiledBlock) -> bool:
        """Whether the source has a ``return`` at a block's branch.

        True if the source is unknown.
        """
        end = block.block.end
        code = self.sources.code(end.location.user, 3) if end and end.location else ""
        return not code or "return" in code.partition(";")[0]

    def stuck(self, stall: Stall) -> None:
        """Record threads that wait at a barrier in vain, or loop for ever."""
        for divergence in stall.waiting:
            end = divergence.block.block.end
            assert end is not None
            terminators = [block.block.end for block, _ in divergence.elsewhere]
            lines = sorted({str(e.user_line) for e in (end, *terminators) if e})
            case = "crossed" if len(lines) > 1 and divergence.how != "orders" else divergence.how
            group = self._group(DEADLOCK, case, *lines)
            group.value = divergence.value
            self._part(group, "waits", end, divergence.lanes)
            self._branches(group, divergence.branches)
        for ins, mask, awaited in stall.loops:
            kind = LIVELOCK if stall.why == "repeats" and not stall.waiting else DEADLOCK
            short = awaited is not None and 0 < awaited.come < awaited.arrivals
            case = SHORT if short and stall.why == "repeats" else stall.why
            calls = ins.location.user.chain[1:] if ins.location else ()  # what waits may be shared
            group = self._group(kind, case, ins.user_line, *((at.file, at.line) for at in calls))
            group.value, group.part = stall.steps, stall.part
            group.awaited = group.awaited or awaited
            self._part(group, "loops", ins, mask)

    @property
    def has_left_out(self) -> bool:
        """Whether lanes executed an instruction that their own member mask excludes them from."""
        return any(group.case == LEFT_OUT for group in self.groups.values())

    def bad_masks(self) -> set[object]:
        """Return the lines with an invalid member mask."""
        return {line for (_, _, *lines), group in self.groups.items() for line in lines
                if group.kind is BAD_MASK}  # fmt: skip

    def event(self, name: str, block: CompiledBlock, lanes: Mask | None, text: str) -> None:
        """See ``events.Observer``."""
        kind, case = _EVENTS[name]
        ins = block.block.body[0] if kind is BAD_MASK else block.block.end
        assert ins is not None
        group = self._group(kind, case, ins.user_line)
        if text:
            group.notes.add(plain_name(text))
        self._part(group, kind.case(case).role, ins, lanes)

    # -- texts ------------------------------------------------------------------------

    def hazards(self) -> list[Hazard]:
        """Return the collected hazards by source line."""
        found = [self._hazard(group) for group in self.groups.values() if group.parts]

        def place(hazard: Hazard) -> tuple[str, int, int]:
            first = hazard.involved[0]
            return first.source.file, first.source.line, first.ptx_line

        return sorted(found, key=place)

    def _hazard(self, group: _HazardGroup) -> Hazard:
        parts = sorted(
            group.parts.values(),
            key=lambda p: (p.role in ("branch", "exited"), p.instruction.line),
        )
        waiting_lines = {p.instruction.user_line for p in parts if p.role == "waits"}
        shown = [
            p for p in parts if p.role == "waits" or p.instruction.user_line not in waiting_lines
        ]
        involved = tuple(self.sources.part(p.role, [p.instruction], *p.who.example) for p in shown)
        said = group.kind.case(group.case)
        return Hazard(
            group.kind.name,
            said.message.format(value=group.value),
            said.severity,
            involved=involved,
            count=max(p.who.count for p in parts),
            notes=tuple(self._notes(group, said, parts)),
            case=group.case,
        )

    def _notes(self, group: _HazardGroup, said: HazardCase, parts: list[_Part]) -> Iterator[str]:
        branches = [part for part in parts if part.role in ("branch", "exited")]
        waits = {part.instruction.line for part in parts if part.role == "waits"}
        if branches and branches[0].instruction.line in waits:  # which way they went is not known
            yield EXITED.format(who=branches[0].who)
            return
        for part in branches:
            yield said.branch.format(who=part.who, line=self._line(part.instruction))
        if said.waits and group.value:
            here = ", ".join(str(part.who) for part in parts if part.role == "waits")
            yield said.waits.format(value=group.value, who=here)
        if group.awaited:
            arrivals, come, nbytes = group.awaited
            text = AWAITED.format(value=arrivals, come=f"{come:,} have" if come != 1 else "1 has")
            if nbytes:
                text += (STILL if nbytes > 0 else BEYOND).format(value=abs(nbytes))
            elif come >= arrivals > 0:
                text += UNDEFINED
            yield text
        if group.part:
            yield IN_PART.format(part=group.part)
        if said.note:
            yield said.note
        yield from (said.condition.format(text=text) for text in sorted(group.notes))
        if said.advice and branches:
            first = branches[0]
            word, jump = self._word(first)
            advice, how = said.advice, ROUND_UP if word == "for" else VOTE
            if said.advice == MOVE and jump == "continue":
                advice = INSTEAD
            elif said.advice == MOVE and (word in ("for", "loop") or jump == "break"):
                advice = TRIPS
            word = "loop" if word == "for" else word
            yield advice.format(line=self._line(first.instruction), word=word, how=how)

    def _line(self, ins: Instruction) -> str:
        return f"line {ins.location.user.line}" if ins.location else f"PTX line {ins.line}"

    def _word(self, part: _Part) -> tuple[str, str]:
        """Return the source construct of a branch (``for``, ``loop``, ``if``), and its jump."""
        code = self._text(part, 1)
        loop = re.search(r"\b(for|while)\b", code)
        if re.search(r"\bif\b", code):
            jumps = re.search(r"\bif\b[^;{]*\{?\s*(continue|break)\s*;", self._text(part, 2))
            return "branch" if loop else "if", jumps[1] if jumps else ""
        if loop:
            return "for" if loop[1] == "for" and self._counts(code) else "loop", ""
        return "switch" if re.search(r"\bswitch\b", code) else "branch", ""

    def _counts(self, code: str) -> bool:
        """Whether a loop is a counted one, by the text of its head."""
        head = re.search(r"\bfor\b\s*\(([^;]*);([^;]*);([^;]*)", code)
        return head is None or bool(head[2].strip())

    def _text(self, part: _Part, lines: int) -> str:
        location = part.instruction.location
        return self.sources.code(location.user if location else None, lines)
