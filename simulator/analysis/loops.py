"""Natural loops of a program, with their surroundings."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..compile.cfg.basic_blocks import Block, successors
from ..compile.cfg.cfg import BlockReachability, loops_of, single_exit_loops
from ..isa.decoded import callee


class NaturalLoop(NamedTuple):
    """A natural loop, with its exits, its callees and the branches that decide on it."""

    blocks: set[int]
    out: set[int]
    inside: set[int]
    deciders: set[int]


class Loops:
    """Loops of all functions; ``decide``: returns the branches that control a block."""

    def __init__(
        self, blocks: Sequence[Block], paths: BlockReachability, decide: Callable[[int], set[int]]
    ) -> None:
        self.blocks, self.paths, self._decide = blocks, paths, decide

    @functools.cached_property
    def exits(self) -> frozenset[int]:
        """Blocks whose branch decides whether a loop continues."""
        return frozenset(
            number
            for loop in self._found
            for number in loop
            if any(to not in loop for to in successors(self.blocks[number]) or [-1])
        )

    @functools.cached_property
    def all(self) -> list[NaturalLoop]:
        """All loops."""
        made = []
        for loop in self._found:
            terminators = [end for number in loop if (end := self.blocks[number].end)]
            inside = loop.union(*map(self.paths.inside, {callee(end) for end in terminators}))
            out = {to for number in loop for to in successors(self.blocks[number])} - loop
            made.append(NaturalLoop(loop, out, inside, set().union(*map(self._decide, loop))))
        return made

    @functools.cached_property
    def _found(self) -> list[set[int]]:
        found: list[set[int]] = []
        for function in {block.function.name: block.function for block in self.blocks}.values():
            blocks = [block for block in self.blocks if block.function is function]
            found += loops_of(blocks).values()
            found += [loop for loop in single_exit_loops(blocks) if loop not in found]
        return found
