"""Which bits nothing has set, and whether an outcome is made of them: the reference's own account.

The rule (``docs/checks.md``, "Uninitialised values"): shared, local and uninitialised global memory
holds undefined bits until it is written, and so do a function's parameters. Loads, stores, moves,
shuffles and calls pass them on, bit by bit. Any other instruction's result is undefined in the bits
that some content of its operands' undefined bits changes, each operand for itself. A *use* is an
undefined bit in a guard, a branch's predicate or index, an address, a barrier's or a warp
instruction's numbers and mask, or what a compare-and-swap compares with; or one that is left in a
global array at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kernels.ptx.module import Instruction
from tests.oracles.interpreter.values import mask

Shadow = tuple[bytearray, bytearray]
"""Of some memory: bytes that nothing wrote, and undefined bits that were written."""


class Follow:
    """What a run does with undefined bits.

    Args:
        wanted: Lines of the PTX whose reads of uninitialised memory count; ``None``: of all.
        missing: Of each array argument, a byte each that is not 0 where it is unset; or ``None``.
        members: Of each array argument, the bits of an element that are no padding: what is left
            there is to be seen. ``None``, or beyond: all.

    Attributes:
        reads: Lines that read uninitialised memory; ``uses``: lines that use an undefined bit, and
            how; ``left``: whether some are left in a global array at the end; ``left_in``: in
            which, counted from 1.
    """

    def __init__(
        self, wanted: Collection[int] | None = None, missing: Collection[bytes | None] = (),
        members: Collection[bytes | None] = (),
    ) -> None:  # fmt: skip
        self.wanted, self.missing, self.members = wanted, tuple(missing), tuple(members)
        self.reads, self.uses = set[int](), set[tuple[int, str]]()
        self.left, self.left_in = False, set[int]()
        self.homes: dict[int, tuple[bytearray, bytearray, bytearray]] = {}

    @property
    def used(self) -> bool:
        """Whether anything that is to be seen is made of an undefined bit."""
        return self.left or bool(self.uses)

    def arrays(self, arrays: dict[int, bytearray]) -> None:
        """Global memory at the start."""
        self.globals = arrays
        for number, home in arrays.items():
            empty = bytearray(len(home))
            if number <= len(self.missing) and (missing := self.missing[number - 1]):
                empty[:] = missing
            self.homes[id(home)] = home, empty, bytearray(len(home))

    def end(self) -> None:
        """After the run: look at global memory."""
        for number, home in self.globals.items():
            copied = self.homes[id(home)][2]
            if number <= len(self.members) and (members := self.members[number - 1]):
                size = len(members)
                copied = bytearray(b & members[i % size] for i, b in enumerate(copied))
            if any(copied):
                self.left, self.left_in = True, {*self.left_in, number}

    def shadows(self, home: bytearray) -> Shadow:
        """Those of some memory."""
        if id(home) not in self.homes:  # a block's or a thread's: nothing is written
            self.homes[id(home)] = home, bytearray(b"\1" * len(home)), bytearray(len(home))
        return self.homes[id(home)][1:]

    def load(self, shadow: Shadow, at: int, size: int, line: int) -> int:
        """The undefined bits of what is read."""
        empty, copied = shadow
        found = int.from_bytes(copied[at : at + size], "little")
        if any(empty[at : at + size]):
            self.reads.add(line)
            if self.wanted is None or line in self.wanted:
                for i in range(size):
                    found |= 255 << 8 * i if empty[at + i] else 0
        return found

    def store(self, shadow: Shadow, at: int, size: int, bits: int) -> None:
        """Bytes are written, undefined in some bits."""
        empty, copied = shadow
        empty[at : at + size] = bytes(size)
        copied[at : at + size] = (bits & mask(8 * size)).to_bytes(size, "little")

    def forget(self, home: bytearray, places: Iterable[range]) -> None:
        """A function begins: nothing has written its variables."""
        empty, copied = self.shadows(home)
        for place in places:
            empty[place.start : place.stop] = b"\1" * len(place)
            copied[place.start : place.stop] = bytes(len(place))

    def use(self, ins: Instruction, what: str, bits: int) -> None:
        """Something steers: is it undefined?"""
        if bits:
            self.uses.add((ins.line, what))
