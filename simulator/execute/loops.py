"""Loops that lanes go round for themselves."""

from collections.abc import Container, Sequence

from ..compile.flow import loops_of
from ..compile.program import CompiledBlock
from ..compile.steps import Access, Compute, Keep, Move, Tally
from ..geometry import WARP


def own_loops(blocks: Sequence[CompiledBlock], others: Container[int]) -> dict[int, frozenset[int]]:
    """For each block in a loop whose lanes have to do with others' only through memory: that loop.

    As the numbers of its blocks; the outermost one. ``others``: blocks that no such loop has.
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
    if block.ends not in ("goto", "branch") or block.gate is not None:
        return False
    return all(
        type(step) in (Compute, Move, Keep, Tally)
        or (type(step) is Access and step.site.lanes == WARP and not step.site.order)
        for step in block.steps
    )
