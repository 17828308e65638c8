"""Data flow of ``wgmma`` registers: which instructions may touch them while they are in flight.

Rules (PTX ISA, ``wgmma.mma_async``, ``wgmma.fence``, ``wgmma.wait_group``): accumulators, and
fragments of A in registers, must not be accessed until their group has been waited for. Earlier
accesses need a ``wgmma.fence``, unless all of them are ``wgmma`` with accumulators of the same
shape. Compilers insert moves anywhere; a move is no access, and its target inherits the state of
its source.

The results are possible accesses; ``observe/checks/wgmma_registers.py`` determines which occur.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernels.ptx.module import Imm, Instruction, Operand, Reg, Vector

from ...isa.decoded import DecodedInstruction, roles
from ...isa.matrix import fragments
from ...isa.table import TABLE
from ..cfg.basic_blocks import Block, successors

OPEN = -1
"""The age of what is in no group yet; a group that has just been made is 0 old."""
OLDEST = 8
"""Age of a group from which on ages are not distinguished."""


@dataclass(frozen=True)
class WgmmaRegisterUse:
    """An instruction that concerns registers of a ``wgmma``.

    Attributes:
        block: Its basic block.
        what: ``product``, ``fence`` or ``touch``.
        writes: Whether it writes registers that may be in flight.
        ages: For each product possibly in flight in an accessed register, the number of later
            groups.
        reads_a: Products whose fragments of A it would overwrite.
        touches: Of a product: possible accesses to its registers without a fence since.
    """

    instruction: Instruction
    block: int
    what: str
    writes: bool = False
    ages: Mapping[int, frozenset[int]] = field(default_factory=dict)
    reads_a: frozenset[int] = frozenset()
    touches: tuple[int, ...] = ()


Entry = tuple[int, int, int]
"""A value under way: the product, which of its registers (of A: negative), its group's age."""
DataflowState = tuple[dict[str, frozenset[Entry]], dict[str, frozenset[int]]]
"""Of registers: what is under way in them, and what has touched them since a fence."""
_MOVES = {id(row) for row in TABLE["mov"]}
_NONE: frozenset[Entry] = frozenset()
Fact = TypeVar("Fact")


class Flights:
    """Finds the register uses of one function's blocks.

    ``touches``: whether to look for ordinary accesses. Compilers that store variables in memory
    access registers before any wait in the source.

    Attributes:
        numbers: Index of each instruction's use, by its ``id``.
    """

    def __init__(
        self, blocks: Sequence[Block], found: list[WgmmaRegisterUse], touches: bool
    ) -> None:
        self.blocks, self.found = {block.number: block for block in blocks}, found
        self.numbers: dict[int, int] = {}
        self._touching: dict[int, WgmmaRegisterUse] = {}
        self._behind: dict[int, Instruction] = {}
        self._fence: Instruction | None = None
        for block in blocks:
            for ins in block.instructions:
                row = roles(ins).row
                if row.queue == "product" and not row.asynchronous:
                    what = "product" if row.warpgroup else "fence"
                    self._add(WgmmaRegisterUse(ins, block.number, what))
        if self.numbers and touches:
            self.related = _related(blocks)
            self._follow()

    def _add(self, flight: WgmmaRegisterUse) -> int:
        number = self.numbers.setdefault(id(flight.instruction), len(self.found))
        if number == len(self.found):
            self.found.append(flight)
        return number

    def _follow(self) -> None:
        """Compute the state at each block's start, then inspect each instruction."""
        before: dict[int, DataflowState] = {number: ({}, {}) for number in self.blocks}
        waiting = sorted(self.blocks)
        while waiting:
            number = waiting.pop(0)
            after = self._through(self.blocks[number], before[number], False)
            for follower in successors(self.blocks[number]):
                new = follower in before and _merged(before[follower], after)
                if new and follower not in waiting:
                    waiting.append(follower)
        for number, block in self.blocks.items():
            self._through(block, before[number], True)

    def _through(self, block: Block, start: DataflowState, tell: bool) -> DataflowState:
        story: DataflowState = dict(start[0]), dict(start[1])
        self._fence = None
        for ins in block.instructions:
            role = roles(ins)
            if role.row.queue == "product":
                self._wgmma(ins, role, story, block.number, tell)
            elif id(role.row) in _MOVES:
                self._move(ins, role, story, block.number, tell)
            elif not self.related.isdisjoint((*role.reads, *role.writes)):
                self._touch(ins, role, story, block.number, tell)
        return story

    def _wgmma(
        self,
        ins: Instruction,
        role: DecodedInstruction,
        story: DataflowState,
        block: int,
        tell: bool,
    ) -> None:
        under_way, touched = story
        if role.row.asynchronous:
            given = role.sources[0] if role.sources else None
            pending = given.value if isinstance(given, Imm) else None
            for name, entries in under_way.items():
                if pending is None:
                    aged = ((w, i, min(age + 1, OLDEST)) for w, i, age in entries)
                    under_way[name] = frozenset(aged)
                else:
                    under_way[name] = frozenset(e for e in entries if e[2] < pending)
            return
        if not role.row.warpgroup:
            touched.clear()
            self._fence = ins
            return
        number = self.numbers[id(ins)]
        sums, parts = _names(ins.operands[0]), _names(ins.operands[1])
        if tell:
            mine = _accumulators(ins)
            known = {e for name in sums for e in under_way.get(name, _NONE) if e[1] >= 0
                     and _accumulators(self.found[e[0]].instruction) != mine}  # fmt: skip
            known |= {e for name in parts for e in under_way.get(name, _NONE) if e[1] >= 0}
            who = {n for name in (*sums, *parts) for n in touched.get(name, frozenset())}
            who = {n for n in who if self._really(self._touching[n].instruction, ins)}
            touches = tuple(sorted(self._add(self._touching[n]) for n in who))
            self.found[number] = replace(
                self.found[number], ages=_ages(known), writes=True, touches=touches
            )
        for place, name in enumerate(sums):
            earlier = under_way.get(name, _NONE) if ins.guard else _NONE
            under_way[name] = earlier | {(number, place, OPEN)}
            if not ins.guard:
                touched.pop(name, None)
        for place, name in enumerate(parts):
            under_way[name] = under_way.get(name, _NONE) | {(number, -1 - place, OPEN)}

    def _really(self, touch: Instruction, product: Instruction) -> bool:
        """Whether an access after a fence is the program's, not arithmetic moved by the compiler.

        In the latter case the source has it before the fence.
        """
        fence = self._behind.get(id(touch))
        if fence is None or touch.location is None:
            return True
        return _position(fence) < _position(touch) < _position(product)

    def _move(
        self,
        ins: Instruction,
        role: DecodedInstruction,
        story: DataflowState,
        block: int,
        tell: bool,
    ) -> None:
        under_way, touched = story
        targets = self.related.intersection(role.writes)
        if not targets:
            return
        guard = {ins.guard.name} if ins.guard else set()
        sources = set(role.reads) - guard
        given = {e for name in sources for e in under_way.get(name, _NONE) if e[1] >= 0}
        story_of = {n for name in sources for n in touched.get(name, frozenset())}
        lost = {e for name in targets for e in under_way.get(name, _NONE) if e[1] >= 0} - given
        if tell and lost:  # of what has been moved elsewhere, nothing is lost
            rest = (entries for name, entries in under_way.items() if name not in targets)
            lost -= {e for entries in rest for e in entries}
            if lost:
                self._add(WgmmaRegisterUse(ins, block, "touch", True, _ages(lost)))
        for name in targets:
            earlier, before = under_way.get(name, _NONE), touched.get(name, frozenset())
            under_way[name] = frozenset(given) | (earlier if ins.guard else _NONE)
            touched[name] = frozenset(story_of) | (before if ins.guard else frozenset())

    def _touch(
        self,
        ins: Instruction,
        role: DecodedInstruction,
        story: DataflowState,
        block: int,
        tell: bool,
    ) -> None:
        under_way, touched = story
        reads, writes = (
            self.related.intersection(role.reads),
            self.related.intersection(role.writes),
        )
        read = {e for name in reads for e in under_way.get(name, _NONE) if e[1] >= 0}
        changed = {e for name in writes for e in under_way.get(name, _NONE)}
        if ins.location:  # what A's registers hold next, a compiler may make before the wait
            changed = {e for e in changed if e[1] >= 0}
        if tell and (read or changed):
            fragments_of = frozenset(w for w, place, _ in changed if place < 0)
            flight = WgmmaRegisterUse(
                ins, block, "touch", not read, _ages(read | changed), fragments_of
            )
            number = self._add(flight)
            self.found[number] = flight
        self._touching[id(ins)] = WgmmaRegisterUse(ins, block, "touch", bool(writes))
        if self._fence:
            self._behind[id(ins)] = self._fence
        one = frozenset({id(ins)})
        if role.row.memory in ("store", "atomic"):  # no compiler takes that across a fence
            for name in reads:
                touched[name] = touched.get(name, frozenset()) | one
        for name in writes:
            under_way[name] = under_way.get(name, _NONE) if ins.guard else _NONE
            touched[name] = one | (touched.get(name, frozenset()) if ins.guard else frozenset())


def _position(ins: Instruction) -> list[tuple[int, int]]:
    """Return the source position of an instruction, outermost call first."""
    chain = ins.location.chain if ins.location else ()
    return [(at.line, at.column) for at in reversed(chain)]


def _merged(into: DataflowState, other: DataflowState) -> bool:
    """Merge a state into another; return whether it changed."""
    new = [_added(into[0], other[0]), _added(into[1], other[1])]
    return any(new)


def _added(into: dict[str, frozenset[Fact]], other: dict[str, frozenset[Fact]]) -> bool:
    new = False
    for name, more in other.items():
        known = into.get(name, frozenset())
        if not more <= known:
            into[name], new = known | more, True
    return new


def _ages(entries: set[Entry]) -> dict[int, frozenset[int]]:
    return {
        w: frozenset(e[2] for e in entries if e[0] == w) for w in sorted({e[0] for e in entries})
    }


def _names(operand: Operand | None) -> list[str]:
    """Return the registers of a matrix, in order."""
    items = operand.items if isinstance(operand, Vector) else ()
    return [item.name for item in items if isinstance(item, Reg)]


def _accumulators(ins: Instruction) -> tuple[int, str]:
    """Return shape and type of D."""
    return fragments.shape(ins.modifiers).n, fragments.kinds(ins.modifiers)[0]


def _related(blocks: Sequence[Block]) -> set[str]:
    """Return the registers of all ``wgmma``, and those connected to them by moves."""
    found: set[str] = set()
    moves: list[set[str]] = []
    for block in blocks:
        for ins in block.instructions:
            row = roles(ins).row
            if row.warpgroup:
                found |= {name for operand in ins.operands[:2] for name in _names(operand)}
            elif id(row) in _MOVES:
                moves.append(set(_moved(ins)))
    more = True
    while more:
        more = False
        for names in moves:
            if names & found and not names <= found:
                found |= names
                more = True
    return found


def _moved(ins: Instruction) -> Iterator[str]:
    for operand in ins.operands:
        if isinstance(operand, Reg):
            yield operand.name
        yield from _names(operand)
