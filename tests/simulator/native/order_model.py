"""The order of atomics run as Python, beside the order in which the NumPy engine does them.

A warp's interval between two barriers is a list of basic blocks with the atomics that they execute.
Native code runs block after block, interval after interval, warp after warp. The NumPy engine runs
an interval of all blocks of a batch: of all warps those at the lowest basic block, site by site.
"""

import inspect
import random
from typing import Any, NamedTuple

from simulator.native import layout
from simulator.native.runtime import atomic_order

SOURCE = inspect.getsource(atomic_order).replace("from ..", "from simulator.native.")
BLOCKS, LOCATIONS = 5, 2
PLACES = (range(1), range(1, 2), range(2))
CONTEXT, LEVELS, SITES, RECORDS = 0, 10_000, 20_000, 30_000


class Atomic(NamedTuple):
    """An atomic of a program's site on some of the locations, which are side by side."""

    site: int
    locations: range


Steps = list[tuple[int, list[Atomic]]]
"""Basic blocks that a warp executes, and their atomics."""


class Launch(NamedTuple):
    """A launch.

    Attributes:
        classes: Of its sites.
        batches: By batch, block, interval and warp the steps.
        bits: Of a level of a moment, and of the count in it.
        is_unsure: Whether the order of warps is unknown.
    """

    classes: list[int]
    batches: list[list[list[list[Steps]]]]
    bits: tuple[int, int]
    is_unsure: bool


def draw(rng: random.Random) -> Launch:
    """A launch."""
    kinds = rng.choice([(0,), (0, 1), (1, 2), (0, 1, 2)])
    classes = [rng.choice(kinds) for _ in range(2 * BLOCKS)]
    loops = rng.random() < 0.6
    share, most = rng.choice([(0.1, 9), (0.3, 9), (0.4, 3)])
    outer = rng.choice([[], [4], [4, 3]]) if loops else []
    is_single = rng.random() < 0.3  # one atomic of a warp

    def steps() -> Steps:
        if is_single:
            n = rng.randrange(BLOCKS)
            return [(n, [Atomic(2 * n, rng.choice(PLACES))])]
        numbers = [*outer, *(rng.randrange(BLOCKS) for _ in range(rng.randrange(most)))]
        if not loops:
            numbers = sorted(set(numbers))
        return [
            (n, [Atomic(site, rng.choice(PLACES)) for site in (2 * n, 2 * n + 1)
                 if rng.random() < share])
            for n in numbers
        ]  # fmt: skip

    def interval(warps: int) -> list[Steps]:
        if rng.random() < 0.3:
            same = steps()
            return [same] * warps
        return [steps() for _ in range(warps)]

    return Launch(classes, [
        [[interval(warps) for _ in range(rng.randrange(1, 3))] for _ in range(rng.randrange(1, 3))]
        for warps in [rng.randrange(1, 5)] for _ in range(rng.randrange(1, 3))
    ], rng.choice([(32, 22), (32, 22), (5, 2), (4, 2)]), rng.random() < 0.2)  # fmt: skip


Event = tuple[int, int, int, int, int]
"""Batch, block, interval, warp, and its number among the warp's atomics there."""


def lockstep(launch: Launch) -> list[list[tuple[Event, int]]]:
    """Return by location the atomics, and their sites, in the NumPy engine's order."""
    found: list[list[tuple[Event, int]]] = [[] for _ in range(LOCATIONS)]
    for batch, blocks in enumerate(launch.batches):
        for interval in range(max(map(len, blocks))):
            warps = [
                (b, w, list(steps), [0]) for b, block in enumerate(blocks)
                if interval < len(block) for w, steps in enumerate(block[interval])
            ]  # fmt: skip
            while any(steps for _, _, steps, _ in warps):
                lowest = min(steps[0][0] for _, _, steps, _ in warps if steps)
                running = [w for w in warps if w[2] and w[2][0][0] == lowest]
                for site in (2 * lowest, 2 * lowest + 1):
                    for b, w, steps, count in running:
                        for atomic in steps[0][1]:
                            if atomic.site == site:
                                event = batch, b, interval, w, count[0]
                                for location in atomic.locations:
                                    found[location].append((event, site))
                                count[0] += 1
                for _, _, steps, _ in running:
                    del steps[0]
    return found


class Order:
    """The functions of a source text, on memory of their own."""

    def __init__(self, source: str = SOURCE) -> None:
        self.memory: dict[int, int] = {}
        self.names: dict[str, Any] = {}
        exec(compile(source, "atomic_order", "exec"), self.names)
        self.names["load64"] = lambda at: self.memory.get(at, 0)
        self.names["store64"] = self.memory.__setitem__
        self.names["below"] = lambda a, b: a % 2**64 < b % 2**64

    def native(
        self, launch: Launch, is_judged: bool = True
    ) -> list[list[tuple[Event, int]]] | None:
        """Return the same in native code's order; ``None``: it gives up, if it judges."""
        found: list[list[tuple[Event, int]]] = [[] for _ in range(LOCATIONS)]
        memory, word = self.memory, layout.WORD
        memory.clear()
        self.names["LEVEL_BITS"], self.names["COUNT_BITS"] = launch.bits
        memory[CONTEXT + layout.ORDERED * word] = 1
        memory[CONTEXT + layout.IS_UNSURE * word] = int(launch.is_unsure)
        memory[CONTEXT + layout.MOMENT * word] = LEVELS
        memory[CONTEXT + layout.SITES * word] = SITES
        size = layout.SITE_WORDS * word
        for site, kind in enumerate(launch.classes):
            memory[SITES + site * size + layout.ORDER_CLASS * word] = kind
        epoch = number = 0
        for batch, blocks in enumerate(launch.batches):
            for b, block in enumerate(blocks):
                memory[CONTEXT + layout.BLOCK * word] = number
                memory[CONTEXT + layout.BEGIN * word] = epoch
                number += 1
                for interval, warps in enumerate(block):
                    memory[CONTEXT + layout.EPOCH * word] = epoch
                    epoch += 1
                    for w, steps in enumerate(warps):
                        memory[CONTEXT + layout.WARP * word] = w
                        memory[CONTEXT + layout.MOMENT_DEPTH * word] = 0
                        count = 0
                        for basic_block, atomics in steps:
                            self.names["step_to"](CONTEXT, basic_block)
                            for site, locations in atomics:
                                late = self.names["judge_order"](
                                    CONTEXT, SITES + site * size, RECORDS, locations.start * 4,
                                    len(locations) * 4, batch + 1,
                                )  # fmt: skip
                                if late and is_judged:
                                    return None
                                for location in locations:
                                    found[location].append(((batch, b, interval, w, count), site))
                                count += 1
        return found


def is_same(launch: Launch, one: Any, other: Any) -> bool:
    """Whether two orders differ at most in atomics that commute, and are surely the NumPy engine's.

    If the order of warps is unknown, barriers alone put those of several warps in order.
    """
    for mine, theirs in zip(one, other, strict=True):
        place = {event: i for i, (event, _) in enumerate(theirs)}
        for i, (event, site) in enumerate(mine):
            for later, other_site in mine[i + 1 :]:
                kind = launch.classes[site]
                if kind and kind == launch.classes[other_site]:
                    continue
                by_chance = event[1] != later[1] or (event[2] == later[2] and event[3] != later[3])
                if launch.is_unsure and event[0] == later[0] and by_chance:
                    return False
                if place[event] > place[later]:
                    return False
    return True
