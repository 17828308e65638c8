"""Live registers at divergence points.

A result under a mask is merged with the values of inactive lanes. If no inactive lane can read the
register again, the result replaces the whole array instead. That costs nothing, and addresses under
a branch or at a ragged edge stay as regular as those of whole blocks.
"""

import functools
from collections.abc import Collection, Container, Sequence

from ...isa.decoded import roles
from ..cfg.basic_blocks import Block

ALL: Container[int] = range(1 << 62)
"""All registers."""
_MAX_REGISTERS = 1 << 12
"""Sets of places that are remembered."""


class LiveRegisters:
    """Registers of a program that are live at each block.

    Registers that lanes read from each other are live everywhere.

    Args:
        blocks: All blocks of one function; if empty, every register is live everywhere.
        private: Names of registers that no other function uses.
        numbers: Numbers of the registers, by name.
    """

    def __init__(
        self, blocks: Sequence[Block], private: Container[str], numbers: dict[str, int]
    ) -> None:
        self.blocks, self.private, self.numbers = blocks, private, numbers
        self._by_places: dict[frozenset[int], frozenset[int]] = {}

    def live_at(self, places: Collection[int]) -> Container[int]:
        """Return the registers that lanes waiting at some blocks may read."""
        if not self.blocks:
            return ALL
        key = frozenset(places)
        found = self._by_places.get(key)
        if found is None:
            if len(self._by_places) > _MAX_REGISTERS:
                self._by_places.clear()
            names = set[str]().union(*(self.blocks[n].live_in for n in key))
            numbers = (self.numbers[name] for name in names if name in self.numbers)
            found = self._by_places[key] = frozenset(numbers) | self._always
        return found

    @functools.cached_property
    def _always(self) -> set[int]:
        """Return the registers of other functions, and those that lanes may read from others."""
        asking = (block.instructions[0] for block in self.blocks if _reads_across_lanes(block))
        asked = {name for ins in asking for name in roles(ins).reads}
        return {n for name, n in self.numbers.items() if name in asked or name not in self.private}


def _reads_across_lanes(block: Block) -> bool:
    """Return whether the block begins with an instruction that reads registers across lanes.

    ``basic_blocks.split`` begins a block at each of these.
    """
    return bool(block.instructions) and roles(block.instructions[0]).row.gate
