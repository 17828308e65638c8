"""Random programs with asynchronous copies that always end: free ones, and pipelines with a fault.

Nobody may wait for a phase that does not come, or overlook one that has passed: who arrives knows
that the phase before is over, and everybody who waited for that has, by then."""

import dataclasses
import random

from tests.fuzz.flight_program import (
    AREA,
    BARRIERS,
    Arrive,
    Await,
    Bulk,
    Copy,
    Program,
    ProxyFence,
    Queue,
    Step,
)
from tests.fuzz.race_program import (
    WARP,
    Access,
    BlockBarrier,
    Fence,
    Guard,
    NamedBarrier,
    WarpBarrier,
)

THREADS = (32, 33, 64, 70, 96)
ALL = Guard()


class _Barrier:
    """What is known of an mbarrier where a program is being written."""

    def __init__(self, members: list[int], threads: int) -> None:
        self.members, self.threads = members, threads
        self.arrived: set[int] = set()
        self.phases = 0
        self.know, self.loose = set(range(threads)), set[int]()
        self.bytes = False

    def may_arrive(self, who: set[int]) -> bool:
        return not self.loose and who <= (set(self.members) - self.arrived) & self.know

    def arrive(self, who: set[int], expects: bool = False) -> None:
        self.arrived |= who
        self.bytes |= expects
        if self.arrived == set(self.members):
            self.arrived, self.phases = set(), self.phases + 1
            self.know = set()

    def may_wait(self, who: set[int]) -> bool:
        """For the last phase that is over, or before the first one."""
        return not self.arrived or who <= set(self.members) - self.arrived

    def wait(self, who: set[int]) -> None:
        self.know |= who
        self.loose |= who - set(self.members)

    def block(self) -> None:
        self.loose = set()
        if self.know or not self.bytes:
            self.know = set(range(self.threads))
            self.bytes = False


class Writer:
    """Writes the steps of one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.threads = rng, rng.choice(THREADS)
        self.warps = -(-self.threads // WARP)
        self.steps: list[Step] = []
        self.barriers: list[_Barrier] = []
        for _ in range(rng.randrange(3)):
            guard = rng.choice([Guard(0, 1), Guard(0, 32), ALL, ALL, Guard(self.threads - 1)])
            self.barriers.append(_Barrier(sorted(self.those(guard)), self.threads))

    def those(self, guard: Guard) -> set[int]:
        return {t for t in range(self.threads) if guard.holds(0, t)}

    def guard(self) -> Guard:
        rng, at = self.rng, self.rng.randrange(self.threads)
        return rng.choice([
            ALL, ALL, Guard(at, at + 1), Guard(0, 32), Guard(32), Guard(0, at + 1),
            Guard(step=2, rest=rng.randrange(2)),
        ])  # fmt: skip

    def access(self) -> Access:
        rng = self.rng
        space = "global" if rng.random() < 0.15 else "shared"
        return Access(
            space, rng.choice(["load", "load", "store"]), rng.choice([4, 4, 8]), 1, "weak",
            rng.choice([0, 0, 1, 31, 32]), rng.choice([0, 1, 1]), 0, rng.choice([0, 0, 1, 16]),
            self.guard(), rng.random() < 0.4,
        )  # fmt: skip

    def copy(self) -> Copy:
        rng = self.rng
        return Copy(
            rng.choice([4, 4, 8, 16]), rng.choice([0, 0, 1, 32]), rng.choice([0, 1, 1, 1]),
            rng.choice([0, 0, 1, 16]), self.guard(),
        )  # fmt: skip

    def place(self) -> tuple[int, int]:
        size = self.rng.choice([16, 32, 64])
        return self.rng.randrange(0, AREA - size + 1, 16), size

    def add(self, *steps: Step) -> None:
        self.steps += steps
        if any(isinstance(step, BlockBarrier) for step in steps):
            for barrier in self.barriers:
                barrier.block()

    # -- free programs ------------------------------------------------------------------

    def free(self) -> None:
        rng = self.rng
        ways = [
            (8, lambda: self.add(self.access())),
            (3, lambda: self.add(self.copy())),
            (1.5, lambda: self.add(Queue("commit", 0, self.guard()))),
            (1.5, lambda: self.add(Queue("wait", rng.randrange(2), self.guard()))),
            (1, lambda: self.add(Queue("all", 0, self.guard()))),
            (3, lambda: self.add(BlockBarrier())),
            (0.7, lambda: self.add(WarpBarrier())), (1.5, self.meet),
            (1, lambda: self.add(ProxyFence(self.guard()))),
            (2, self.arrive), (2.5, self.wait), (2, self.bring), (1.5, self.send),
        ]  # fmt: skip
        for _ in range(rng.randrange(3, 14)):
            rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()

    def meet(self) -> None:
        """Some warps, of which some may only arrive, at a barrier by a number of its own."""
        warps = self.rng.sample(range(self.warps), self.warps)
        waits = self.rng.randrange(1, len(warps) + 1)
        arrives = self.rng.randrange(len(warps) - waits + 1)
        if len(self.steps) < NamedBarrier.NUMBERS:
            self.add(NamedBarrier(tuple(warps[:waits]), tuple(warps[waits : waits + arrives])))

    def together(self) -> Step:
        """Where a tile changes hands: all of them meet."""
        named = len(self.steps) < NamedBarrier.NUMBERS and self.rng.random() < 0.3
        return NamedBarrier(tuple(range(self.warps))) if named else BlockBarrier()

    def arrive(self) -> None:
        for number, barrier in enumerate(self.barriers):
            guard = self.rng.choice([ALL, Guard(0, 1), Guard(0, 32), Guard(1), Guard(32)])
            who = self.those(guard)
            if who and barrier.may_arrive(who):
                barrier.arrive(who)
                self.add(Arrive(number, guard, copies=self.rng.random() < 0.4))
                return

    def wait(self) -> None:
        numbers = list(range(len(self.barriers)))
        self.rng.shuffle(numbers)
        for number in numbers:
            guard = self.guard()
            who, barrier = self.those(guard), self.barriers[number]
            if barrier.may_wait(who):
                barrier.wait(who)
                self.add(Await(number, guard, (barrier.phases - 1) & 1))
                return

    def bring(self) -> None:
        for number, barrier in enumerate(self.barriers):
            left = set(barrier.members) - barrier.arrived
            if left and barrier.may_arrive({min(left)}):
                thread, (place, size) = min(left), self.place()
                barrier.arrive({thread}, expects=True)
                self.add(Arrive(number, Guard(thread, thread + 1), expect=size))
                self.add(Bulk(thread, place, size, number))
                others = Guard(thread + 1)
                if len(left) > 1 and self.rng.random() < 0.5:  # the others wait for a wrong phase
                    who = self.those(others) & set(barrier.members)
                    if who == self.those(others) and barrier.may_wait(who):
                        barrier.wait(who)
                        self.add(Await(number, others, (barrier.phases - 1) & 1))
                        self.add(dataclasses.replace(self.access(), space="shared", guard=others))
                return

    def send(self) -> None:
        rng, thread = self.rng, self.rng.choice([0, 0, self.threads - 1])
        place, size = self.place()
        mine = Guard(thread, thread + 1)
        if rng.random() < 0.6:
            self.add(ProxyFence(self.guard()), BlockBarrier())
        self.add(Bulk(thread, place, size, -1, rng.randrange(0, AREA - size + 1, 16)))
        if rng.random() < 0.8:
            self.add(Queue("commit", 0, mine, bulk=True))
        if rng.random() < 0.6:
            self.add(Queue("wait", rng.choice([0, 0, 1]), mine, True, rng.random() < 0.5))
        if rng.random() < 0.4:
            self.add(BlockBarrier())

    # -- pipelines ----------------------------------------------------------------------

    def stages(self) -> None:
        """Threads bring tiles for each other, one or two ahead of what they read."""
        rng, ahead = self.rng, self.rng.choice([1, 2])
        tile = AREA // 4
        width = rng.choice([4, 8, 16])
        guard = Guard(0, tile // width)
        flip = rng.choice([1, 15, 31])

        def bring(stage: int) -> Copy:
            return Copy(width, 0, 1, stage % (ahead + 1) * tile // width, guard)

        for stage in range(ahead):
            self.add(bring(stage), Queue("commit", 0, ALL))
        rounds = rng.randrange(2, 5)
        for stage in range(rounds):
            self.add(Queue("wait", ahead - 1, ALL))
            self.add(self.together())
            start = stage % (ahead + 1) * tile // 4
            self.add(Access("shared", "load", 4, flip=flip, start=start, guard=Guard(0, 16)))
            self.add(*([bring(stage + ahead)] if stage + ahead < rounds else []))
            self.add(Queue("commit", 0, ALL))
        self.fault((Queue, BlockBarrier, NamedBarrier))

    def ring(self) -> None:
        """One thread fills two stages in bulk, a warp reads them; full and empty mbarriers."""
        rng, producer = self.rng, self.threads - 1
        one, warp = Guard(producer, producer + 1), Guard(0, 16)
        full = [_Barrier([producer], self.threads) for _ in range(2)]
        self.barriers = [*full, *(_Barrier(list(range(16)), self.threads) for _ in range(2))]
        early = rng.choice([-1, -1, 0, 1, 2])
        rounds = rng.randrange(2, 6)
        last = rng.random() < 0.4
        for k in range(rounds):
            stage, parity = k & 1, k >> 1 & 1
            self.steps += [
                Await(2 + stage, one, parity ^ 1),
                Arrive(stage, one, expect=64), Bulk(producer, 64 * stage, 64, stage),
            ]  # fmt: skip
            read = Access("shared", "load", 4, flip=rng.choice([0, 15]), start=16 * stage,
                          guard=warp)  # fmt: skip
            arrive = Arrive(2 + stage, warp)
            if last and k >= rounds - 2 and rng.random() < 0.7:  # a wait that is missing
                self.steps.append(read)
                continue
            self.steps.append(Await(stage, warp, parity))
            self.steps += [arrive, read] if early in (k, 2) else [read, arrive]

    def stale(self) -> None:
        """Tiles come in by an mbarrier of all, and some wait for a phase that is over already.

        Theirs is not: they have not arrived.
        """
        rng, first, rest = self.rng, Guard(0, 1), Guard(1)
        self.barriers = [_Barrier(list(range(self.threads)), self.threads)]
        for phase in range(rng.randrange(2, 5)):
            place, parity = 64 * rng.randrange(AREA // 64), phase & 1
            read = Access("shared", "load", 4, flip=rng.choice([0, 15]), start=place // 4,
                          guard=Guard(rng.randrange(2), 16))  # fmt: skip
            self.add(Arrive(0, first, expect=64), Bulk(0, place, 64, 0))
            if phase and rng.random() < 0.6:
                self.add(*rng.choice([[], [BlockBarrier()]]), Await(0, rest, parity ^ 1))
                self.add(dataclasses.replace(read, guard=Guard(1, 16)))
            self.add(Arrive(0, rest), Await(0, ALL, parity), read, BlockBarrier())

    def relay(self) -> None:
        """What a warp has written is handed on from warp to warp, by barriers of every kind."""
        rng = self.rng
        first = holder = rng.randrange(self.warps)
        self.barriers = []
        self.add(Access("shared", "store", 4, guard=self.warp(first)))
        for _ in range(rng.randrange(2, 5)):
            taker, way = rng.randrange(self.warps), rng.randrange(5)
            if way < 2 and len(self.barriers) < BARRIERS:
                number = len(self.barriers)
                self.barriers.append(_Barrier(sorted(self.those(self.warp(holder))), self.threads))
                gives, takes = self.warp(holder), self.warp(taker)
                before, after = (
                    [Fence("cta", guard)] if rng.random() < 0.4 else [] for guard in (gives, takes)
                )
                relaxed, late = (rng.random() < 0.6 for _ in range(2))
                self.add(*before, Arrive(number, gives, relaxed=relaxed))
                self.add(Await(number, takes, 0, late), *after)
            elif way < 4 and taker != holder:
                arrives = NamedBarrier((taker,), (holder,))
                self.add(arrives if rng.random() < 0.7 else NamedBarrier((taker, holder)))
            else:
                self.add(BlockBarrier())
            holder = taker
        what, start = rng.choice(["load", "store"]), WARP * (first - holder)
        self.add(Access("shared", what, 4, start=start, guard=self.warp(holder)))
        self.fault((Await, NamedBarrier, BlockBarrier))

    def warp(self, number: int) -> Guard:
        return Guard(WARP * number, min(WARP * (number + 1), self.threads))

    def hand_out(self) -> None:
        """Threads write a tile, one of them sends it away, and they write again."""
        rng, tile = self.rng, Guard(0, 16)
        for _ in range(rng.randrange(1, 4)):
            self.add(Access("shared", "store", 4, guard=tile))
            self.add(ProxyFence(ALL))
            self.add(self.together(), Bulk(0, 0, 64, -1, 0))
            self.add(Queue("commit", 0, Guard(0, 1), bulk=True))
            self.add(Queue("wait", 0, Guard(0, 1), bulk=True, read=rng.random() < 0.5))
            self.add(BlockBarrier())
        self.fault((ProxyFence, BlockBarrier, NamedBarrier, Queue))

    def fault(self, kinds: tuple[type, ...]) -> None:
        """Perhaps one step is missing, or is only some threads'."""
        at = [i for i, step in enumerate(self.steps) if isinstance(step, kinds)]
        if self.rng.random() < 0.3:
            return
        number = self.rng.choice(at)
        step = self.steps[number]
        if self.rng.random() < 0.6 or isinstance(step, BlockBarrier | NamedBarrier):
            del self.steps[number]
        elif isinstance(step, Queue) and step.what == "wait" and self.rng.random() < 0.5:
            self.steps[number] = dataclasses.replace(step, left=step.left + 1)
        elif isinstance(step, Queue | ProxyFence):
            self.steps[number] = dataclasses.replace(step, guard=self.guard())


def draw(rng: random.Random) -> Program:
    """A program of a seed."""
    writer = Writer(rng)
    ways = [
        (6, writer.free), (2, writer.stages), (2, writer.ring), (1, writer.hand_out),
        (2, writer.relay), (1, writer.stale),
    ]  # fmt: skip
    rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
    counts = tuple(len(barrier.members) for barrier in writer.barriers)
    steps, blocks = _of_blocks(rng, writer.steps)
    return Program(tuple(steps), writer.threads, counts, blocks)


def _of_blocks(rng: random.Random, steps: list[Step]) -> tuple[list[Step], int]:
    """How many blocks may run the steps; what some do, only one of the blocks does."""
    if any(_writes_to_all(step) for step in steps) or rng.random() < 0.5:
        return steps, 1
    found, most = [], rng.choice([0, 0.2])
    for step in steps:
        if isinstance(step, Access | Copy | ProxyFence) and rng.random() < most:
            guard = dataclasses.replace(step.guard, block=rng.randrange(3))
            found.append(dataclasses.replace(step, guard=guard))
        else:
            found.append(step)
    return found, 3


def _writes_to_all(step: Step) -> bool:
    """Whether a step writes to the global array, which blocks have together."""
    if isinstance(step, Access):
        return step.space == "global" and step.writes
    return isinstance(step, Bulk) and step.barrier < 0
