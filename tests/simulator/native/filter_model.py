"""The race filter run as Python, beside an exact detector, on random accesses to one location.

The runtime's functions are Python; here they get memory that is a dictionary. Accesses come in the
order in which native code makes them: block after block, of each interval between barriers warp
after warp.
"""

import inspect
import random
from typing import Any, NamedTuple

from simulator.native import layout
from simulator.native.runtime import race_filter

SOURCE = inspect.getsource(race_filter).replace("from ..", "from simulator.native.")
LANES = (0, 1, 31)
CONTEXT, EPOCHS, SLOTS = 0, 100_000, 200_000


class Step(NamedTuple):
    """An access, or a barrier of a whole warp (``kind``: ``warp``).

    Attributes:
        kind: ``read``, ``write``, ``atomic``, ``wide`` (an atomic of 8 bytes) or ``warp``.
    """

    block: int
    interval: int
    warp: int
    lane: int
    kind: str


def draw(rng: random.Random) -> list[Step]:
    """Accesses of a launch."""
    steps = []
    kinds = rng.choice([
        ("read", "write"), ("read", "write", "atomic"), ("read", "atomic"), ("atomic", "wide"),
        ("read", "read", "read", "write", "atomic", "wide"),
        ("write", "atomic", "atomic", "atomic"),
    ])  # fmt: skip
    sticky, lane = rng.random() < 0.5, LANES[0]  # one thread goes on for a while
    few = rng.random() < 0.5  # mostly ordered: a thread or a warp, or an access an interval
    for block in range(rng.choice([1, 1, 1, 2, 3])):
        for interval in range(rng.randrange(1, 4)):
            for warp in sorted(rng.sample(range(3), 1 if few else rng.randrange(1, 4))):
                for _ in range(rng.randrange(1, 2 if few and rng.random() < 0.5 else 6)):
                    if rng.random() < 0.3:
                        steps.append(Step(block, interval, warp, 0, "warp"))
                    if not sticky or rng.random() < 0.3:
                        lane = rng.choice(LANES)
                    steps.append(Step(block, interval, warp, lane, rng.choice(kinds)))
    return steps


def ordered(one: int, other: int, steps: list[Step]) -> bool:
    """Whether an access surely comes before a later one."""
    a, b = steps[one], steps[other]
    if a.block != b.block:
        return False
    if a.interval < b.interval or (a.warp, a.lane) == (b.warp, b.lane):
        return True
    between = (s for s in steps[one + 1 : other] if s[:3] == a[:3])
    return a.warp == b.warp and any(s.kind == "warp" for s in between)


def conflict(a: Step, b: Step, is_shared: bool) -> bool:
    """Whether two accesses of different threads conflict."""
    if "warp" in (a.kind, b.kind) or a[:1] + a[2:4] == b[:1] + b[2:4]:
        return False
    if is_shared and a.block != b.block:
        return False
    if a.kind == b.kind:
        return a.kind == "write"
    return (a.kind, b.kind) != ("read", "read")


def races(steps: list[Step], is_shared: bool) -> bool:
    """Whether any two accesses race."""
    return any(
        conflict(steps[i], steps[j], is_shared) and not ordered(i, j, steps)
        for j in range(len(steps)) for i in range(j)
    )  # fmt: skip


class Filter:
    """The filter of a source text, on memory of its own."""

    def __init__(self, source: str = SOURCE) -> None:
        self.memory: dict[int, int] = {}
        self.names: dict[str, Any] = {}
        exec(compile(source, "race_filter", "exec"), self.names)
        self.names["load64"] = lambda at: self.memory.get(at, 0)
        self.names["store64"] = self.memory.__setitem__

    def suspects(self, steps: list[Step], is_shared: bool) -> bool:
        """Whether the filter says of some accesses that they may race."""
        self.memory.clear()
        epoch, begin, last = 0, 0, (-1, -1)
        passed = [0, 0, 0]
        for step in steps:
            if step[:2] != last:
                epoch += 1
                if step.block != last[0]:
                    begin, passed = epoch, [0, 0, 0]
                last = step[:2]
            if step.kind == "warp":
                passed[step.warp] += 1
                continue
            self.memory[CONTEXT + layout.EPOCH * 8] = epoch
            self.memory[CONTEXT + layout.WARP_EPOCHS * 8] = EPOCHS
            self.memory[EPOCHS + step.warp * 8] = passed[step.warp]
            at = self.names["now"](CONTEXT, step.warp)
            thread = step.warp * 32 + step.lane
            if step.kind == "read":
                may = self.names["may_race_read"](begin, at, SLOTS, thread, is_shared)
            else:
                how = {"write": 0, "atomic": race_filter.ATOMIC}.get(
                    step.kind, race_filter.ATOMIC | race_filter.WIDE
                )  # fmt: skip
                may = self.names["may_race_write"](begin, at, SLOTS, thread, is_shared, how)
            if may:
                return True
        return False
