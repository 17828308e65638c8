"""Barriers put into a PTX text and taken out of it."""

import dataclasses
import re
from collections.abc import Collection

from kernels import Kernel

_BARRIER = re.compile(r"(@!?%?[\w$]+\s+)?\b(bar|barrier)\b[^;{}]*;")


_LABELS = re.compile(r"^\s*([\w$%]+\s*:\s*)*")


BARRIER = "bar.sync 0;"


def with_barriers(kernel: Kernel, before: Collection[int], text: str = BARRIER) -> Kernel:
    """The kernel with a text in front of the instruction on each of some PTX lines.

    All lines keep their numbers (from 1), so that hazards before and after compare.
    """
    lines = kernel.ptx.split("\n")
    for number in set(before):
        lines[number - 1] = _LABELS.sub(rf"\g<0>\t{text} ", lines[number - 1], count=1)
    return dataclasses.replace(kernel, ptx="\n".join(lines))


def without_barriers(kernel: Kernel, at: Collection[int]) -> Kernel:
    """The kernel without the barrier instruction on each of some PTX lines.

    Raises:
        ValueError: There is no barrier on that line.
    """
    lines = kernel.ptx.split("\n")
    for number in at:
        text, times = _BARRIER.subn("", lines[number - 1], count=1)
        if not times:
            raise ValueError(f"no barrier on PTX line {number}")
        lines[number - 1] = text
    return dataclasses.replace(kernel, ptx="\n".join(lines))
