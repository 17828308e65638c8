"""Loops whose lanes are independent of each other, and endless loops."""

from collections.abc import Callable, Container, Iterable, Sequence

from kernels.ptx.module import Instruction

from ...compile.cfg.basic_blocks import EXIT
from ...compile.cfg.cfg import loops_of
from ...compile.ir import Compute, CountLanes, MemoryOp, Move, SavePredicate
from ...compile.program import CompiledBlock
from ...core.geometry import WARP
from ...isa.decoded import callee, roles
from ...memory.site import Site


def own_loops(blocks: Sequence[CompiledBlock], others: Container[int]) -> dict[int, frozenset[int]]:
    """Return for each block the outermost loop whose lanes interact only through memory.

    Loops are sets of block numbers. ``others``: blocks that no such loop contains.
    """
    plain = {b.number for b in blocks if b.number not in others and _plain(b)}
    functions: dict[str, list[CompiledBlock]] = {}
    for block in blocks:
        functions.setdefault(block.block.function.name, []).append(block)
    about: dict[int, frozenset[int]] = {}
    for members in functions.values():
        loops = [m for m in loops_of([b.block for b in members]).values() if m <= plain]
        for loop in sorted(loops, key=len, reverse=True):
            for number in loop:
                about.setdefault(number, frozenset(loop))
    return about


def _plain(block: CompiledBlock) -> bool:
    if block.terminator_kind not in ("goto", "branch") or block.gate is not None:
        return False
    return all(
        type(step) in (Compute, Move, SavePredicate, CountLanes)
        or (type(step) is MemoryOp and step.site.lanes == WARP and not step.site.order)
        for step in block.steps
    )


def endless(
    all_blocks: Sequence[CompiledBlock], sites: Iterable[Site], after: Sequence[Sequence[int]],
    number: int, among: set[int] | None,
) -> list[Instruction]:  # fmt: skip
    """Return the instructions of the loop around a block, polling ones first.

    ``after``: successors of each block. ``among``: blocks that the loop may contain; ``None``: any.
    """
    before: dict[int, list[int]] = {}
    for at, ways in enumerate(after):
        for to in ways:
            before.setdefault(to, []).append(at)

    def reached(step: Callable[[int], Iterable[int]]) -> set[int]:
        found, todo = {number}, [number]
        while todo:
            for to in step(todo.pop()):
                if to != EXIT and to not in found and (among is None or to in among):
                    found.add(to)
                    todo.append(to)
        return found

    loop = reached(lambda n: after[n]) & reached(lambda n: before.get(n, []))
    blocks = [all_blocks[n] for n in sorted(loop)]
    instructions = [ins for block in blocks for ins in block.block.instructions]
    inside = [s for s in sites if s.block in loop and s.counted]
    polls = [s for s in inside if s.access != "store" and s.space not in ("local", "const")]
    polls.sort(key=lambda s: roles(s.instruction).row.phase != "wait")
    first = [s.instruction for s in polls if s.instruction.location]
    functions = {s.function for s in polls}  # without lines, as NVRTC's own: where it is called
    first += [i for i in instructions if callee(i) in functions]
    return first + sorted(instructions, key=lambda ins: ins.location is None)
