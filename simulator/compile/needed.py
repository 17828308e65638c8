"""Which registers lanes still need where they wait: what others run meanwhile need not keep more.

A result under a mask is merged with what the lanes that are off have. Where these never read it
again it just replaces that: it costs nothing, and addresses that a branch or a ragged edge guards
stay as regular as those of whole blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING

from kernels.ptx.module import Instruction

from ..isa.roles import roles
from .steps import WarpCompute

if TYPE_CHECKING:
    from .program import CompiledBlock

ALL: Container[int] = range(1 << 62)
"""All registers."""
_MOST = 1 << 12
"""Sets of places that are remembered."""


class Needed:
    """Of a program, the registers that are read from each block on.

    Those that lanes read of each other count as read everywhere.

    Args:
        blocks: All of one function; none: nothing is known, and all are needed everywhere.
        private: Names of those that no other function has.
        numbers: Of the registers, by name.
    """

    def __init__(
        self, blocks: Sequence[CompiledBlock], private: Container[str], numbers: dict[str, int]
    ) -> None:
        self.blocks, self.private, self.numbers = blocks, private, numbers
        self._by_places: dict[frozenset[int], frozenset[int]] = {}

    def by(self, places: Collection[int]) -> Container[int]:
        """What lanes that wait in front of some blocks need."""
        if not self.blocks:
            return ALL
        key = frozenset(places)
        found = self._by_places.get(key)
        if found is None:
            if len(self._by_places) > _MOST:
                self._by_places.clear()
            names = set[str]().union(*(self.blocks[n].block.live_in for n in key))
            numbers = (self.numbers[name] for name in names if name in self.numbers)
            found = self._by_places[key] = frozenset(numbers) | self._always
        return found

    @functools.cached_property
    def _always(self) -> set[int]:
        """What other functions have too, and what lanes may read of others."""
        asking = (ins for b in self.blocks for ins in _across(b))
        asked = {name for ins in asking for name in roles(ins).reads}
        return {n for name, n in self.numbers.items() if name in asked or name not in self.private}


def _across(block: CompiledBlock) -> list[Instruction]:
    """The block's instructions that look across lanes."""
    found = [step.instruction for step in block.steps if isinstance(step, WarpCompute)]
    return [*found, block.block.instructions[0]] if block.gate else found
