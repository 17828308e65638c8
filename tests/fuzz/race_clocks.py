"""Which pairs of threads race in a program of the net: told byte by byte, with vector clocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.race_program import (
    WARP,
    Access,
    BlockBarrier,
    ClusterArrive,
    ClusterWait,
    Fence,
    Flag,
    Lock,
    NamedBarrier,
    Program,
    Step,
    WarpBarrier,
)

Clock = NDArray[np.int64]
Key = tuple[str, str, str, int, int]
"""Space, ``raw``/``war``/``waw``, ``warning``/``error``, and the two steps.

Inside ``detect`` ``stale``, ``fresh`` besides: behind a relaxed look, where a sector may be held.
"""
Verdict = dict[Key, set[tuple[int, int]]]
"""Pairs of threads, by what they do to each other."""


@dataclass(frozen=True)
class _Seen:
    thread: int
    time: int
    step: int
    access: Access
    element: int


SECTOR = 32
LEVELS = {"cta": 0, "cluster": 1}
"""How far a scope reaches: within the block, its cluster, or (2) all of the device."""


@dataclass(frozen=True)
class _Arrived:
    """What the threads of a cluster have brought: that they know, and may hand on from afar."""

    known: Clock
    near: Clock
    far: Clock


class Clocks:
    """What threads know of each other, and what each may hand on: so far as its fences reach.

    What they have found in flags they know from a fence on. A barrier of the block is none:
    ``met`` is what they would know by it, which is enough for writes
    (``races/order/release_acquire.py``).
    """

    def __init__(self, program: Program) -> None:
        self.program, self.size = program, program.threads
        self.total = self.size * program.blocks
        self.known = self._nothing()
        for thread in range(self.total):
            self.known[thread][thread] = 1
        self.ready, self.found, self.fenced = (
            [self._nothing() for _ in range(3)] for _ in range(3)
        )
        self.met = self._nothing()
        self.arrived: dict[int, _Arrived] = {}
        self.looks: dict[int, list[tuple[int, int]]] = {}  # relaxed: by block, thread and its time
        self.loads: dict[tuple[int, int], int] = {}
        self.asked: list[tuple[int, int, tuple[int, int], int]] = []

    def _nothing(self) -> NDArray[np.int64]:
        return np.zeros((self.total, self.total), np.int64)

    def distance(self, one: int, other: int) -> int:
        """The level that covers two threads."""
        return distance(self.program, one // self.size, other // self.size)

    def fence(self, thread: int, scope: str) -> None:
        reaches = range(LEVELS.get(scope, 2) + 1)
        for reach in reaches:
            join(self.known[thread], self.found[reach][thread])
        for reach in reaches:
            for table in (self.ready, self.fenced):
                join(table[reach][thread], self.known[thread])
        self.known[thread][thread] += 1

    def meet(self, givers: Sequence[int], takers: Sequence[int], step: Step) -> None:
        """What was fenced passes on; and what flags said, which takes a fence still.

        Who only arrives knows no more by that than before.
        """
        tables = [self.known, *self.ready, *self.found, self.met]
        if not isinstance(step, WarpBarrier):
            heard = [found[giver] for giver, found in product(givers, self.found)]
            for thread, found in product(takers, heard):
                join(self.met[thread], found)
        for table in tables:
            told = table[list(givers)].max(axis=0)
            for thread in takers:
                join(table[thread], told)
        for thread in {*givers, *takers}:
            self.known[thread][thread] += 1

    def load(self, thread: int, byte: int) -> None:
        """A weak load leaves its sector in L1; kept: of how few looks a loading thread knew."""
        at, looks = self.sector(thread, byte)
        self.loads[at] = min(looks, self.loads.get(at, looks))

    def sector(self, thread: int, byte: int) -> tuple[tuple[int, int], int]:
        """A sector that a thread reads, and of how many looks it knows."""
        return (thread // self.size, byte // SECTOR), self._looked(thread)

    def held(self) -> set[tuple[int, int]]:
        """The instructions that may race for a sector which was loaded before a look."""
        return {
            (one, other)
            for one, other, at, looks in self.asked
            if self.loads.get(at, looks) < looks
        }

    def _looked(self, thread: int) -> int:
        known = self.known[thread]
        return sum(known[who] >= time for who, time in self.looks.get(thread // self.size, ()))

    def arrive(self, threads: Sequence[int], relaxed: bool) -> None:
        """The threads of a cluster arrive at its barrier.

        Relaxed, each hands on what it has fenced itself. A fence within a block is none here.
        """
        given = _Arrived(*(np.zeros_like(one[0]) for one in (self.known, *self.ready[1:])))
        for thread in threads:
            join(given.known, (self.fenced[1] if relaxed else self.known)[thread])
            for reach, ready in ((1, given.near), (2, given.far)):
                join(ready, (self.fenced if relaxed else self.ready)[reach][thread])
            for found in [] if relaxed else self.found:
                join(given.known, found[thread])
            self.known[thread][thread] += 1
        self.arrived[threads[0]] = given

    def wait(self, threads: Sequence[int]) -> None:
        """They wait until all of them have arrived."""
        given = self.arrived[threads[0]]
        for thread in threads:
            join(self.known[thread], given.known)
            for found in self.found:
                join(self.known[thread], found[thread])
            for reach, ready in ((1, given.near), (2, given.far)):
                join(self.ready[reach][thread], ready)

    def flag(self, step: Flag) -> None:
        giver, taker = (b * self.size + t for b, t in (step.giver, step.taker))
        if step.before:
            self.fence(giver, step.before)
        reach = self.distance(giver, taker)
        told = self.ready[reach][giver].copy()
        if step.itself and step.put != "volatile":
            join(told, self.known[giver])
            join(told, self.met[giver])
        self.known[giver][giver] += 1
        if step.looks and reach <= min(LEVELS.get(scope, 2) for scope in (step.put, step.get)):
            join(self.found[reach][taker], told)
            if step.itself and step.get != "volatile":
                join(self.known[taker], told)
            else:
                block = step.taker[0]
                look = int(self.known[taker][taker])
                self.looks.setdefault(block, []).append((taker, look))
        if step.after:
            self.fence(taker, step.after)


def join(into: Clock, other: Clock) -> None:
    np.maximum(into, other, out=into)


def detect(program: Program) -> Verdict:
    """Every pair of threads that race."""
    size, clocks = program.threads, Clocks(program)
    seen: dict[tuple[str, int, int], list[_Seen]] = {}
    found: Verdict = {}
    for number, step in enumerate(program.steps):
        if isinstance(step, Access):
            for thread in range(size * program.blocks):
                block, tid = divmod(thread, size)
                if step.guard.holds(block, tid):
                    _access(program, number, step, thread, clocks, seen, found)
        elif isinstance(step, Fence):
            for thread in range(size * program.blocks):
                if step.guard.holds(*divmod(thread, size)):
                    clocks.fence(thread, step.scope)
        elif isinstance(step, Lock):
            _judge_lock(number, step, program, found)
        elif isinstance(step, Flag):
            clocks.flag(step)
            _judge_flag(number, step, program, found)
        elif isinstance(step, ClusterArrive | ClusterWait):
            of = size * program.cluster
            for first in range(0, size * program.blocks, of):
                threads = range(first, first + of)
                if isinstance(step, ClusterArrive):
                    clocks.arrive(threads, step.relaxed)
                else:
                    clocks.wait(threads)
        else:
            for block in range(program.blocks):
                for givers, takers in meetings(step, size):
                    ours = [[block * size + t for t in who] for who in (givers, takers)]
                    if ours[0]:
                        clocks.meet(*ours, step)
    return _grouped(found, program, clocks.held())


def meetings(step: Step, threads: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Who tells whom at a barrier, within a block."""
    if isinstance(step, BlockBarrier):
        yield range(threads), range(threads)
    elif isinstance(step, NamedBarrier):
        takers = [t for t in range(threads) if t // WARP in step.waits]
        givers = [t for t in range(threads) if t // WARP in step.arrives]
        yield takers + givers, takers
    elif isinstance(step, WarpBarrier):
        for first in range(0, threads, WARP):
            warp = range(first, min(first + WARP, threads))
            for mask in step.masks:
                members = [t for t in warp if mask >> (t % WARP) & 1]
                yield members, members


def _access(
    program: Program, number: int, step: Access, thread: int, clocks: Clocks,
    seen: dict[tuple[str, int, int], list[_Seen]], found: Verdict,
) -> None:  # fmt: skip
    block, tid = divmod(thread, program.threads)
    clock = clocks.known[thread].tolist()
    weak = step.kind == "load" and step.order == "weak"
    tables = [] if step.kind == "store" and step.order == "weak" else [*clocks.found]
    lesser = [clocks.met[thread], *(table[thread] for table in tables)]
    if not weak:
        clock = np.maximum.reduce([clocks.known[thread], *lesser]).tolist()
    for element in step.elements(block, tid):
        mine = _Seen(thread, clock[thread], number, step, element)
        for byte in range(element, element + step.width):
            home = step.home(block, program.cluster)
            earlier = seen.setdefault((step.space, home, byte), [])
            for other in earlier:
                if other.thread != thread and other.time > clock[other.thread]:
                    severity = _severity(program, other, mine)
                    if severity == "error" and weak and _read_late(other, lesser):
                        fresh = other.time <= lesser[0][other.thread]
                        far = other.thread // program.threads != block
                        severity = "fresh" if fresh else "stale"
                        if far and step.space == "global":
                            clocks.asked.append((other.step, number, *clocks.sector(thread, byte)))
                    if severity:
                        kind = "waw" if other.access.writes and step.writes else ""
                        kind = kind or ("war" if step.writes else "raw")
                        key = (step.space, kind, severity, other.step, number)
                        pair = (min(thread, other.thread), max(thread, other.thread))
                        found.setdefault(key, set()).add(pair)
            earlier.append(mine)
            if weak and step.space == "global":
                clocks.load(thread, byte)


def _grouped(found: Verdict, program: Program, held: set[tuple[int, int]]) -> Verdict:
    """The severities behind relaxed looks: of two instructions, so far apart, one alone."""
    out: Verdict = {}
    for (space, kind, severity, *steps), pairs in found.items():
        for pair in pairs:
            said = severity
            if severity in ("stale", "fresh"):
                stale = found.get((space, kind, "stale", steps[0], steps[1]), set())
                reach = reach_of(pair, program)
                said = "error" if any(reach_of(p, program) == reach for p in stale) else "warning"
                said = "error" if reach == "block" and (steps[0], steps[1]) in held else said
            out.setdefault((space, kind, said, steps[0], steps[1]), set()).add(pair)
    return out


def reach_of(pair: tuple[int, int], program: Program) -> str:
    """How far apart two threads are."""
    (one, mine), (other, yours) = (divmod(thread, program.threads) for thread in pair)
    if one != other:
        return "block"
    return "lane" if mine // WARP == yours // WARP else "warp"


def _read_late(other: _Seen, lesser: Sequence[Clock]) -> bool:
    """Whether a fence behind a relaxed look would have ordered a write before a weak read."""
    return any(other.time <= clock[other.thread] for clock in lesser)


def _severity(program: Program, one: _Seen, two: _Seen) -> str:
    """``error``, ``warning``, or nothing: they do not race."""
    a, b = one.access, two.access
    if not (a.writes or b.writes):
        return ""
    size = program.threads
    same_block = one.thread // size == two.thread // size
    apart = distance(program, one.thread // size, two.thread // size)
    same_warp = same_block and one.thread % size // WARP == two.thread % size // WARP
    one_step = one.step == two.step
    atomics = [x.kind in ("atomic", "quiet") for x in (a, b)]
    strong = [x.order != "weak" or atomic for x, atomic in zip((a, b), atomics, strict=True)]
    volatile = a.order == b.order == "volatile"
    covers = (one.element, a.width) == (two.element, b.width)
    both_write, equal = a.writes and b.writes, program.equal and a.kind == b.kind == "store"
    if all(strong) and covers:
        if volatile:
            if a.space == "global" or (both_write and equal):
                return "warning"
        elif apart <= min(LEVELS.get(order, 2) for order in (a.order, b.order)):
            return ""
    if not both_write and "quiet" in (a.kind, b.kind):
        return "warning"
    if both_write and equal:
        return "warning"
    return "warning" if same_warp and not (both_write and one_step) else "error"


def _judge_lock(number: int, step: Lock, program: Program, found: Verdict) -> None:
    """Who has let the lock go reads what the writer may write, whoever was first."""
    writer, *readers = (block * program.threads + tid for block, tid in step.takers)
    for i, reader in enumerate(readers, 1):
        if step.early in (0, i):
            key = ("global", "raw", "error", number, number)
            found.setdefault(key, set()).add((min(reader, writer), max(reader, writer)))


def _judge_flag(number: int, step: Flag, program: Program, found: Verdict) -> None:
    """The flag itself: too narrow a scope, or volatile and not looked at."""
    giver, taker = (b * program.threads + t for b, t in (step.giver, step.taker))
    apart = distance(program, step.giver[0], step.taker[0])
    both = step.put == step.get == "volatile"
    narrow = apart > min(LEVELS.get(scope, 2) for scope in (step.put, step.get))
    if narrow or (both and not step.looks):
        key = ("global", "raw", "error" if narrow else "warning", number, number)
        found.setdefault(key, set()).add((min(giver, taker), max(giver, taker)))


def distance(program: Program, one: int, other: int) -> int:
    """The level (``LEVELS``) that covers two blocks."""
    if one == other:
        return LEVELS["cta"]
    return LEVELS["cluster"] if one // program.cluster == other // program.cluster else 2
