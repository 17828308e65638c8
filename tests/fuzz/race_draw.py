"""Draws the programs of the net of races."""

import random
from dataclasses import dataclass, replace

from tests.fuzz.race_program import (
    WARP,
    Access,
    BlockBarrier,
    ClusterArrive,
    ClusterWait,
    Fence,
    Flag,
    Guard,
    Lock,
    NamedBarrier,
    Program,
    Step,
    WarpBarrier,
)

CLUSTER_BARRIER = (ClusterArrive(), ClusterWait())
THREADS = (3, 31, 32, 33, 40, 64, 70)
MASKS = (
    (0xFFFFFFFF,), (0xFFFFFFFF,), (0xFFFF,), (0xFFFF0000,), (0x55555555,), (0x3,), (0x7FFFFFFF,),
    (0xFFFF, 0xFFFF0000),
)  # fmt: skip


@dataclass(frozen=True)
class _Shape:
    """Of a launch: a block's threads, the blocks, and how many are a cluster."""

    threads: int
    blocks: int
    cluster: int

    @property
    def fences(self) -> list[str]:
        return ["cta", "gpu", "sys"] + ["cluster"] * (self.cluster > 1)

    @property
    def scopes(self) -> list[str]:
        return ["cta", "gpu"] + ["cluster"] * (self.cluster > 1)


def draw(rng: random.Random) -> Program:
    """A program of a seed."""
    cluster = rng.choice([1, 1, 1, 2, 2, 3])
    blocks = cluster * rng.choice([1, 2]) if cluster > 1 else rng.choice([1, 1, 2, 3])
    hands = rng.random() < 0.3
    if rng.random() < 0.08:
        return _locked(rng)
    shape = _Shape(rng.choice(THREADS + (70,) * 4 * hands), blocks, cluster)
    equal = rng.random() < 0.2
    steps = _handed(rng, shape, False) if hands else _steps(rng, shape, equal)
    if shape.blocks > 1 and not hands and rng.random() < 0.3:
        steps = _looked(rng, shape)
    if any(isinstance(step, Access) and step.peer for step in steps):
        steps += CLUSTER_BARRIER  # no block leaves before
    return Program(tuple(steps), shape.threads, blocks, equal, cluster)


def _locked(rng: random.Random) -> Program:
    """Readers' locks, and barriers: the order that one of them gave by chance serves no other."""
    threads, blocks = rng.choice([(3, 2), (64, 1), (40, 2), (33, 3)])
    warps = [(block, tid) for block in range(blocks) for tid in range(0, threads, WARP)]
    steps: list[Step] = []
    for _ in range(rng.randrange(1, 4)):
        takers = tuple(rng.sample(warps, rng.randrange(2, len(warps) + 1)))
        steps.append(Lock(takers, rng.choice([-1, rng.randrange(len(takers))])))
        steps += [BlockBarrier()] * rng.randrange(2)
    return Program(tuple(steps), threads, blocks)


def _steps(rng: random.Random, shape: _Shape, equal: bool) -> list[Step]:
    plain = rng.random() < 0.3  # no flags
    steps: list[Step] = []
    arrived = False  # at the cluster's barrier, and nobody has waited yet
    for _ in range(rng.randrange(2, 10)):
        if len(steps) > NamedBarrier.NUMBERS - 8:  # each has a number of its own
            break
        kind = rng.random()
        if kind < 0.6:
            ordinal = shape.blocks * sum(map(stores_bytes, steps))
            steps.append(_access(rng, shape, equal, ordinal))
        elif kind < 0.72 and shape.cluster > 1 and rng.random() < 0.7:
            arrived = _at_cluster(rng, steps, arrived)
        elif kind < 0.72:
            steps.append(BlockBarrier())
        elif kind < 0.8 or (plain and kind < 0.84):
            steps.append(WarpBarrier(rng.choice(MASKS)))
        elif plain or kind < 0.83:
            steps.append(_named(rng, shape.threads))
        elif kind < 0.86:
            steps.append(Fence(rng.choice(shape.fences), _guard(rng, shape)))
        else:
            flag = _flag(rng, shape)
            more = [flag] if flag else []
            how = rng.random()
            steps += more if how < 0.3 else _handed(rng, shape, arrived)
            steps += _looked(rng, shape) if how < 0.1 else []
    return steps + [ClusterWait()] * arrived


def _at_cluster(rng: random.Random, steps: list[Step], arrived: bool) -> bool:
    """Threads arrive at their cluster's barrier, and may go on, or wait."""
    if not arrived:
        steps.append(ClusterArrive(rng.random() < 0.3))
    if arrived or rng.random() < 0.5:
        steps.append(ClusterWait())
        return False
    return True


def _guard(rng: random.Random, shape: _Shape) -> Guard:
    kind = rng.randrange(5)
    block = rng.choice([-1, -1, rng.randrange(shape.blocks)])
    at = rng.randrange(shape.threads)
    if kind == 0:
        return Guard(block=block)
    if kind == 1:
        return Guard(at, at + 1, block=block)
    if kind == 2:
        return Guard(0, at + 1, block=block)
    if kind == 3:
        return Guard(at, block=block)
    step = rng.choice([2, 32])
    return Guard(step=step, rest=rng.randrange(step), block=block)


def stores_bytes(step: Step) -> bool:
    return isinstance(step, Access) and (step.kind, step.width) == ("store", 1)


def _access(rng: random.Random, shape: _Shape, equal: bool, ordinal: int) -> Access:
    kind = rng.choice(["load", "load", "load", "store", "store", "store", "atomic", "quiet"])
    atomic = kind in ("atomic", "quiet")
    order = rng.choice(shape.fences if atomic else ["weak"] * 5 + ["volatile", *shape.scopes])
    # Beyond three stores of bytes there are too few values to tell them apart.
    bytewise = not atomic and (kind == "load" or equal or ordinal + shape.blocks <= 3)
    width = rng.choice([1, 4, 4, 4, 8] if bytewise else [4, 4, 8])
    weak = not atomic and order in ("weak", "volatile")
    space = rng.choice(["shared", "global"])
    apart = space == "shared" and shape.cluster > 1 and rng.random() < 0.5
    return Access(
        space, kind, width,
        2 if weak and width >= 4 and rng.random() < 0.2 else 1, order,
        rng.choice([0, 0, 1, 16, 31, 32, 63]), rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 16]),
        rng.choice([0, 0, 1, 16]), _guard(rng, shape), rng.random() < 0.4, ordinal,
        rng.randrange(1, shape.cluster) if apart else 0,
    )  # fmt: skip


def _named(rng: random.Random, threads: int) -> NamedBarrier:
    warps = list(range((threads + 31) // 32))
    rng.shuffle(warps)
    waits = rng.randrange(1, len(warps) + 1)
    arrives = tuple(warps[waits:]) if rng.random() < 0.5 else ()
    return NamedBarrier(tuple(warps[:waits]), arrives)


def _meeting(rng: random.Random, shape: _Shape, thread: int, arrived: bool) -> list[Step]:
    """A barrier at which a thread perhaps meets others, not all of them.

    ``arrived``: at their cluster's all wait already.
    """
    threads = shape.threads
    if shape.cluster > 1 and not arrived and rng.random() < 0.5:
        return list(CLUSTER_BARRIER)
    if threads <= WARP or rng.random() < 0.3:
        return [WarpBarrier(rng.choice(MASKS))]
    mine, (other, *_) = thread // WARP, rng.sample(range(-(-threads // WARP)), 2)
    both = mine, (other if other != mine else (mine + 1) % -(-threads // WARP))
    return [NamedBarrier(*rng.choice([(both,), (both[:1], both[1:]), (both[1:], both[:1])]))]


def _flag(rng: random.Random, shape: _Shape) -> Flag | None:
    giver, taker = ((rng.randrange(shape.blocks), rng.randrange(shape.threads)) for _ in range(2))
    if giver == taker or (giver[0] == taker[0] and giver[1] // 32 == taker[1] // 32):
        return None  # lanes of a warp that wait for each other may do so for ever
    itself = rng.random() < 0.3
    scopes = [*shape.scopes, "gpu", "sys" if itself else "volatile"]
    fence = ["", "gpu", "gpu", *shape.fences]
    before, after = ("", "") if itself else (rng.choice(fence), rng.choice(fence))
    return Flag(
        giver, taker, before, after, rng.choice(scopes), rng.choice(scopes), itself,
        rng.random() < 0.85,
    )  # fmt: skip


def _handed(rng: random.Random, shape: _Shape, arrived: bool) -> list[Step]:
    """A flag of threads that meet others, who write and fence, or fence and read."""
    flag = _flag(rng, shape)
    if flag is None:
        return []
    here, there = (
        rng.choice([Guard(block=b), replace(_guard(rng, shape), block=b)])
        for b in (_mate(rng, shape, flag.giver[0]), _mate(rng, shape, flag.taker[0]))
    )
    meeting, other = (_meeting(rng, shape, t, arrived) for _, t in (flag.giver, flag.taker))
    before, after = rng.choice(shape.fences), rng.choice(shape.fences)
    write = Access("global", "store", 4, start=rng.choice([0, 16]), guard=here)
    read = replace(write, kind="load", flip=rng.choice([0, 1, 16, 31]), guard=there)
    once = rng.random() < 0.3  # the flag's thread fences, for all
    flag = replace(flag, before=before if once else "", after="")
    fence = [] if once else [Fence(before, here)]
    behind = [Fence(after, there)] if rng.random() < 0.6 else []
    return [write, *fence, *meeting, flag, *other, *behind, read]


def _looked(rng: random.Random, shape: _Shape) -> list[Step]:
    """A flag between blocks, a barrier behind the look, and a read of what may be in L1 still."""
    flag = _flag(rng, shape)
    if flag is None:
        return []
    put = "gpu"
    flag = replace(flag, before=put, put=put, get=put, after=rng.choice(["", "", "cta", "gpu"]))
    write = Access("global", "store", 4, start=rng.choice([0, 3]), guard=Guard(block=flag.giver[0]))
    there = Guard(block=flag.taker[0])
    read = replace(write, kind="load", flip=rng.choice([0, 1, 16]), guard=there)
    one = rng.randrange(shape.threads)
    # Nobody writes the word, but its sector.
    held = Access("global", "load", 4, stride=0, start=shape.threads + 4, guard=Guard(one, one + 1))
    before: list[Step] = [held] if rng.random() < 0.7 and shape.threads < 50 else []
    fence: list[Step] = [Fence(put, there)] if rng.random() < 0.2 else []
    return [*before, write, BlockBarrier(), flag, BlockBarrier(), *fence, read]


def _mate(rng: random.Random, shape: _Shape, block: int) -> int:
    """A block of another one's cluster, or that itself."""
    return block - block % shape.cluster + rng.randrange(shape.cluster)
