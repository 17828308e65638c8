"""The observer protocol: events of a launch, for counters, checks and recorders.

Every event has an empty default. An observer that does not override an event is not called for it.
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
    """A branch that sent lanes on another path than those at a barrier.

    Attributes:
        block: The basic block that the branch ends.
        lanes: Mask of the diverted lanes.
        leaves: Whether their path leads straight out of the kernel (an early return).
    """

    block: CompiledBlock
    lanes: Mask
    leaves: bool


@dataclass
class BarrierDivergence:
    """Threads of a block that do not reach a barrier together.

    Attributes:
        how: The kind of divergence. ``gone``: the others have exited the kernel. ``rounds``: they
            are in another iteration or call. ``places``: they are at other barriers of the source.
            ``warp``: lanes of one warp arrive separately. ``never``: the waiting threads are never
            released. ``arrivals``: the same, at a barrier to which some threads only arrive.
            ``orders``: the same, in another order of the warps. ``ways``: different thread counts
            at one time. ``chance``: more threads than the count, and nothing determines which of
            them meet. ``cluster``: as ``never``, at the cluster's barrier. ``count``, ``number``:
            an invalid operand. ``again``: a second arrival at the cluster's barrier without a wait.
            ``unarrived``: a wait at the cluster's barrier without an arrival.
        block: The basic block of the barrier.
        lanes: Mask of the lanes at the barrier.
        others: Mask of the lanes that are not.
        elsewhere: Other barriers at which these stand, with their masks.
        branches: The branches that diverted these, as far as they are known.
        value: The invalid operand.
    """

    how: str
    block: CompiledBlock
    lanes: Mask | None
    others: Mask | None = None
    elsewhere: list[tuple[CompiledBlock, Mask]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    value: int = 0


class Awaited(NamedTuple):
    """The phase of an ``mbarrier`` that lanes wait for.

    Attributes:
        arrivals: Arrivals that complete the phase.
        come: Arrivals so far.
        bytes: Transaction bytes that are still pending.
    """

    arrivals: int
    come: int
    bytes: int


class LoopPosition(NamedTuple):
    """A loop that lanes do not leave, as one of its instructions.

    Attributes:
        awaited: If the loop tests the phase of an ``mbarrier``: what the first lane waits for.
    """

    instruction: Instruction
    lanes: Mask | None
    awaited: Awaited | None = None


@dataclass
class Stall:
    """State of a batch in which no lane can make progress.

    Attributes:
        why: ``waits`` (deadlock), ``repeats`` (no fair schedule changes the state any more) or
            ``limit`` (the step limit).
        waiting: The lanes blocked at barriers, each with the missing lanes.
        loops: The loops in which the other lanes are.
        steps: Basic blocks executed so far.
        part: Number of blocks of the batch if that is not the whole grid.
        staying: Columns of the blocks that have not exited.
    """

    why: str
    waiting: list[BarrierDivergence]
    loops: list[LoopPosition]
    steps: int
    part: int = 0
    staying: Sequence[int] = ()


class Observer:
    """Base class of all observers; a new one is made for each attempt at a launch.

    In every event ``lanes`` is a mask in the shape of a register (``geometry``); ``None`` stands
    for all lanes of the batch.
    """

    def start(self, geometry: Geometry) -> None:
        """Begin a batch of blocks."""

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """Handle a basic block, by its number, that so many threads of so many warps execute."""

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """Handle a call or return: these bytes of local memory become uninitialised."""

    def diverged(self, block: int, warps: int) -> None:
        """Handle a branch at the end of a basic block that splits so many warps."""

    def access(self, event: AccessEvent) -> None:
        """Handle a memory access, before it takes place; an atomic has taken place already."""

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """Handle loads of shared memory from one base; by default calls ``access``."""
        for event in events:
            self.access(event)

    def compact_access(self, event: CompactAccessEvent) -> None:
        """Handle an access of compact lanes; by default calls ``access`` in expanded form."""
        self.access(event.full)

    def bulk_copied(self, site: Site, moved: Sequence[BulkTransfer]) -> None:
        """Handle a completed bulk copy to the destination of ``site``."""

    def bad_access(self, bad: BadAccess) -> None:
        """Handle an invalid access; the machine skips it."""

    def arithmetic(self, number: int, lanes: Mask | None) -> None:
        """Handle a guarded floating-point instruction; ``number``: in ``Arithmetic.tally``."""

    def traced(self, number: int, lanes: Mask | None, base: Addresses, *values: Lanes) -> None:
        """Handle a ``Watched`` instruction; only programs with a trace have these."""

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """Handle the release of a block barrier: lanes of so many warps continue."""

    def barrier_passed(self, block: int, warps: int) -> None:
        """Handle the release of so many warps that waited at the end of a basic block."""

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """Handle ``bar.arrive``."""

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> None:
        """Handle an arrival at the cluster's barrier; ``releases`` is false for ``.relaxed``."""

    def cluster_wait(self, lanes: Mask | None) -> None:
        """Handle the release of the cluster's barrier: all of its threads have arrived."""

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """Handle ``bar.warp.sync``, with the member mask of each lane (uint32)."""

    def inactive_lane_read(self, read: InactiveLaneRead) -> None:
        """Handle reads of registers of lanes that do not participate."""

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """Handle a memory fence; ``reach``: the number of its scope (``isa.table``)."""

    def proxy_fence(self, lanes: Mask | None) -> None:
        """Handle a fence between a thread's generic accesses and the asynchronous proxy."""

    def async_group(
        self, lanes: Mask | None, pending: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """Handle the commit of a group of copies or ``wgmma``, or a wait for all but ``pending``.

        ``reads``: the wait covers only the reads of the sources (``.read``). ``wait``: the
        instruction.
        """

    def copies_arrive(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """Handle ``cp.async.mbarrier.arrive``, with an mbarrier's address for each lane."""

    def registers(self, number: int, lanes: Mask | None) -> None:
        """Handle an instruction on registers of a ``wgmma``; ``number``: in ``Program.flights``."""

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """Handle lanes that observe, by a test or wait, that a phase of an mbarrier is complete."""

    def barrier_divergence(self, divergence: BarrierDivergence) -> None:
        """Handle threads of a block that do not reach a barrier together."""

    def event(self, name: str, block: CompiledBlock, lanes: Mask | None, text: str = "") -> None:
        """Handle one of the rare events, by its name.

        Names: ``trap``, ``assert``, ``astray``, ``bad-free``, ``absent``, ``left-out``.
        """

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """Handle ``printf``; ``texts`` lazily yields block, thread and text of each lane."""

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """Handle ``printf`` reading a string; ``home``: its global allocation, if it has one."""

    def freed(
        self, block: CompiledBlock, lane: tuple[int, ...], home: Allocation, piece: range
    ) -> None:
        """Handle ``free``: a lane returns bytes of the heap."""

    def reallocated(self, home: Allocation, piece: range) -> None:
        """Handle ``malloc`` that reuses freed bytes of the heap."""

    def scheduled_out_of_order(self) -> None:
        """Handle a choice of lanes other than the lowest; it may depend on the batch."""

    def stuck(self, stall: Stall) -> None:
        """Handle a stall; the batch ends here."""

    def finish(self) -> None:
        """End a batch of blocks."""

    def end(self) -> None:
        """End the launch."""

    def merge(self, other: Self) -> None:
        """Merge the results of the same observer of later batches of this launch.

        If no block waits for another block of the other batches, the merged result equals that of
        one observer of all batches. ``end`` is called afterwards.
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
    """Callbacks of each event: the observers' methods in the observers' order."""

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
    """Return one function that calls all callbacks, for generated code."""
    if len(tell) == 1:
        return tell[0]

    def call(*event: Any) -> None:
        for each in tell:
            each(*event)

    return call
