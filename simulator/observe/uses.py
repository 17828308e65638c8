"""Where undefined bits are used: they steer the run, or a result is made of them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernels.ptx.module import Instruction

from ..compile.program import Program
from ..events import Observer
from ..execute.prepare import Prepared
from ..geometry import Flat, Lanes, Mask, as_mask
from ..memory.bulk import Moved
from ..memory.layout import HEAP, array_number
from ..memory.site import Site
from ..memory.undefined import UndefinedMemory

_ALIGNED = 8
"""Alignment of a structure, at least: its padding is shorter, what is longer are members."""
_PRINTED = 10_000
"""Texts of one call of ``printf`` that are looked at."""

_TOGETHER = 1024
"""Threads whose execution of a block takes about as long as what there is to do for one."""
_LONG = 32
"""Lines of Python that make a block count for one more: an unrolled loop has thousands."""


class UseFinder(Observer):
    """Observer of a program with shadows (``compile.undefined``).

    Attributes:
        work: How long the run takes, about: blocks executed, more for long ones and many threads.
    """

    def __init__(self, program: Program, memory: UndefinedMemory) -> None:
        self.program, self.memory = program, memory
        self.steered, self.prints, self.block = set[int](), set[int](), 0
        self.work = 0
        self.costs = [1 + len(block.body.lines) // _LONG for block in program.blocks]

    def ran(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.block = block
        self.work += self.costs[block] * (1 + threads // _TOGETHER)

    def forgotten(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """See ``Observer``."""
        self.memory.forgotten(lanes, places)

    def moved(self, site: Site, moved: Sequence[Moved]) -> None:
        """See ``Observer``."""
        self.memory.moved(site, moved)

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """See ``Observer``; a text that is made looks at the numbers in it."""
        self.memory.printed = False
        for _ in itertools.islice(texts, min(count, _PRINTED)):
            if self.memory.printed:
                self.prints.add(self.block)
                break

    def traced(self, number: int, lanes: Mask | None, base: Any, *values: Lanes) -> None:
        """See ``Observer``; the values are shadows."""
        on = as_mask(lanes)
        if number not in self.steered and any((on & (bits != 0)).any() for bits in values):
            self.steered.add(number)

    def uses(self, launch: Prepared) -> list[Instruction]:
        """The instructions that use undefined values, after the launch."""
        sites = self.program.sites
        found = [self.program.uses[number] for number in sorted(self.steered)]
        found += [self.program.blocks[n].block.instructions[-1] for n in sorted(self.prints)]
        for number, stores in self.memory.stores.items():
            if number == HEAP:  # nobody else sees it
                continue
            content = self.memory.copied.allocations[number].content()
            if _any_result(launch, number, content):
                found += [sites[n].instruction for n in sorted(stores)]
        return found


def _any_result(launch: Prepared, number: int, bits: Flat) -> bool:
    """Whether an array's undefined bits are more than the padding of structures."""
    arguments = launch.arguments
    if number < len(arguments.arrays) and number not in arguments.structures:
        dtype = arguments.arrays[number].dtype
        return bool((bits.reshape(-1, dtype.itemsize) * _members(dtype)).any())
    placed = launch.program.layout.placed.values()
    kinds = {
        array_number(p.address): p.variable.type for p in placed if p.variable.space == "global"
    }
    if kinds.get(number, "b8") != "b8":
        return bool(bits.any())
    stores = (site.nbytes for site in launch.program.sites if site.access == "store")
    edges = np.flatnonzero(np.diff((bits == 255).astype(np.int8), prepend=0, append=0))
    return bool((edges[1::2] - edges[::2] >= max(_ALIGNED, *stores)).any())


def _members(dtype: Any) -> Flat:
    """Ones for the bytes of an element that belong to a field, zeros for padding."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.tile(_members(base), int(np.prod(shape)))
    found = np.zeros(dtype.itemsize, np.uint8)
    if dtype.fields is None:
        found[:] = 1
    else:
        for kind, offset, *_ in dtype.fields.values():
            found[offset : offset + kind.itemsize] |= _members(kind)
    return found
