"""Which of two instructions a report names first, whoever came first in the run.

A race has no order: that is what is wrong with it. So that one schedule tells the same story
as another, the instruction that leads to the other comes first, on a way with no barrier that
would have ordered the two, if there is one; where each leads to the other (a loop), the write
comes before the read; else the order of the source text decides.
"""

import functools

from kernels.ptx.module import Instruction

from ..compile.blocks import Block
from ..compile.flow import Paths
from ..compile.program import Program
from ..isa import Flow
from ..isa.roles import calls, roles
from ..memory.site import Site


class ProgramOrder:
    """The order of a program's accesses."""

    def __init__(self, program: Program) -> None:
        self.blocks = [compiled.block for compiled in program.blocks]
        self._position = {
            id(ins): place for block in self.blocks for place, ins in enumerate(block.instructions)
        }

    @functools.cache  # noqa: B019 - lives as long as the program
    def first(self, one: Site, other: Site, distance: str) -> bool:
        """Whether one instruction is named before the other."""
        if one is other:
            return True
        reading = (one.access == "load") != (other.access == "load")
        ways = ("all", distance) if distance == "block" else (distance, "all")
        for i, way in enumerate(ways):
            there, back = self._leads(one, other, way), self._leads(other, one, way)
            if there != back:
                return there
            if there and reading and (i == 0) == (distance != "block"):
                return one.access != "load"
        return self._text(one) < self._text(other)

    def _text(self, site: Site) -> tuple[object, ...]:
        at = (site.block, self._position.get(id(site.instruction), 0), site.number)
        location = site.instruction.location and site.instruction.location.user
        if location is None:
            return "", 0, *at
        return location.file, location.line, site.access == "load", *at

    def _leads(self, one: Site, other: Site, way: str) -> bool:
        if one.block == other.block:
            a, b = (self._position[id(site.instruction)] for site in (one, other))
            if a < b:
                return True
        return other.block in self._after(one.block, way)

    @functools.cache  # noqa: B019
    def unwaited(self, one: Site, other: Site) -> bool:
        """Whether a way in one function leads from a copy to another access, past no wait.

        A wait in a branch between the two is one, as is any call.
        """
        if one.function != other.function or not self._leads(one, other, "all"):
            return False
        start, end = ((s.block, self._position[id(s.instruction)]) for s in (one, other))
        waits = [
            (block.number, at)
            for block in self.blocks
            if block.function.name == one.function
            for at, ins in enumerate(block.instructions)
            if _waits(ins, one.queue)
        ]
        return not any(
            start < wait < end if start < end else wait > start or wait < end for wait in waits
        )

    @functools.cache  # noqa: B019
    def _after(self, number: int, way: str) -> set[int]:
        return self._paths(way).after(number)

    @functools.cache  # noqa: B019
    def _paths(self, way: str) -> Paths:
        def passes(block: Block, to: int) -> bool:
            end = block.end
            if way != "all" and end is not None and roles(end).flow is Flow.BARRIER:
                return not roles(end).holds
            body = self.blocks[to].body
            return not (way == "lane" and body and roles(body[0]).row.warp_barrier)

        return Paths(self.blocks, passes)


def _waits(ins: Instruction, queue: str) -> bool:
    """Whether an instruction waits for what is under way in a queue, or may, as any call."""
    row = roles(ins).row
    if row.phase == "wait":
        return queue in ("copy", "transaction")
    return calls(ins) or (row.asynchronous == "wait" and row.queue == queue)
