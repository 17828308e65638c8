"""What a launch tells those who watch it: one protocol, for every counter, check and recorder.

Each event has an empty default, and who leaves it at that is not called for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kernels.ptx.module import Instruction

from .compile.program import CompiledBlock
from .core.geometry import Addresses, Geometry, InactiveLaneRead, Lanes, Mask
from .memory.bulk.bulk_copy import BulkTransfer
from .memory.event import AccessEvent, BadAccess, CompactAccessEvent
from .memory.site import Site
from .memory.storage.spaces import Allocation


@dataclass
class Branch:
    """A branch that sent lanes another way than those at a barrier.

    Attributes:
        block: The basic block that it ends.
        lanes: Those lanes.
        leaves: Whether their way goes straight out of the kernel: an early return.
    """

    block: CompiledBlock
    lanes: Mask
    leaves: bool


@dataclass
class BarrierDivergence:
    """Threads of a block that do not come to a barrier together.

    Attributes:
        how: ``gone`` (they have left the kernel without it), ``rounds`` (by another round of
            a loop, or another call), ``places`` (at several barriers of the source), ``warp``
            (lanes of one warp, which have to come as one), ``never`` (those that wait are
            never let go; ``arrivals``: of a barrier to which some only arrive; ``orders``: if
            warps come in another order), ``ways`` (with several counts at a time, say),
            ``chance`` (more than it counts, and nothing says which of them meet),
            ``cluster`` (as ``never``, at their cluster's), ``count`` or ``number`` (an operand that
            no barrier has), ``again``, ``unarrived`` (they arrive at a cluster's barrier twice
            without a wait, wait there without an arrival).
        block: The barrier's basic block; ``lanes``: who is there.
        others: The lanes that are not; ``elsewhere``: at which other barriers they stand.
        branches: What sent these another way, as far as it is known.
        value: The operand.
    """

    how: str
    block: CompiledBlock
    lanes: Mask | None
    others: Mask | None = None
    elsewhere: list[tuple[CompiledBlock, Mask]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    value: int = 0


class Awaited(NamedTuple):
    """The phase of an ``mbarrier`` that is waited for: what it takes to end it, and what has come.

    Attributes:
        arrivals: Of a phase; ``come``: those that there have been.
        bytes: Those of copies that are still to come.
    """

    arrivals: int
    come: int
    bytes: int


class LoopPosition(NamedTuple):
    """A loop that lanes are in, and do not leave: an instruction of it.

    Attributes:
        awaited: If that asks whether the phase of an ``mbarrier`` is over: what the first of the
            lanes waits for.
    """

    instruction: Instruction
    lanes: Mask | None
    awaited: Awaited | None = None


@dataclass
class Stall:
    """No lane of a batch can go on.

    Attributes:
        why: ``waits``, ``repeats`` (no fair schedule changes anything any more) or ``limit``.
        waiting: The lanes held by block barriers, and who does not come to them.
        loops: The loops that lanes are in.
        steps: How many basic blocks had run. ``part``: of so many blocks of the grid, if not all.
        staying: The columns of blocks that have not left.
    """

    why: str
    waiting: list[BarrierDivergence]
    loops: list[LoopPosition]
    steps: int
    part: int = 0
    staying: Sequence[int] = ()


class Observer:
    """Watches a launch; made anew for each attempt at it.

    ``lanes`` is a mask as registers have it (``geometry``); ``None`` is all lanes of the batch.
    """

    def start(self, geometry: Geometry) -> None:
        """A batch of blocks begins."""

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """A basic block runs, by its number: how many threads of how many warps execute it."""

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """Lanes enter or leave a function: nothing has written these bytes of local memory."""

    def diverged(self, block: int, warps: int) -> None:
        """The branch at a basic block's end sends lanes of so many warps both ways."""

    def access(self, event: AccessEvent) -> None:
        """An access of memory is about to happen (an atomic: has happened)."""

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """Loads of shared memory from one base, an event a site; by default ``access`` is told."""
        for event in events:
            self.access(event)

    def compact_access(self, event: CompactAccessEvent) -> None:
        """An access of lanes that were picked out; by default ``access`` is told."""
        self.access(event.full)

    def bulk_copied(self, site: Site, moved: Sequence[BulkTransfer]) -> None:
        """Lanes have copied in bulk, to where ``site`` says."""

    def bad_access(self, bad: BadAccess) -> None:
        """Lanes access what they must not: that is left out."""

    def arithmetic(self, number: int, lanes: Mask | None) -> None:
        """Lanes execute a guarded floating-point instruction, by ``Arithmetic.tally``."""

    def traced(self, number: int, lanes: Mask | None, base: Addresses, *values: Lanes) -> None:
        """Lanes executed a ``Watched`` instruction; in programs compiled for a trace alone."""

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """A block barrier lets lanes of so many warps go."""

    def barrier_passed(self, block: int, warps: int) -> None:
        """It lets so many warps go that waited for it at a basic block's end."""

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """Lanes pass ``bar.arrive``."""

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> None:
        """Lanes arrive at their cluster's barrier; ``releases``: with what they have done."""

    def cluster_wait(self, lanes: Mask | None) -> None:
        """Lanes pass their cluster's barrier: all of the cluster have arrived."""

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """Lanes pass ``bar.warp.sync``, each with its member mask (uint32)."""

    def inactive_lane_read(self, read: InactiveLaneRead) -> None:
        """Lanes read registers of lanes that take no part."""

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """Lanes execute a memory fence; ``reach``: of its scope (``isa.table``)."""

    def proxy_fence(self, lanes: Mask | None) -> None:
        """Lanes execute a fence between a thread's own accesses and the asynchronous proxy's."""

    def async_group(
        self, lanes: Mask | None, left: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """Lanes end a group of copies or ``wgmma``, or wait until ``left`` groups are left.

        ``reads``: only until the others have read their sources; ``wait``: the instruction.
        """

    def copies_arrive(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """Lanes' asynchronous copies so far are to arrive at an mbarrier, each at its address."""

    def registers(self, number: int, lanes: Mask | None) -> None:
        """Lanes execute what has to do with registers of a ``wgmma``, by ``Program.flights``."""

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """Lanes have seen that a phase of an mbarrier is over, by an instruction."""

    def barrier_divergence(self, apart: BarrierDivergence) -> None:
        """Threads of a block do not come to a barrier together."""

    def event(self, name: str, block: CompiledBlock, lanes: Mask | None, text: str = "") -> None:
        """``trap``, ``assert``, ``astray``, ``bad-free``, ``absent``, ``left-out``."""

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """So many lanes print; of each: its block, its thread, and its text, made when asked."""

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """A lane prints the text at a generic address, which is a global array's if it has one."""

    def freed(
        self, block: CompiledBlock, lane: tuple[int, ...], home: Allocation, piece: range
    ) -> None:
        """A lane frees bytes of the heap."""

    def reallocated(self, home: Allocation, piece: range) -> None:
        """Bytes of the heap that were freed are given out once more."""

    def scheduled_out_of_order(self) -> None:
        """Lanes go before others that stand lower: it may depend on who else is in the batch."""

    def stuck(self, stall: Stall) -> None:
        """No lane of the batch can go on; it ends here."""

    def finish(self) -> None:
        """The batch is done."""

    def end(self) -> None:
        """The launch is done."""

    def merge(self, other: Self) -> None:
        """Take over what the same observer saw of other blocks of the launch, later batches.

        As long as no block waits for what one of the other's hands on, the two have seen what
        one would have that watched all of them. ``end`` comes after.
        """


Callbacks = tuple[Callable[..., None], ...]
"""Whom to call."""


_OVERRIDDEN: dict[type, frozenset[str]] = {}
"""By an observer's class, the events that it does something about; found once."""


def _overridden_events(kind: type) -> frozenset[str]:
    if kind not in _OVERRIDDEN:
        events = [(name, empty) for name, empty in vars(Observer).items() if name[0] != "_"]
        _OVERRIDDEN[kind] = frozenset(
            name for name, empty in events if getattr(kind, name) != empty
        )
    return _OVERRIDDEN[kind]


class Dispatcher:
    """For each event, the observers' methods that are to be called, in the observers' order."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        callbacks: dict[str, list[Callable[..., None]]] = {}
        for observer in observers:
            handled = _overridden_events(type(observer))
            for name in handled:
                callbacks.setdefault(name, []).append(getattr(observer, name))
            for name in ("grouped_loads", "compact_access") if "access" in handled else ():
                if name not in handled:
                    callbacks.setdefault(name, []).append(getattr(observer, name))

        def those(name: str) -> Callbacks:
            return tuple(callbacks.get(name, ()))

        self.start, self.finish, self.end = those("start"), those("finish"), those("end")
        self.block_executed, self.diverged = those("block_executed"), those("diverged")
        self.frame_cleared = those("frame_cleared")
        self.access, self.bad_access = those("access"), those("bad_access")
        self.bulk_copied = those("bulk_copied")
        self.grouped_loads, self.compact_access = those("grouped_loads"), those("compact_access")
        self.arithmetic, self.traced = those("arithmetic"), those("traced")
        self.barrier, self.barrier_passed = those("barrier"), those("barrier_passed")
        self.arrive = those("arrive")
        self.cluster_arrive, self.cluster_wait = those("cluster_arrive"), those("cluster_wait")
        self.warp_sync, self.fence = those("warp_sync"), those("fence")
        self.printed, self.string_read = those("printed"), those("string_read")
        self.freed, self.reallocated = those("freed"), those("reallocated")
        self.async_group = those("async_group")
        self.inactive_lane_read, self.proxy_fence = (
            those("inactive_lane_read"),
            those("proxy_fence"),
        )
        self.registers = those("registers")
        self.copies_arrive, self.phase = those("copies_arrive"), those("phase")
        self.barrier_divergence, self.event, self.stuck = (
            those("barrier_divergence"),
            those("event"),
            those("stuck"),
        )
        self.scheduled_out_of_order = those("scheduled_out_of_order")

    def watch_blocks(self, callback: Callable[[int, int, int], None]) -> None:
        """Call something at each basic block besides the observers' ``block_executed``."""
        self.block_executed = (*self.block_executed, callback)


def all_of(tell: Callbacks) -> Callable[..., None]:
    """One function that calls them all, for generated code."""
    if len(tell) == 1:
        return tell[0]

    def call(*event: Any) -> None:
        for each in tell:
            each(*event)

    return call
