"""Shard of a launch: some of its blocks, executed in a worker process."""

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
    """Attributes of an allocation without its content."""

    number: int
    name: str
    writable: bool
    nbytes: int
    space: str
    unfilled: bool

    @classmethod
    def of(cls, made: Allocation) -> "Array":
        """Return the attributes of an allocation."""
        return cls(made.number, made.name, made.writable, made.nbytes, made.space, made.unfilled)


@dataclass(frozen=True)
class Task:
    """A shard of a launch.

    Attributes:
        kernel: The kernel.
        fields: Fields of the launch except program and arguments.
        arch, stack, first_variable: Compilation parameters.
        both, cut: See ``Overlap``.
        direct: Whether it writes directly to shared memory: see ``ParallelLaunch``.
        arrays: Global memory, with contents at ``places`` of the arena ``common``.
        missing: Arrays with a table of uninitialised bytes, which follow them.
        first, last: Range of clusters, ``size`` to a batch.
    """

    kernel: Kernel
    fields: dict[str, object]
    arch: int
    stack: int
    first_variable: int
    checks: Collection[str]
    precision: PrecisionPlan
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
        """Return the launch, as far as its blocks need it."""
        program = compile_ptx(
            self.kernel.ptx, self.kernel.entry, self.arch, self.stack, self.first_variable
        )
        arguments = Arguments(self.kernel.params)
        return PreparedLaunch(self.kernel, program, arguments, **self.fields)  # type: ignore[arg-type]

    def allocations(self, contents: list[Flat]) -> dict[int, Allocation]:
        """Return the launch's global memory."""
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
    """The work of this process is no longer needed."""


def share_of(
    launch: PreparedLaunch, checks: Collection[str], precision: PrecisionPlan, both: Collection[int]
) -> Task:
    """Return a task for a launch, without memory and range."""
    kernel = dataclasses.replace(launch.kernel, adapter=None, origin=None)
    fields = {f.name: getattr(launch, f.name) for f in dataclasses.fields(launch)}
    for name in ("kernel", "program", "arguments"):
        del fields[name]
    program = launch.program
    return Task(
        kernel, fields, program.arch, program.stack, program.first_variable, frozenset(checks),
        dict(precision),
        frozenset(both), (), (), "",
        (), 0, False, False, 0, 0,
    )  # fmt: skip


def uninitialised_bytes(made: dict[int, Allocation]) -> dict[int, Flat]:
    """Return the flags of uninitialised bytes, by array."""
    return {n: a.missing for n, a in made.items() if a.missing is not None}


def put(made: dict[int, Allocation], direct: bool) -> SharedArena:
    """Copy global memory to an arena, or move it there if processes write directly.

    Raises:
        SerialFallback: There is not enough shared memory.
    """
    missing = uninitialised_bytes(made)
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
    """Execute a pickled ``Task``; return a packed ``ShardResult`` or a pickled exception.

    An empty task returns at once, to start the process.
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
    watch = watched(share.checks, share.precision, share.direct)
    overlap = Overlap(launch.program, launch.granules.array, share.both, share.cut, watch)
    observers = Observers(launch, share.checks, None, allocations, share.precision, overlap)

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
    """Copy written data to the arena and return the sums.

    Another running shard might read them, but then it conflicts with this one and the launch is
    repeated in one process. (A separate function, so that no reference keeps the memory in use.)
    """
    arrays = dict(zip((array.number for array in share.arrays), common.arrays(), strict=False))
    sums = {n: overlap.sums(allocations[n], arrays[n]) for n in overlap.changed()}
    for number in sums:
        overlap.copy(number, allocations[number].buffer, arrays[number])
    return sums
