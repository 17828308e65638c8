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
    """One thing that a block does.

    Attributes:
        instruction: The PTX instruction that asks for it.
        guard: The lanes that do it; ``None`` is all that are in the block.
        targets: What it writes; ``None`` is a result that nobody wants.
        sources: What it reads.
    """

    instruction: Instruction
    guard: SourceValue | None
    targets: tuple[ResultValue | None, ...] = ()
    sources: tuple[SourceValue, ...] = ()

    @property
    def place(self) -> str:
        """Where its instruction stands, in numbers: a file's name may be anything."""
        ins = self.instruction
        line = ins.location.user.line if ins.location else 0
        return f"PTX {ins.line}, line {line}" if line else f"PTX {ins.line}"


@dataclass(frozen=True)
class Move(IrOp):
    """A copy."""


@dataclass(frozen=True, kw_only=True)
class Compute(IrOp):
    """Values from values, each lane for itself: ``op.fn``."""

    op: Op


@dataclass(frozen=True, kw_only=True)
class WarpCompute(Compute):
    """Values from those of the warp's lanes: ``op.fn`` gets the warp first."""


@dataclass(frozen=True, kw_only=True)
class MemoryOp(IrOp):
    """A load (its targets: an element each), store or atomic (its target: what it found).

    Attributes:
        site: What is accessed, and how.
        base: The address without ``site.offset``.
    """

    site: Site
    base: SourceValue


@dataclass(frozen=True, kw_only=True)
class Bulk(IrOp):
    """A copy in bulk; its sources: where to, where from, how many bytes.

    Or what a texture or surface is asked for: its handle, and coordinates.
    """

    into: Site


@dataclass(frozen=True, kw_only=True)
class FenceOp(IrOp):
    """A memory fence; ``reach``: of its scope (``table``); ``proxy``: between the proxies."""

    reach: int
    proxy: bool = False


@dataclass(frozen=True, kw_only=True)
class AsyncGroupOp(IrOp):
    """Commit of a group of asynchronous copies, or a wait until ``pending`` groups remain."""

    pending: int | None


@dataclass(frozen=True, kw_only=True)
class Phase(IrOp):
    """Lanes have seen the end of a phase; its sources: which of them, and the barrier's address.

    Or, ``arrives``: their asynchronous copies so far arrive there when they are done.
    """

    offset: int
    arrives: bool = False


@dataclass(frozen=True, kw_only=True)
class SavePredicate(IrOp):
    """Remembers a guard for the other steps of its instruction (``guards``)."""

    temporary: Temporary
    predicate: SourceValue


@dataclass(frozen=True, kw_only=True)
class CountLanes(IrOp):
    """Counts the lanes that execute an instruction (``counting``)."""

    number: int


@dataclass(frozen=True, kw_only=True)
class WgmmaRegisterEvent(IrOp):
    """Tells of what has to do with registers of a ``wgmma``: its place in ``Program.flights``."""

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
    """Where a block's lanes go.

    Attributes:
        how: ``goto``, ``branch``, ``switch`` (its source: the index), ``exit``, ``return``,
            ``call``, ``barrier``, ``trap`` or ``system``.
        call_entry: Of a call: the number of the first block of what is called.
        return_register: Of a call or return: the register with the block to return to.
        group: Of a call within a group of functions: that, and what is put aside (``saves``).
    """

    how: str
    call_entry: int = EXIT
    return_register: int = -1
    group: Recursion | None = None
    saves: tuple[Register, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BarrierOp(Terminator):
    """A block barrier; its sources: which one, for how many threads (0: all), what is reduced.

    Attributes:
        cluster: It is the cluster's, which has no sources.
        reduction: How the third source is reduced, and the register of the result.
        waits: Whether lanes are held there, and not just counted.
    """

    how: str = "barrier"
    reduction: tuple[str, int] | None = None
    waits: bool = True
    cluster: bool = False


@dataclass(frozen=True, kw_only=True)
class SyscallOp(Terminator):
    """A call of a function of the system; its sources: what it is given.

    Attributes:
        name: The function's.
        result: The register that it writes; -1 where there is none.
    """

    how: str = "system"
    name: str
    result: int = -1


@dataclass(frozen=True)
class WarpSyncPoint:
    """Lanes wait in front of a block for those that ``members`` names; ``None``: the warp's.

    Or, ``group``, for the ``warpgroup``'s product, or where these ``wait`` for it; ``barrier``: it
    is all that the instruction does; ``guard``: the lanes that wait, while others go on.
    """

    members: SourceValue | None
    barrier: bool
    guard: SourceValue | None = None
    group: str = ""


@dataclass(frozen=True)
class Lowered:
    """A block's steps.

    Attributes:
        gate: What its lanes wait for before its first step.
        end: Where they go after its last; ``None``: to the block that follows.
        numbers: Numbers for more temporaries.
        outlives: The written registers that are read after it, in the order of their writes.
    """

    block: Block
    steps: tuple[IrOp, ...]
    end: Terminator | None
    gate: WarpSyncPoint | None
    live_out: tuple[Register, ...]
    numbers: Iterator[int]
