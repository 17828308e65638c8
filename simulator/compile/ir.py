"""IR: the typed operations of a basic block, between PTX and the generated Python.

``lower`` translates instructions; ``guards``, ``counting`` and ``tracing`` insert or rewrite
operations; ``emit`` generates Python for NumPy. An operation lists the registers that it reads and
writes with their types, so that code generation needs neither PTX nor the instruction table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.ptx.module import Instruction

from ..isa import Op
from ..memory.site import Site
from .cfg.basic_blocks import EXIT, Block
from .cfg.call_graph import Recursion
from .ir_values import Register, ResultValue, SourceValue, Temporary


@dataclass(frozen=True)
class IrOp:
    """One IR operation.

    Attributes:
        instruction: The PTX instruction from which it was lowered.
        guard: Guard predicate; ``None``: all lanes in the block.
        targets: Written registers; ``None`` for unused results.
        sources: Read values.
    """

    instruction: Instruction
    guard: SourceValue | None
    targets: tuple[ResultValue | None, ...] = ()
    sources: tuple[SourceValue, ...] = ()

    @property
    def place(self) -> str:
        """Location of its instruction, as numbers only, as file names may contain anything."""
        ins = self.instruction
        line = ins.location.user.line if ins.location else 0
        return f"PTX {ins.line}, line {line}" if line else f"PTX {ins.line}"


@dataclass(frozen=True)
class Move(IrOp):
    """Copy of a value."""


@dataclass(frozen=True, kw_only=True)
class Compute(IrOp):
    """Lane-wise computation: ``op.fn``."""

    op: Op


@dataclass(frozen=True, kw_only=True)
class WarpCompute(Compute):
    """Computation across the lanes of a warp: ``op.fn`` receives the warp first."""


@dataclass(frozen=True, kw_only=True)
class MemoryOp(IrOp):
    """Load (one target for each element), store, or atomic (target: the old value).

    Attributes:
        site: Description of the access.
        base: Address without ``site.offset``.
    """

    site: Site
    base: SourceValue


@dataclass(frozen=True, kw_only=True)
class Bulk(IrOp):
    """Bulk copy; sources: destination, source and byte count.

    Also a texture or surface operation; sources: handle and coordinates.
    """

    into: Site


@dataclass(frozen=True, kw_only=True)
class FenceOp(IrOp):
    """Memory fence; ``reach``: number of its scope. ``proxy``: whether it is a proxy fence."""

    reach: int
    proxy: bool = False


@dataclass(frozen=True, kw_only=True)
class AsyncGroupOp(IrOp):
    """Commit of a group of asynchronous copies, or a wait until ``pending`` groups remain."""

    pending: int | None


@dataclass(frozen=True, kw_only=True)
class Phase(IrOp):
    """Observation of a complete mbarrier phase; sources: predicate and barrier address.

    With ``arrives``: pending asynchronous copies arrive there on completion.
    """

    offset: int
    arrives: bool = False


@dataclass(frozen=True, kw_only=True)
class SavePredicate(IrOp):
    """Save a guard for the other operations of its instruction (``guards``)."""

    temporary: Temporary
    predicate: SourceValue


@dataclass(frozen=True, kw_only=True)
class CountLanes(IrOp):
    """Count the lanes that execute an instruction (``counting``)."""

    number: int


@dataclass(frozen=True, kw_only=True)
class WgmmaRegisterEvent(IrOp):
    """Event on registers of a ``wgmma``, by its index in ``Program.flights``."""

    number: int


@dataclass(frozen=True, kw_only=True)
class TraceProbe(IrOp):
    """Operation that passes an instruction's sources to the trace (``tracing``).

    Attributes:
        number: Index in ``Program.watched``.
        base: For an access: the address without the site's offset.
    """

    number: int
    base: SourceValue | None = None


@dataclass(frozen=True, kw_only=True)
class Terminator(IrOp):
    """End of a block: where its lanes continue.

    Attributes:
        how: ``goto``, ``branch``, ``switch`` (source: the index), ``exit``, ``return``, ``call``,
            ``barrier``, ``trap`` or ``system``.
        call_entry: Of a call: number of the callee's first block.
        return_register: Of a call or return: register with the return block.
        group: Of a recursive call: its group.
        saves: Of a recursive call: the registers to save.
    """

    how: str
    call_entry: int = EXIT
    return_register: int = -1
    group: Recursion | None = None
    saves: tuple[Register, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BarrierOp(Terminator):
    """Block barrier; sources: number, thread count (0: all), reduction input.

    Attributes:
        cluster: Whether it is the cluster's barrier, which has no sources.
        reduction: Kind of the reduction, and the register of its result.
        waits: Whether lanes block, instead of only being counted.
    """

    how: str = "barrier"
    reduction: tuple[str, int] | None = None
    waits: bool = True
    cluster: bool = False


@dataclass(frozen=True, kw_only=True)
class SyscallOp(Terminator):
    """Call of a system function; sources: its arguments.

    Attributes:
        name: Name of the function.
        result: Register of the result; -1: none.
    """

    how: str = "system"
    name: str
    result: int = -1


@dataclass(frozen=True)
class WarpSyncPoint:
    """Lanes wait before a block for the lanes of ``members``; ``None``: for the warp.

    ``group``: waits for the warpgroup, at a product; ``wait``: at a wait for products. ``barrier``:
    the instruction does nothing else. ``guard``: only these lanes wait.
    """

    members: SourceValue | None
    barrier: bool
    guard: SourceValue | None = None
    group: str = ""


@dataclass(frozen=True)
class Lowered:
    """IR of a block.

    Attributes:
        gate: Warp synchronisation before the first operation.
        end: The terminator; ``None``: continue at the next block.
        numbers: Generator of numbers for temporaries.
        live_out: Written registers that are live at the end, in order of their writes.
    """

    block: Block
    steps: tuple[IrOp, ...]
    end: Terminator | None
    gate: WarpSyncPoint | None
    live_out: tuple[Register, ...]
    numbers: Iterator[int]
