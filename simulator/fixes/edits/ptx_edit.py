"""Insertion and removal of barriers in PTX text."""

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
    """Return the kernel with a text before the first instruction of some PTX lines.

    Line numbers (from 1) do not change, so that hazards before and after are comparable.
    """
    first: dict[int, int] = {}
    for ins in _instructions(kernel):
        first[ins.line] = min(ins.at, first.get(ins.line, ins.at))
    ptx = kernel.ptx
    for at in sorted((first[line] for line in set(before)), reverse=True):
        ptx = f"{ptx[:at]}{text} {ptx[at:]}"
    return dataclasses.replace(kernel, ptx=ptx)


def without_barriers(kernel: Kernel, at: Collection[int]) -> Kernel:
    """Return the kernel without the barriers that begin on some PTX lines.

    A line that is given twice has two barriers.

    Raises:
        ValueError: There is no barrier on a line.
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
    """Whether an instruction is a barrier of a block, cluster or warp."""
    role = roles(ins)
    return role.flow is Flow.BARRIER or role.row.warp_barrier


def _instructions(kernel: Kernel) -> Iterator[Instruction]:
    """Yield instructions in text order; cloned functions appear once."""
    visited: set[int] = set()
    for function in reachable(parse(kernel.ptx), kernel.entry):
        for ins in function.body:
            if ins.at and ins.at not in visited:
                visited.add(ins.at)
                yield ins
