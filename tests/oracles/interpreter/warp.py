"""What looks at other threads: barriers, shuffles, votes; and special registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels.ptx.module import Instruction, Pair
from tests.oracles.interpreter import clusters
from tests.oracles.interpreter.values import WIDTH, NotModelled, mask, number

if TYPE_CHECKING:
    from tests.oracles.interpreter.decode import Code, Step
    from tests.oracles.interpreter.machine import Frame, Thread

EVERYBODY = mask(32)


def special(name: str) -> Callable[[Thread], int]:
    """A special register's value for a thread.

    Raises:
        NotModelled: It depends on time or place.
    """
    root, _, axis = name.partition(".")
    i = "xyz".find(axis) if axis else 0
    found: dict[str, Callable[[Thread], int]] = {
        "%tid": lambda t: t.tid[i],
        "%ntid": lambda t: t.block.launch.block[i],
        "%ctaid": lambda t: t.block.ctaid[i],
        "%nctaid": lambda t: t.block.launch.grid[i],
        "%laneid": lambda t: t.lane,
        "%warpid": lambda t: t.warp,
        "%nwarpid": lambda t: -(-len(t.block.threads) // 32),
        "%lanemask_eq": lambda t: 1 << t.lane,
        "%lanemask_lt": lambda t: mask(t.lane),
        "%lanemask_le": lambda t: mask(t.lane + 1),
        "%lanemask_gt": lambda t: EVERYBODY & ~mask(t.lane + 1),
        "%lanemask_ge": lambda t: EVERYBODY & ~mask(t.lane),
        "%dynamic_smem_size": lambda t: t.block.launch.dynamic,
        **clusters.SPECIAL,
    }
    if "cluster" in root and root not in found:
        return lambda t: clusters.place(t, root, i)
    if root not in found:
        raise NotModelled(name)
    return found[root]


def waiting(code: Code, ins: Instruction) -> Step:
    """An instruction at which a thread waits for others."""
    from tests.oracles.interpreter.machine import Wait

    operands = list(ins.operands)
    name = ins.opcode
    if name in ("bar", "barrier") and not ins.has("warp"):
        finish = None
        predicate = None
        if ins.has("red"):
            word = next(m for m in ins.modifiers if m in ("popc", "and", "or"))
            put = code.write(operands.pop(0), "u32" if word == "popc" else "pred")
            predicate = code.read(operands.pop(), "pred")
            fold: Any = {"popc": sum, "and": lambda v: int(all(v)), "or": lambda v: int(any(v))}

            def finish(f: Frame, votes: list[int]) -> None:
                put(None, f, fold[word](votes))  # type: ignore[arg-type]

        numbers = [code.read(o, "u32") for o in operands]

        def come(t: Thread, f: Frame) -> Any:
            values = [r(t, f) for r in numbers] + [0, 0]
            vote = predicate(t, f) if predicate else 0
            if ins.has("arrive"):
                t.block.barriers.arrive(t, values[0], values[1])
                return None
            return Wait(ins, (values[0], values[1], vote), finish)

        return come
    kinds, results = forms(ins)
    first = operands.pop(0) if results else None
    targets = [first.first, first.second] if isinstance(first, Pair) else [first]
    results = results[: len(targets)]
    writes = [code.write(o, k) for o, k in zip(targets, results, strict=False)]
    reads = [code.read(o, k) for o, k in zip(operands, kinds, strict=True)]

    def put_all(f: Frame, values: tuple[int, ...]) -> None:
        for write, value in zip(writes, values, strict=False):
            write(None, f, value)  # type: ignore[arg-type]

    def stand(t: Thread, f: Frame) -> Any:
        values = tuple(r(t, f) for r in reads)
        return Wait(ins, values if values else (EVERYBODY,), put_all)

    return stand


def forms(ins: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Types of the sources (the member mask last) and of the results."""
    name = ins.opcode
    if name in ("bar", "barrier"):
        return ("u32",), ()
    if name == "activemask":
        return (), ("u32",)
    if name == "elect":
        return ("u32",), ("u32", "pred")
    if not ins.has("sync"):
        raise NotModelled(ins.name)
    if name == "shfl":
        return ("b32", "u32", "u32", "u32"), ("b32", "pred")
    if name == "vote":
        return ("pred", "u32"), ("b32" if ins.has("ballot") else "pred",)
    kind = ins.types[-1]
    if name == "match":
        return (kind, "u32"), ("b32", "pred")
    return (kind, "u32"), (kind,)


def together(group: list[Thread], members: int) -> None:
    """The named lanes, all of them here, execute their instruction."""
    waits = {t.lane: t.wait for t in group}
    ins = group[0].wait.ins  # type: ignore[union-attr]
    values = {lane: w.values for lane, w in waits.items() if w}
    for t in group:
        assert t.wait is not None
        t.wait.finish(t.stack[-1], result(ins, t.lane, values, members))


def result(
    ins: Instruction, lane: int, values: dict[int, tuple[int, ...]], members: int
) -> tuple[int, ...]:
    """What one lane gets."""
    name = ins.opcode
    if name in ("bar", "barrier"):
        return ()
    if name == "activemask":
        return (members,)
    if name == "elect":
        leader = (members & -members).bit_length() - 1
        return leader, int(lane == leader)
    mine = values[lane]
    if name == "shfl":
        source, inside = shuffled(ins, lane, mine)
        if inside and source not in values:
            raise NotModelled("a shuffle from a lane that does not take part")
        return values[source if inside else lane][0], int(inside)
    firsts = {other: v[0] for other, v in values.items()}
    if name == "vote":
        true = sum(1 << other for other, p in firsts.items() if p)
        if ins.has("ballot"):
            return (true,)
        if ins.has("any"):
            return (int(true != 0),)
        return (int(true == members or (ins.has("uni") and true == 0)),)
    if name == "match":
        same = sum(1 << other for other, x in firsts.items() if x == mine[0])
        if ins.has("any"):
            return (same,)
        return (members, 1) if same == members else (0, 0)
    kind = ins.types[-1]
    numbers = [number(x, kind) for x in firsts.values()]
    total = numbers[0]
    word = next(m for m in ins.modifiers if m in ("add", "min", "max", "and", "or", "xor"))
    for x in numbers[1:]:
        total = {
            "add": total + x, "min": min(total, x), "max": max(total, x), "and": total & x,
            "or": total | x, "xor": total ^ x,
        }[word]  # fmt: skip
    return (total & mask(WIDTH[kind]),)


def shuffled(ins: Instruction, lane: int, values: tuple[int, ...]) -> tuple[int, bool]:
    """The lane that a lane reads from, and whether that is within its segment (PTX ISA)."""
    _, b, c, _ = values
    b &= 31
    clamp, segment = c & 31, c >> 8 & 31
    high = lane & segment | clamp & ~segment & 31
    low = lane & segment
    if ins.has("up"):
        return lane - b, lane - b >= high
    if ins.has("down"):
        return lane + b, lane + b <= high
    source = lane ^ b if ins.has("bfly") else low | b & ~segment & 31
    return source, source <= high
