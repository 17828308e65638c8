"""Reads of local memory that nothing wrote: which of them does the launch depend on?

A compiler may copy a structure whole, padding and unset members included, or set a bit
field in a word that holds nothing yet: correct code, above all in the unoptimised build.
So such a read counts where it decides on a branch or an address, or where the launch's
outcome changes with what the memory happens to hold: that is tried out.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..compile.program import Program
from .taint import steers

_FILLS = (0xFF, 0x55, 0xAA)
"""Bytes that stand for "anything", beside the zeros of the launch itself."""

Outcome = Callable[[Mapping[int, int]], Any]
"""Runs the launch with some bytes of every thread's local memory set at the start (value by
address); gives something that is equal where control flow and results are."""


def without_effect(
    program: Program, reads: Mapping[int, set[int]], granule: int, outcome: Outcome
) -> set[int]:
    """The sites whose reads of unwritten local memory change nothing.

    Args:
        program: The kernel.
        reads: By site number, the addresses that were read unwritten.
        granule: Bytes that each address stands for.
        outcome: Runs the launch once more.
    """
    left = {n for n in reads if not steers(program, program.sites[n].instruction)}
    if not left:
        return set()
    usual = outcome({})

    def matters(sites: set[int]) -> bool:
        places = {a + i for n in sites for a in reads[n] for i in range(granule)}
        return any(outcome(dict.fromkeys(places, fill)) != usual for fill in _FILLS)

    if not matters(left):
        return left
    return {n for n in left if not matters({n})}
