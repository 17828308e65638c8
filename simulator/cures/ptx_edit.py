"""Barriers put into a PTX text and taken out of it."""

import dataclasses
import re
from collections.abc import Collection

from kernels import Kernel
from kernels.ptx.header import strip_comments

_BARRIER = re.compile(r"(@!?\s*%?[\w$]+\s+)?(?<![\w$%.])(bar|barrier)\.[^;{}\"]*;")
_LABELS = re.compile(r"\s*([\w$%]+\s*:\s*)*")

BARRIER = "bar.sync 0;"


def with_barriers(kernel: Kernel, before: Collection[int], text: str = BARRIER) -> Kernel:
    """The kernel with a text in front of the instruction on each of some PTX lines.

    All lines keep their numbers (from 1), so that hazards before and after compare.
    """
    ptx, plain = kernel.ptx, strip_comments(kernel.ptx)
    for number in sorted(set(before), reverse=True):
        at = _start(plain, number)
        labels = _LABELS.match(plain, at)
        at = labels.end() if labels else at
        ptx = f"{ptx[:at]}{text} {ptx[at:]}"
    return dataclasses.replace(kernel, ptx=ptx)


def without_barriers(kernel: Kernel, at: Collection[int]) -> Kernel:
    """The kernel without the barrier instruction that begins on each of some PTX lines.

    Raises:
        ValueError: There is no barrier on that line.
    """
    ptx, plain = kernel.ptx, strip_comments(kernel.ptx)
    for number in sorted(at, reverse=True):
        found = _BARRIER.search(plain, _start(plain, number))
        first = plain.count("\n", 0, found.start()) + 1 if found else 0
        if found is None or first != number:
            raise ValueError(f"no barrier on PTX line {number}")
        gone = re.sub(r"[^\n]", " ", found.group())
        ptx, plain = (t[: found.start()] + gone + t[found.end() :] for t in (ptx, plain))
    return dataclasses.replace(kernel, ptx=ptx)


def _start(plain: str, number: int) -> int:
    """Where the first instruction that begins on a line does; of a text without comments."""
    at = sum(len(line) + 1 for line in plain.split("\n", number - 1)[:-1])
    before = plain[:at].rstrip()
    last = before.rsplit("\n", 1)[-1].lstrip()
    begins = not before or before[-1] in ";{}:" or last.startswith((".loc", ".file"))
    return at if begins else plain.find(";", at) + 1
