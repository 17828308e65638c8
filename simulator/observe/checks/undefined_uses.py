"""Uses of undefined bits: they control execution, or a result depends on them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from kernels.ptx.module import Instruction

from ...compile.program import Program
from ...core.geometry import Flat, Lanes, Mask, as_mask
from ...events import Observer
from ...execute.prepare import PreparedLaunch
from ...memory.bulk.bulk_copy import BulkTransfer
from ...memory.definedness import DefinednessMemory
from ...memory.site import Site
from ...memory.storage.layout import HEAP
from .padding import Members, may_be_padding, undefined_members

_PRINTED = 10_000
"""Texts of one call of ``printf`` that are looked at."""

_TOGETHER = 1024
"""Threads whose execution of a block takes about as long as what there is to do for one."""
_LONG = 32
"""Lines of Python that make a block count for one more: an unrolled loop has thousands."""


class UseFinder(Observer):
    """Observer of a program with V bits (``compile.passes.definedness``).

    Attributes:
        work: Approximate cost of the run: executed blocks, weighted by length and threads.
        assumed: Arrays whose undefined bits count as padding although their type is unknown.
    """

    def __init__(self, program: Program, memory: DefinednessMemory) -> None:
        self.program, self.memory = program, memory
        self.control_uses, self.prints, self.block = set[int](), set[int](), 0
        self.work = 0
        self.assumed = set[str]()
        self.costs = [1 + len(block.body.lines) // _LONG for block in program.blocks]

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.block = block
        self.work += self.costs[block] * (1 + threads // _TOGETHER)

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """See ``Observer``."""
        self.memory.frame_cleared(lanes, places)

    def bulk_copied(self, site: Site, moved: Sequence[BulkTransfer]) -> None:
        """See ``Observer``."""
        self.memory.bulk_copied(site, moved)

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """See ``Observer``; formatting a text uses its numbers."""
        self.memory.printed = False
        for _ in itertools.islice(texts, min(count, _PRINTED)):
            if self.memory.printed:
                self.prints.add(self.block)
                break

    def traced(self, number: int, lanes: Mask | None, base: Any, *values: Lanes) -> None:
        """See ``Observer``; the values are V bits."""
        on = as_mask(lanes)
        if number not in self.control_uses and any((on & (bits != 0)).any() for bits in values):
            self.control_uses.add(number)

    def uses(
        self, launch: PreparedLaunch, undefined: dict[int, Flat] | None = None
    ) -> list[Instruction]:
        """Return the instructions that use undefined values, after the launch.

        Args:
            launch: The launch.
            undefined: Of arrays of no known type, the undefined bits in the first run, in which
                every read counts: entered by that run.

        Raises:
            UntypedArray: The element structure of an array has to be derived from its stores.
        """
        sites = self.program.sites
        found = [self.program.uses[number] for number in sorted(self.control_uses)]
        found += [self.program.blocks[n].block.instructions[-1] for n in sorted(self.prints)]
        members = Members(launch)
        for number, stores in self.memory.stores.items():
            if number == HEAP:  # nobody else sees it
                continue
            array = self.memory.copied.allocations[number]
            bits = array.content()
            if not bits.any():
                continue
            known = members.of(number)
            if known is not None:
                is_result = undefined_members(known, bits)
            elif number not in self.memory.written:
                raise UntypedArray(number)
            else:
                first = bits if undefined is None else undefined.setdefault(number, bits)
                is_result = not may_be_padding(self.memory.written[number], bits, first)
                if not is_result:
                    self.assumed.add(array.name)
            if is_result:
                found += [sites[n].instruction for n in sorted(stores)]
        return found


class UntypedArray(Exception):
    """Undefined bits remain in an array of unknown type."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
