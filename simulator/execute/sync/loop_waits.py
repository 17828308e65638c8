"""Loops that may wait for other warps: only where there are any does a batch need fairness."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

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
    call. A weak read is a wait only if the loop may spin.
    """
    loads = {id(s.instruction) for s in sites if s.access == "load" and not (s.strong or s.order)}
    hard = _reads(blocks, sites) - loads
    return may_spin(blocks, sites) or _any_loop(
        blocks, lambda some, head, body: not hard.isdisjoint(_exit_reads(some, body, hard)[0])
    )


def may_spin(blocks: Sequence[CompiledBlock], sites: Collection[Site]) -> bool:
    """Return whether a loop may repeat with equal registers until something else changes.

    It may if its exits depend on what it reads, and on no counter to which each round adds a
    constant.
    """
    reads = _reads(blocks, sites)
    return _any_loop(blocks, lambda some, head, body: _spins(some, head, body, reads))


def _reads(blocks: Sequence[CompiledBlock], sites: Collection[Site]) -> set[int]:
    """Return the instructions, by identity, whose results do not depend on registers alone."""
    fixed = {id(s.instruction) for s in sites if s.access == "load" and s.space in _FIXED}
    found = {id(s.instruction) for s in sites} - fixed
    found |= {id(step.instruction) for b in blocks for step in b.steps if type(step) is WarpCompute}
    found |= {id(ins) for b in blocks for ins in b.block.instructions if calls(ins)}
    return found | {id(b.block.end) for b in blocks if b.block.end is not None and b.reduction}


def _any_loop(
    blocks: Sequence[CompiledBlock],
    test: Callable[[Sequence[CompiledBlock], int, Collection[int]], bool],
) -> bool:
    """Return whether a test holds for a loop, given as its function's blocks, head and body."""
    functions: dict[str, list[CompiledBlock]] = {}
    for block in blocks:
        functions.setdefault(block.block.function.name, []).append(block)
    for some in functions.values():
        loops = loops_of([b.block for b in some])
        for block in some:
            for to in successors(block.block):
                if 0 <= to <= block.number and block.number not in loops.get(to, ()):
                    return True  # a cycle that is no natural loop
        if any(test(some, head, body) for head, body in loops.items()):
            return True
    return False


def _exit_reads(
    blocks: Sequence[CompiledBlock], body: Collection[int], reads: Collection[int]
) -> tuple[set[int], set[str]]:
    """Return which of some instructions a loop's exits depend on, and on which registers."""
    inside = [b for b in blocks if b.number in body]
    instructions = [ins for b in inside for ins in b.block.instructions]
    needed = {
        name
        for b in inside
        if b.block.end is not None and set(successors(b.block)) - set(body)
        for name in roles(b.block.end).reads
    }
    found, size = set[int](), -1
    while size != len(needed):
        size = len(needed)
        for ins in instructions:
            if not needed.isdisjoint(roles(ins).writes):
                if id(ins) in reads:
                    found.add(id(ins))
                needed.update(roles(ins).reads)
    return found, needed


def _spins(
    blocks: Sequence[CompiledBlock], head: int, body: Collection[int], reads: Collection[int]
) -> bool:
    """Return whether a loop's exits depend on reads, and on no counter."""
    found, needed = _exit_reads(blocks, body, reads)
    if not found:
        return False
    inside = [b for b in blocks if b.number in body]
    instructions = [(b.number, ins) for b in inside for ins in b.block.instructions]
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
