"""Loops that may wait for other warps: only where there are any does a batch need fairness."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernels.ptx.module import Imm, Instruction, Reg

from ...compile.cfg.basic_blocks import successors
from ...compile.cfg.cfg import loops_of
from ...compile.ir import WarpCompute
from ...compile.program import CompiledBlock
from ...isa.decoded import calls, roles
from ...memory.site import Site

_FIXED = ("const", "param")


def may_wait(blocks: Sequence[CompiledBlock], sites: Collection[Site]) -> bool:
    """Return whether a loop may run until another warp does something.

    It may if an exit depends on what the loop reads: by a strong read, from other lanes, or by a
    call. A weak read is a wait only if nothing else ends the loop: where an exit depends on a
    counter, too, to which each round adds a constant, the loop ends by itself, and its registers
    are never the same again.
    """
    weak = {id(s.instruction) for s in sites if s.access == "load" and not (s.strong or s.order)}
    fixed = {id(s.instruction) for s in sites if s.access == "load" and s.space in _FIXED}
    hard = {id(s.instruction) for s in sites} - weak
    hard |= {id(step.instruction) for b in blocks for step in b.steps if type(step) is WarpCompute}
    hard |= {id(ins) for b in blocks for ins in b.block.instructions if calls(ins)}
    hard |= {id(b.block.end) for b in blocks if b.block.end is not None and b.reduction}
    functions: dict[str, list[CompiledBlock]] = {}
    for block in blocks:
        functions.setdefault(block.block.function.name, []).append(block)
    return any(_may_wait(some, hard, weak - fixed) for some in functions.values())


def _may_wait(
    blocks: Sequence[CompiledBlock], hard: Collection[int], weak: Collection[int]
) -> bool:
    loops = loops_of([b.block for b in blocks])
    for block in blocks:
        for to in successors(block.block):
            if 0 <= to <= block.number and block.number not in loops.get(to, ()):
                return True  # a cycle that is no natural loop
    return any(_waits(blocks, head, body, hard, weak) for head, body in loops.items())


def _waits(
    blocks: Sequence[CompiledBlock], head: int, body: Collection[int], hard: Collection[int],
    weak: Collection[int],
) -> bool:  # fmt: skip
    """Return whether a loop may wait; ``hard``, ``weak``: instructions that read, by identity."""
    inside = [b for b in blocks if b.number in body]
    instructions = [(b.number, ins) for b in inside for ins in b.block.instructions]
    needed = {
        name
        for b in inside
        if b.block.end is not None and set(successors(b.block)) - set(body)
        for name in roles(b.block.end).reads
    }
    reads, size = False, -1
    while size != len(needed):
        size = len(needed)
        for _, ins in instructions:
            if not needed.isdisjoint(roles(ins).writes):
                if id(ins) in hard:
                    return True
                reads |= id(ins) in weak
                needed.update(roles(ins).reads)
    if not reads:
        return False
    ways = {b.number: [n for n in successors(b.block) if n in body] for b in inside}
    return not any(_counts(name, instructions, ways, head) for name in needed)


def _counts(
    name: str, instructions: Sequence[tuple[int, Instruction]], ways: dict[int, list[int]],
    head: int,
) -> bool:  # fmt: skip
    """Return whether each round of a loop adds one constant to a register."""
    at, added = name, False
    for _ in range(4):  # through copies
        writers = [(number, ins) for number, ins in instructions if at in roles(ins).writes]
        if len(writers) != 1 or writers[0][1].guard is not None:
            return False
        number, ins = writers[0]
        if not _each_round(number, ways, head):
            return False
        row, last = roles(ins).row, ins.operands[-1]
        if row.of_address == "sum" and isinstance(last, Imm) and last.value and not added:
            added = True
        elif not row.copies:
            return False
        source = ins.operands[1]
        if not isinstance(source, Reg):
            return False
        at = source.name
        if at == name:
            return added
    return False


def _each_round(number: int, ways: dict[int, list[int]], head: int) -> bool:
    """Return whether each round of a loop executes one of its blocks."""
    if number == head:
        return True
    todo, found = [head], {head, number}
    while todo:
        for to in ways[todo.pop()]:
            if to == head:
                return False
            if to not in found:
                found.add(to)
                todo.append(to)
    return True
