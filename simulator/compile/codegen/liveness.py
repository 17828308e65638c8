"""Which registers lanes still need where they wait: what others run meanwhile need not keep more.

A result under a mask is merged with what the lanes that are off have. Where these never read it
again it just replaces that: it costs nothing, and addresses that a branch or a ragged edge guards
stay as regular as those of whole blocks.
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
    """Of a program, the registers that are read from each block on.

    Those that lanes read of each other count as read everywhere.

    Args:
        blocks: All of one function; none: nothing is known, and all are needed everywhere.
        private: Names of those that no other function has.
        numbers: Of the registers, by name.
    """

    def __init__(
        self, blocks: Sequence[Block], private: Container[str], numbers: dict[str, int]
    ) -> None:
        self.blocks, self.private, self.numbers = blocks, private, numbers
        self._by_places: dict[frozenset[int], frozenset[int]] = {}

    def live_at(self, places: Collection[int]) -> Container[int]:
        """What lanes that wait in front of some blocks need."""
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
        """What other functions have too, and what lanes may read of others."""
        asking = (block.instructions[0] for block in self.blocks if _reads_across_lanes(block))
        asked = {name for ins in asking for name in roles(ins).reads}
        return {n for name, n in self.numbers.items() if name in asked or name not in self.private}


def _reads_across_lanes(block: Block) -> bool:
    """Return whether the block begins with an instruction that reads registers across lanes.

    ``basic_blocks.split`` begins a block at each of these.
    """
    return bool(block.instructions) and roles(block.instructions[0]).row.gate
