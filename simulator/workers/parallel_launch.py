"""Parallel launch: blocks are distributed over processes, including this one.

This process starts alone. Once the remaining work is worth it, it hands all but the next blocks to
others. As costs differ between blocks, idle processes receive parts of the remaining work. Finally
it merges all observers in block order.
"""

import dataclasses
import functools
import itertools
import math
import pickle
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from ..core.geometry import Flat
from ..events import Dispatcher
from ..execute.batches import Progress, batch_size, pieces, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.accesses import EscalateCheck, PrecisionPlan
from . import pool
from .conflict_detection import MIXED, STOPPED, Overlap, RetrySharded, SerialFallback, Sums, watched
from .pool import SharedArena
from .serialization import unpack
from .shard import Array, ShardResult, Task, put, run_share, share_of, uninitialised_bytes

WAITS = "its blocks may wait for each other"
WORTH = 1.0
"""Seconds of work that are left and worth being shared, where nobody asked for it."""
_MOVED = 1.0
"""More of them for each GB of arrays, which are copied. (A transposition of 512 MB takes 3.2 to
4.3 s in one process and 2.5 to 2.9 in two, of which the second had to start.)"""
_BATCHES = 8
"""So many for each process are shared as they are; of fewer, pieces are."""
UNCLEAN = "it has few batches, and hazards in them are told of the blocks together"
_START = 0.6
"""Seconds that a new process needs before it runs its first block."""
_MAX_LAUNCHES = 4
"""One in so many units of an even share is reserved for processes that finish early, except with
two: units handed over later wait for the end of a batch, and cost as much to move."""
_AGAIN = 0.1
"""Seconds of work that are worth being handed on to a process that is done."""


def worth_starting(seconds: float, running: int) -> int:
    """Return how many processes are worth it where nobody asked for them.

    Each takes ``_START`` of a core before it helps; together they take no more than the work does.
    (On 32 busy cores a program of 7 s took 105 s of them, with a process for each.)

    Args:
        seconds: Work that remains, of one process.
        running: Processes that the pool has.
    """
    return max(1, running, int(seconds / _START))


def why_alone(launch: PreparedLaunch, traced: bool) -> str:
    """Return why a launch cannot be sharded, by its text; ``""``: it can."""
    program = launch.program
    if launch.cooperative:
        return WAITS
    if traced:
        return "its steps are recorded"
    called = {block.called for block in program.blocks} - {"", "__assertfail"}
    if called:
        return f"it calls {sorted(called)[0].removeprefix('v')}"
    if any(site.is_image for site in program.sites):
        return "it has textures or surfaces"
    if launch.heap is not None:
        return "kernels have allocated memory with malloc"
    if not pool.possible():
        return "it runs in a process that may not start others"
    return ""


Watch = Callable[[Dispatcher], None]
"""Gets what tells a launch's observers."""


@dataclass
class ParallelLaunch:
    """Processes of one attempt at a launch.

    Args:
        count: Maximum number of processes, this one included.
        asked: Whether the user requested them; otherwise they have to be worth it.
        watch: Called with the dispatcher of this process's observers.

    Attributes:
        shared: Number of processes used.
        alone: Why there was only one, if more were requested.
    """

    launch: PreparedLaunch
    checks: Collection[str]
    precision: PrecisionPlan
    count: int
    asked: bool
    watch: Watch
    shared: int = 1
    alone: str = ""
    _futures: "list[Future[bytes]]" = field(default_factory=list)
    _common: SharedArena | None = None
    _task: Task | None = None
    _new: bool = True

    def run(self, progress: Progress | None) -> tuple[Observers, dict[int, Allocation]]:
        """Execute the launch; return the merged observers and the final global memory.

        Raises:
            EscalateCheck, InterBlockWait: As ``run_batches``, from any process.
            RetrySharded: The launch has to be repeated with more bitmaps.
            SerialFallback: The launch has to be repeated in one process.
        """
        launch, self._new = self.launch, not pool.running()
        try:
            if self.asked and self._new and self.total > 1:  # they start while this one begins
                for _ in range(self.count - 1):
                    pool.submit(run_share, b"", self.count - 1)
            allocations = self._arrays()
            watch = watched(self.checks, self.precision, self._direct)
            overlap = Overlap(launch.program, launch.granules.array, self._known, self.cut, watch)
            observers = Observers(launch, self.checks, None, allocations, self.precision, overlap)
            self.watch(observers.dispatcher)
            todo = self._mine(overlap, allocations)
            run_batches(launch, allocations, observers.dispatcher, todo, progress=progress)
            for future in self._futures:
                done = self._done(future.result(), allocations)
                observers.merge(done.observers)
                self._apply(done, allocations)
            if self.cut and not observers.findings.clean:
                raise SerialFallback(UNCLEAN)
            if self.shared > 1 and overlap.stopped:
                raise SerialFallback(STOPPED)
        except (EscalateCheck, RetrySharded) as more:
            if isinstance(more, RetrySharded):
                self._known.update(dict.fromkeys(more.numbers, True))
            launch.program.memo("again")[True] = True
            self._give_up()
            raise
        except SerialFallback as why:
            self._give_up()
            if str(why) in (MIXED, UNCLEAN) and self.total > batch_size(launch):
                self._whole[launch.grid, launch.block] = True
                raise RetrySharded from None
            raise
        except BrokenProcessPool:
            pool.stop(now=True)
            raise SerialFallback("a process that had a share of it died") from None
        except Exception:
            self._give_up()
            raise
        except BaseException:
            pool.stop(now=True)
            raise
        finally:
            if self._common:
                self._common.remove()
        observers.end()
        return observers, allocations

    @property
    def total(self) -> int:
        """Clusters of the grid."""
        return math.prod(self.launch.grid) // math.prod(self.launch.cluster)

    @functools.cached_property
    def cut(self) -> bool:
        """Whether batches are cut, because those of one process would be too few to share."""
        launch, size = self.launch, batch_size(self.launch)
        few = 1 < self.total < _BATCHES * self.count * size and size > 1
        known = (launch.grid, launch.block) in self._whole
        return self.asked and launch.schedule == "lockstep" and few and not known

    @property
    def _direct(self) -> bool:
        """Whether all processes write directly to the shared memory.

        If one read or wrote what another writes, the launch would be repeated in one process
        anyway. Sums may overlap, so that each process needs its own.
        """
        return pool.FILES and not self.launch.program.analysis(Sums).any

    @property
    def _whole(self) -> dict[object, bool]:
        """Grid and block shapes of this kernel for which cut batches failed."""
        return self.launch.program.memo("whole batches")

    @property
    def _known(self) -> dict[int, bool]:
        """Numbers of arrays that this kernel's blocks read and write."""
        return self.launch.program.memo("read and written")

    def _give_up(self) -> None:
        if self._common:
            self._common.give_up()

    def _mine(self, overlap: Overlap, allocations: dict[int, Allocation]) -> Iterator[Flat]:
        """Yield this process's batches, while others receive parts of its work."""
        launch, size = self.launch, batch_size(self.launch)
        total = self.total
        piece = min(max(total // (4 * self.count), 1), size) if self.cut else size
        at, spent = 0, math.inf
        again = self._new or (bool(launch.program.memo("again")) and not self.precision)
        # What the first piece takes is not all its own; and it may tell that all begins again.
        for _ in range(int(again) if self.asked else 2):
            end = min(at + piece, total)
            began = time.perf_counter()
            yield from pieces(launch, at, end, size)
            spent = (time.perf_counter() - began) / piece
            if self.cut and end < total and overlap.stopped:
                raise SerialFallback(STOPPED)
            if end < total:
                overlap.check(overlap)
            at = end
            moved = _MOVED * 1e-9 * sum(len(a.buffer) for a in allocations.values())
            if spent * (total - at) < WORTH + moved and not self.asked:
                break
        else:
            unit = 1 if self.cut else size
            if -(-(total - at) // unit) > (at == 0):
                total = self._hand_on(allocations, at, total, spent, unit)
            elif self.asked:
                self.alone = "its blocks are one batch"
        while at < total:
            end, began = total if self.cut else min(at + size, total), time.perf_counter()
            yield from pieces(launch, at, end, size)
            spent, at = (time.perf_counter() - began) / (end - at), end
            total = self._hand_more_on(at, total, spent)

    def _arrays(self) -> dict[int, Allocation]:
        """Return global memory as the host provides it, in shared memory if it will be needed."""
        made, unit = self.launch.allocations(), 1 if self.cut else batch_size(self.launch)
        if self.asked and self._direct and self.total > unit:
            self._common = put(made, direct=True)
        return made

    def _hand_on(
        self, allocations: dict[int, Allocation], at: int, total: int, spent: float, unit: int
    ) -> int:
        """Hand all but the next clusters to other processes, in whole units; return the new end.

        ``allocations``: global memory after the clusters so far.
        """
        units = -(-(total - at) // unit)
        others = min(self.count - 1, units - (at == 0))
        if not self.asked:
            others = min(others, worth_starting(spent * (total - at), pool.size()))
        start = _START / (spent * unit) if self._new else 0.0
        even = int((units + others * start) / (others + 1) - start)
        each = max(even - (0 if self.cut else max(even // _MAX_LAUNCHES - 2, 0)), 1)
        mine = units - others * each
        stops = [at + unit * (mine + each * i) for i in range(others)] + [total]
        made = allocations if at == 0 or self._direct else self.launch.allocations()
        common = self._common = self._common or put(made, self._direct)
        self._task = dataclasses.replace(
            share_of(self.launch, self.checks, self.precision, self._known),
            arrays=tuple(Array.of(a) for a in made.values()),
            missing=tuple(uninitialised_bytes(made)),
            common=common.name, places=common.places, size=batch_size(self.launch),
            cut=self.cut, direct=self._direct,
        )  # fmt: skip
        self.shared = others + 1
        self._futures = [self._submit(*share) for share in itertools.pairwise(stops)]
        return stops[0]

    def _hand_more_on(self, at: int, total: int, spent: float) -> int:
        """Hand remaining clusters to an idle process; return the new end.

        ``spent``: recent seconds per cluster.
        """
        busy = sum(not future.done() for future in self._futures)
        size = batch_size(self.launch)
        give = -(-(total - at) // size) // self.shared * size
        if self._task is None or busy >= self.shared - 1 or spent * give < _AGAIN:
            return total
        end = at + -(-(total - at) // size) * size - give
        self._futures.insert(0, self._submit(end, total))
        return end

    def _submit(self, first: int, last: int) -> "Future[bytes]":
        """Submit some clusters to another process."""
        assert self._task is not None, "the launch is being shared"
        share = dataclasses.replace(self._task, first=first, last=last)
        return pool.submit(run_share, pickle.dumps(share), self.shared - 1)

    def _apply(self, done: ShardResult, allocations: dict[int, Allocation]) -> None:
        """Apply another process's effects to global memory."""
        assert self._task is not None, "the launch was shared"
        assert self._common is not None, "the launch was shared"
        if self._direct:
            for number in done.changed:
                allocations[number].changed = True
            return
        numbers = (array.number for array in self._task.arrays)
        contents = dict(zip(numbers, self._common.arrays(), strict=False))
        for number, sums in done.sums.items():
            done.overlap.apply(allocations[number], contents[number], sums)

    def _done(self, packed: bytes, allocations: dict[int, Allocation]) -> ShardResult:
        """Return the result of a process.

        Raises:
            EscalateCheck, InterBlockWait: The process raised it.
        """
        if packed[:1] == b"!":
            raise pickle.loads(packed[1:])
        done = unpack(packed[1:], self.launch, allocations)
        assert isinstance(done, ShardResult)
        return done
