"""A share of a launch's blocks, run in a process of its own."""

import dataclasses
import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernels import Kernel
from kernels.arguments.convert import Arguments

from ..compile.compiler import compile_ptx
from ..core.geometry import Flat
from ..execute.batches import InterBlockWait, pieces, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.accesses import EscalateCheck, PrecisionPlan
from .conflict_detection import Overlap, SerialFallback, Sum, watched
from .pool import SharedArena
from .serialization import pack


@dataclass(frozen=True)
class Array:
    """What makes an allocation, but for its content."""

    number: int
    name: str
    writable: bool
    nbytes: int
    space: str
    unfilled: bool

    @classmethod
    def of(cls, made: Allocation) -> "Array":
        """That of an allocation."""
        return cls(made.number, made.name, made.writable, made.nbytes, made.space, made.unfilled)


@dataclass(frozen=True)
class Task:
    """A share of a launch.

    Attributes:
        kernel: The kernel; ``fields``: of the launch, but for its program and its arguments.
        arch, stack: What the program is compiled for; ``both``, ``cut``: see ``Overlap``.
        direct: Whether it writes into the shared memory itself, see ``ParallelLaunch``.
        arrays: Its global memory, whose content is at ``places`` of the shared memory ``common``;
            ``missing``: those with a table of what nothing has written, which come after them.
        first, last: The share: clusters of the grid, of which a batch has ``size``.
    """

    kernel: Kernel
    fields: dict[str, object]
    arch: int
    stack: int
    checks: Collection[str]
    closer: PrecisionPlan
    both: Collection[int]
    arrays: tuple[Array, ...]
    missing: tuple[int, ...]
    common: str
    places: Sequence[tuple[int, int]]
    size: int
    cut: bool
    direct: bool
    first: int
    last: int

    def launch(self) -> PreparedLaunch:
        """The launch, as far as its blocks need it."""
        program = compile_ptx(self.kernel.ptx, self.kernel.entry, self.arch, self.stack)
        arguments = Arguments(self.kernel.params)
        return PreparedLaunch(self.kernel, program, arguments, **self.fields)  # type: ignore[arg-type]

    def allocations(self, contents: list[Flat]) -> dict[int, Allocation]:
        """The launch's global memory."""
        made = {}
        for array, content in zip(self.arrays, contents, strict=False):
            made[array.number] = Allocation(
                array.number,
                content,
                array.name,
                array.writable,
                array.nbytes,
                array.space,
                own=True,
            )
            made[array.number].unfilled = array.unfilled
        for number, content in zip(self.missing, contents[len(self.arrays) :], strict=True):
            made[number].missing = content.view(bool)
        return made


@dataclass
class ShardResult:
    """Result of a shard: its observers, and the sums that it added to arrays, by number.

    Written values are in the shared memory. ``changed``: the arrays that the shard wrote.
    """

    observers: Observers
    overlap: Overlap
    sums: dict[int, list[Sum]]
    changed: set[int]


class Cancelled(Exception):
    """Nobody needs what this process does."""


def share_of(
    launch: PreparedLaunch, checks: Collection[str], closer: PrecisionPlan, both: Collection[int]
) -> Task:
    """A task for a launch; its memory and the share are still to be said."""
    kernel = dataclasses.replace(launch.kernel, adapter=None, origin=None)
    fields = {f.name: getattr(launch, f.name) for f in dataclasses.fields(launch)}
    for name in ("kernel", "program", "arguments"):
        del fields[name]
    program = launch.program
    return Task(
        kernel, fields, program.arch, program.stack, frozenset(checks), dict(closer),
        frozenset(both), (), (), "",
        (), 0, False, False, 0, 0,
    )  # fmt: skip


def unset(made: dict[int, Allocation]) -> dict[int, Flat]:
    """Which bytes nothing has written, by arrays of which there are such."""
    return {n: a.missing for n, a in made.items() if a.missing is not None}


def put(made: dict[int, Allocation], direct: bool) -> SharedArena:
    """Global memory in memory that all see: a copy; or all there is, if they write to it.

    Raises:
        Alone: There is not that much.
    """
    missing = unset(made)
    contents = [a.buffer for a in made.values()] + [m.view("u1") for m in missing.values()]
    try:
        common = SharedArena.make(contents)
    except OSError:
        raise SerialFallback("there is not enough shared memory for its arrays") from None
    if direct:
        views = iter(common.views())
        buffers = {number: next(views) for number in made}
        tables = {number: next(views).view(bool) for number in missing}
        for number, allocation in made.items():
            allocation.move(buffers[number])
            allocation.missing, allocation.lent_flags = tables.get(number), False
    return common


def run_share(task: bytes) -> bytes:
    """Run a pickled ``Task``; gives a packed ``ShardResult``, or pickled, what was raised instead.

    An empty task is done at once: the process has started.
    """
    if not task:
        return b""
    share: Task = pickle.loads(task)
    common = SharedArena.find(share.common, share.places)
    try:
        return _run(share, common)
    except (EscalateCheck, InterBlockWait, SerialFallback, Cancelled) as instead:
        return b"!" + pickle.dumps(instead)
    finally:
        common.close()


def _run(share: Task, common: SharedArena) -> bytes:
    contents = common.views() if share.direct else common.own()
    launch, allocations = share.launch(), share.allocations(contents)
    watch = watched(share.checks, share.closer, share.direct)
    overlap = Overlap(launch.program, launch.granules.array, share.both, share.cut, watch)
    observers = Observers(launch, share.checks, None, allocations, share.closer, overlap)

    def progress(done: int, total: int) -> None:
        if common.vain:
            raise Cancelled

    todo = pieces(launch, share.first, share.last, share.size)
    run_batches(launch, allocations, observers.dispatcher, todo, progress=progress)
    sums = {} if share.direct else _changes(share, common, overlap, allocations)
    done = ShardResult(observers, overlap, sums, {n for n, a in allocations.items() if a.changed})
    return b"=" + pack(done, launch, allocations)


def _changes(
    share: Task, common: SharedArena, overlap: Overlap, allocations: dict[int, Allocation]
) -> dict[int, list[Sum]]:
    """Put what was written into the shared memory, and tell what was added.

    Another share that runs now may come to see it: but then it touches what this one changes, and
    the launch runs again in one process. (Here, so that nothing keeps the memory in use.)
    """
    arrays = dict(zip((array.number for array in share.arrays), common.arrays(), strict=False))
    sums = {n: overlap.sums(allocations[n], arrays[n]) for n in overlap.changed()}
    for number in sums:
        overlap.copy(number, allocations[number].buffer, arrays[number])
    return sums
