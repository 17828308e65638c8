"""Barriers put into a PTX text and taken out of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection

from kernels import Kernel

_BARRIER = re.compile(r"(@!?%?[\w$]+\s+)?\b(bar|barrier)\b[^;{}]*;")


def with_barriers(kernel: Kernel, before: Collection[int]) -> Kernel:
    """The kernel with ``bar.sync 0`` before each of some PTX lines (from 1)."""
    lines = kernel.ptx.split("\n")
    for number in sorted(before, reverse=True):
        lines.insert(number - 1, "\tbar.sync 0;")
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
