"""Barriers put into a PTX text and taken out of it."""

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterator

from kernels import Kernel
from kernels.ptx.header import strip_comments
from kernels.ptx.module import Instruction

from ...compile.cfg.basic_blocks import reachable
from ...isa import Flow, parse
from ...isa.decoded import roles

BARRIER = "bar.sync 0;"


def with_barriers(kernel: Kernel, before: Collection[int], text: str = BARRIER) -> Kernel:
    """The kernel with a text in front of the first instruction on each of some PTX lines.

    All lines keep their numbers (from 1), so that hazards before and after compare.
    """
    first: dict[int, int] = {}
    for ins in _instructions(kernel):
        first[ins.line] = min(ins.at, first.get(ins.line, ins.at))
    ptx = kernel.ptx
    for at in sorted((first[line] for line in set(before)), reverse=True):
        ptx = f"{ptx[:at]}{text} {ptx[at:]}"
    return dataclasses.replace(kernel, ptx=ptx)


def without_barriers(kernel: Kernel, at: Collection[int]) -> Kernel:
    """The kernel without the barrier instruction that begins on each of some PTX lines.

    A line that is named twice has two of them.

    Raises:
        ValueError: There is none there.
    """
    ptx, plain, wanted = kernel.ptx, strip_comments(kernel.ptx), Counter(at)
    for ins in sorted(_instructions(kernel), key=lambda ins: ins.at):
        if is_barrier(ins) and wanted[ins.line]:
            wanted[ins.line] -= 1
            end = plain.index(";", ins.at) + 1
            gone = re.sub(r"[^\n]", " ", plain[ins.at : end])
            ptx = ptx[: ins.at] + gone + ptx[end:]
    for number in wanted.elements():
        raise ValueError(f"no barrier on PTX line {number}")
    return dataclasses.replace(kernel, ptx=ptx)


def is_barrier(ins: Instruction) -> bool:
    """Whether threads of a block, a cluster or a warp meet there."""
    role = roles(ins)
    return role.flow is Flow.BARRIER or role.row.warp_barrier


def _instructions(kernel: Kernel) -> Iterator[Instruction]:
    """As they stand in the text; a function may be there several times, for its callers."""
    visited: set[int] = set()
    for function in reachable(parse(kernel.ptx), kernel.entry):
        for ins in function.body:
            if ins.at and ins.at not in visited:
                visited.add(ins.at)
                yield ins
