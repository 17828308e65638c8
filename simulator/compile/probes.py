"""Instructions that counting and tracing observe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernels.ptx.module import Instruction

from ..memory.site import Site
from .ir import Compute


@dataclass(frozen=True)
class Arithmetic:
    """A counted floating-point instruction.

    Attributes:
        count: The counter that it adds to, if any.
        flops: Operations of a thread.
        block: Its basic block, whose thread count applies if it is not guarded.
        tally: Index of its own thread count, if it is guarded.
    """

    instruction: Instruction
    count: str | None
    flops: int
    block: int
    tally: int | None


@dataclass(frozen=True)
class Watched:
    """An instruction whose executions a trace records.

    Attributes:
        instruction: The instruction; ``block``: the basic block it stands in.
        what: ``load``, ``store``, ``atomic``, ``copy`` (in bulk), ``value``, ``barrier``,
            ``exit``, or ``branch``: loaded data decide what its outputs are from there on.
        outputs: Register numbers of the recorded values; -1 where there is none: what is stored,
            and which lanes a shuffle or vote asks; below that what other steps of the same
            instruction use.
        inputs: Of the operands that are read: such a number, or the operand's text.
        site: Of an access; of a copy in bulk, what it writes.
        base: Of an access: the register with its address, where that came of loaded data.
        guard: Its guard's register, where that did.
        results: Of a value: which of the results of its ``step`` the outputs are.
    """

    instruction: Instruction
    block: int
    what: str
    outputs: tuple[int, ...] = ()
    inputs: tuple[int | str, ...] = ()
    site: Site | None = None
    base: int | None = None
    guard: int | None = None
    results: tuple[int, ...] = ()
    step: Compute | None = None


class Data(NamedTuple):
    """Registers and branches that depend on loaded data.

    Attributes:
        registers: Registers with loaded data, values computed from it, or values that depend on a
            branch on such data.
        branches: For each block that ends at such a branch, the registers that dependent blocks
            write and that are read later.
    """

    registers: frozenset[int] = frozenset()
    branches: dict[int, tuple[int, ...]] = {}  # noqa: RUF012 - never changed
