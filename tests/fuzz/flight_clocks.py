"""Who races in a program with asynchronous copies: byte by byte, each copy a thread of its own.

A copy knows what its thread knew when it was issued, and is done at some time after; whoever has
waited for it knows that it is. So it is one write (or read) in a vector clock's world, by somebody
whom nobody knows until the wait. What it reads of global memory it reads when it is issued.
What a copy in bulk reads of shared memory has to have passed a fence between the proxies: somebody
who knows the write executes it, and the issuing thread knows that.
"""

from dataclasses import dataclass, field

from tests.fuzz.flight_program import Arrive, Await, Bulk, Copy, Program, ProxyFence, Queue
from tests.fuzz.race_clocks import meetings
from tests.fuzz.race_program import AREA, WARP, Access, Fence

Key = tuple[str, str, str]
"""Space, ``raw``/``war``/``waw``, ``warning``/``error``."""


@dataclass
class Verdict:
    """What is to be found.

    Attributes:
        wanted: Sets of keys of which one at least has to be told of.
        allowed: All that may be; ``steps``: what may be named.
    """

    wanted: set[frozenset[Key]] = field(default_factory=set)
    allowed: set[Key] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Seen:
    """An access: who (a copy is somebody of its own), when, by which thread and step."""

    who: int
    time: int
    thread: int
    step: int
    writes: bool
    atomic: bool = False
    copy: bool = False
    value: int = 0


Clock = list[int]


@dataclass(frozen=True)
class _Fence:
    """A fence between the proxies: whose, and what that thread knew."""

    thread: int
    step: int
    known: Clock


@dataclass
class _Barrier:
    count: int
    pending: int
    heard: Clock
    ended: Clock
    bytes: int = 0
    phases: int = 0
    flying: list[int] = field(default_factory=list)
    landed: list[int] = field(default_factory=list)


class Detector:
    """Goes through a block's part of a program, all threads a step at a time."""

    def __init__(self, program: Program, block: int, verdict: Verdict) -> None:
        self.program, self.size, self.block = program, program.threads, block
        copies = sum(
            self.size if isinstance(s, Copy) else 2 for s in program.steps
            if isinstance(s, Copy | Bulk)
        )  # fmt: skip
        self.total = self.size + copies
        self.known: list[Clock] = [[0] * self.total for _ in range(self.total)]
        for who in range(self.size):
            self.known[who][who] = 1
        self.ready, self.later = ([[0] * self.total for _ in range(self.size)] for _ in range(2))
        self.next = self.size
        self.waited: dict[int, int] = {}
        self.landed: dict[int, set[int]] = {}
        self.open: dict[tuple[int, str], list[int]] = {}
        self.groups: dict[tuple[int, str], list[list[int]]] = {}
        self.barriers = [_Barrier(n, n, [0] * self.total, [0] * self.total) for n in program.counts]
        self.seen: dict[tuple[str, int], list[_Seen]] = {}
        # Of each byte of the shared area: its writes, each with those that it came after.
        self.written: dict[int, list[tuple[_Seen, list[_Seen]]]] = {}
        self.fences: list[_Fence] = []
        self.verdict = verdict

    def run(self) -> None:
        for number, step in enumerate(self.program.steps):
            self.number = number
            if isinstance(step, Bulk):
                self.bulk(step)
            elif isinstance(step, Access | Copy | Queue | Arrive | Await | Fence | ProxyFence):
                for thread in range(self.size):
                    if step.guard.holds(self.block, thread):
                        self.thread(step, thread)
            else:
                for givers, takers in meetings(step, self.size):
                    told = [max(times) for times in zip(*map(self.knows, givers), strict=True)]
                    for thread in takers:
                        _join(self.known[thread], told)
                    for thread in givers:
                        self.tick(thread)

    def knows(self, who: int) -> Clock:
        return self.known[who]

    def tick(self, thread: int) -> None:
        self.known[thread][thread] += 1

    def thread(
        self, step: Access | Copy | Queue | Arrive | Await | Fence | ProxyFence, t: int
    ) -> None:
        """One thread's part of a step."""
        if isinstance(step, Access):
            mine = _Seen(
                t, self.known[t][t], t, self.number, step.writes, step.kind != "load" and
                step.kind != "store",
            )  # fmt: skip
            for element in step.elements(0, t):
                for byte in range(element, element + step.width):
                    self.meet(step.space, byte, mine)
        elif isinstance(step, Copy):
            who = self.issue(t, "copy")
            mine = _Seen(who, 1, t, self.number, True, copy=True)
            for byte in range(step.first(t), step.first(t) + step.width):
                self.meet("shared", byte % AREA, mine)
        elif isinstance(step, Queue):
            self.queue(step, t)
        elif isinstance(step, Arrive):
            self.arrive(step, t)
        elif isinstance(step, Await):
            barrier = self.barriers[step.barrier]
            assert barrier.phases & 1 != step.parity, "the program waits for ever"
            _join((self.later if step.relaxed else self.known)[t], barrier.ended)
            self.done(barrier.landed)
            for who in barrier.landed:
                self.landed.setdefault(who, set()).add(t // WARP)
        elif isinstance(step, Fence):
            _join(self.known[t], self.later[t])
            self.ready[t] = list(self.known[t])
            self.tick(t)
        else:
            self.fences.append(_Fence(t, self.number, list(self.known[t])))
            self.tick(t)

    def issue(self, thread: int, queue: str) -> int:
        """A copy begins: somebody new, who knows what its thread knows."""
        who, self.next = self.next, self.next + 1
        self.known[who] = list(self.known[thread])
        self.known[who][who] = 1
        self.open.setdefault((thread, queue), []).append(who)
        self.tick(thread)
        return who

    def done(self, copies: list[int]) -> None:
        for who in copies:
            self.waited.setdefault(who, self.number)

    def queue(self, step: Queue, t: int) -> None:
        """Groups end, or are waited for; a bulk copy's reads and writes are done apart."""
        for queue in ("read", "write") if step.bulk else ("copy",):
            groups = self.groups.setdefault((t, queue), [])
            if step.what != "wait":
                groups.append(self.open.pop((t, queue), []))
            if step.what == "commit" or (step.read and queue == "write"):
                continue
            left = step.left if step.what == "wait" else 0
            for group in groups[: max(0, len(groups) - left)]:
                for who in group:
                    _join(self.known[t], self.known[who])
                self.done(group)

    def arrive(self, step: Arrive, t: int) -> None:
        barrier = self.barriers[step.barrier]
        _join(barrier.heard, (self.ready if step.relaxed else self.known)[t])
        self.tick(t)
        if step.copies:
            mine = [*self.open.get((t, "copy"), [])]
            mine += [who for group in self.groups.get((t, "copy"), []) for who in group]
            for who in mine:
                _join(barrier.heard, self.known[who])
            barrier.flying += mine
        barrier.pending -= 1
        barrier.bytes += step.expect
        self.ends(barrier)

    def ends(self, barrier: _Barrier) -> None:
        """A phase does, when nothing is to come."""
        if not barrier.pending and not barrier.bytes:
            barrier.ended, barrier.heard = barrier.heard, [0] * self.total
            barrier.landed, barrier.flying = barrier.flying, []
            barrier.pending, barrier.phases = barrier.count, barrier.phases + 1

    def bulk(self, step: Bulk) -> None:
        t, place = step.thread, range(step.place, step.place + step.size)
        if step.barrier >= 0:
            who = self.issue(t, "bytes")
            for byte in place:
                self.meet("shared", byte, _Seen(who, 1, t, self.number, True, copy=True))
            barrier = self.barriers[step.barrier]
            _join(barrier.heard, self.known[who])
            barrier.flying.append(who)
            barrier.bytes -= step.size
            self.ends(barrier)
            return
        for byte in place:
            self.proxy(byte, t)
        reads = self.issue(t, "read")
        writes = self.issue(t, "write")
        for i, byte in enumerate(place):
            self.meet("shared", byte, _Seen(reads, 1, t, self.number, False, copy=True))
            there = _Seen(writes, 1, t, self.number, True, copy=True, value=1)
            self.meet("global", step.there + i, there)

    def proxy(self, byte: int, reader: int) -> None:
        """What a reader knows and nothing replaced, if by a thread itself, has passed a fence."""
        written = self.written.get(byte, [])
        known = [(last, over) for last, over in written if self.before(last, reader)]
        for last in (one for one, _ in known if all(one not in over for _, over in known)):
            if last.copy or self.fenced(last, reader):
                continue
            key = ("shared", "raw", "error")
            self.verdict.allowed.add(key)
            self.verdict.steps |= {last.step, self.number}
            # Else the lanes of a warp may be meant as one.
            if not any(f.thread // WARP == last.thread // WARP for f in self.fences):
                self.verdict.wanted.add(frozenset({key}))

    def fenced(self, write: _Seen, reader: int) -> bool:
        """Whether somebody who knew of a write has executed a fence that the reader knows of."""
        return any(
            f.known[write.thread] >= write.time
            and (f.thread == reader or self.known[reader][f.thread] >= f.known[f.thread])
            for f in self.fences
        )

    def before(self, one: _Seen, who: int) -> bool:
        """Whether somebody knows of an access."""
        return one.who == who or self.known[who][one.who] >= one.time

    def meet(self, space: str, byte: int, mine: _Seen) -> None:
        earlier = self.seen.setdefault((space, byte), [])
        for other in earlier:
            if (mine.writes or other.writes) and not self.before(other, mine.who):
                self.judge(space, other, mine)
        earlier.append(mine)
        if mine.writes and space == "shared":
            written = self.written.setdefault(byte, [])
            written.append((mine, [s for s, _ in written if self.before(s, mine.who)]))

    def judge(self, space: str, one: _Seen, two: _Seen) -> None:
        """Two accesses, of which the first comes first in the program, race."""
        if one.atomic and two.atomic:
            return
        kind = "waw" if one.writes and two.writes else "war" if two.writes else "raw"
        near = one.thread // WARP == two.thread // WARP
        severity = {"error"}
        if near and not (one.writes and two.writes and one.step == two.step):
            severity = {"warning"}
            if one.copy and self.waited.get(one.who, self.number) >= two.step:
                severity = {"error"}  # under way, whatever a warp does together
        if one.value and one.value == two.value:
            severity = {"warning", "error"}  # the same bytes, if nobody wrote between
        warps = self.landed.get(one.who, set())
        if warps:  # told by the copy's phase: by whoever of a warp waits, perhaps, for all of it
            severity = {"warning", "error"}
        keys = {(space, kind, s) for s in severity}
        # One hazard says of two lines what is worst.
        copy = one.copy or two.copy
        worse = {(space, kind, "error")} if near and (copy or self.program.blocks > 1) else set()
        if two.thread // WARP not in warps:
            self.verdict.wanted.add(frozenset(keys | worse))
        self.verdict.allowed |= keys
        self.verdict.steps |= {one.step, two.step}


def _join(into: Clock, other: Clock) -> None:
    into[:] = map(max, into, other)


def detect(program: Program) -> Verdict:
    """What is to be found in a program; blocks have nothing to do with each other."""
    verdict = Verdict()
    for block in range(program.blocks):
        Detector(program, block, verdict).run()
    return verdict
