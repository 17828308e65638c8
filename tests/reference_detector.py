"""A race detector that is slow and obviously right, for small programs; and their PTX.

A program is a list of steps that every thread goes through: accesses under a guard, block
barriers, warp barriers with a mask, named barriers of some warps, and arrivals. The
detector keeps a vector clock a thread and the list of all accesses a byte; two accesses
race if neither thread had heard of the other's by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

AREA = 512
"""Bytes of the one variable in shared memory, and of the one array in global memory."""

WARP = 32


@dataclass(frozen=True)
class Guard:
    """Which threads take part: ``test`` is a key of ``_TESTS``."""

    test: str = "all"
    value: int = 0

    def holds(self, tid: int) -> bool:
        return {
            "all": True,
            "below": tid < self.value,
            "from": tid >= self.value,
            "only": tid == self.value,
            "parity": tid % 2 == self.value % 2,
            "warp": tid // WARP == self.value,
            "lane": tid % WARP == self.value,
        }[self.test]

    def ptx(self) -> list[str]:
        """Sets ``%g``."""
        lines = {
            "below": [f"setp.lt.u32 %g, %thread, {self.value};"],
            "from": [f"setp.ge.u32 %g, %thread, {self.value};"],
            "only": [f"setp.eq.u32 %g, %thread, {self.value};"],
            "parity": ["and.b32 %a, %thread, 1;", f"setp.eq.u32 %g, %a, {self.value % 2};"],
            "warp": ["shr.u32 %a, %thread, 5;", f"setp.eq.u32 %g, %a, {self.value};"],
            "lane": ["and.b32 %a, %thread, 31;", f"setp.eq.u32 %g, %a, {self.value};"],
        }
        return lines[self.test]


@dataclass(frozen=True)
class Access:
    """Each thread takes element ``((tid ^ flip) * stride + ctaid * block + start)``, wrapped round.

    ``kind`` is ``load``, ``store`` or ``atomic``; ``branch``: a guard jumps round it rather
    than being a predicate; ``ordinal``: which of the stores of single bytes it is (there are
    too few values of a byte for more than three).
    """

    space: str
    kind: str
    width: int
    flip: int = 0
    stride: int = 1
    block: int = 0
    start: int = 0
    guard: Guard = Guard()
    branch: bool = False
    ordinal: int = 0

    def bytes(self, tid: int, block: int) -> range:
        element = (tid ^ self.flip) * self.stride + block * self.block + self.start
        first = element * self.width % AREA
        return range(first, first + self.width)

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        name, bits = "%s" if self.space == "shared" else "%d", self.width * 8
        yield f"xor.b32 %a, %thread, {self.flip};"
        yield f"mul.lo.u32 %a, %a, {self.stride};"
        yield f"mad.lo.u32 %a, %cta, {self.block}, %a;"
        yield f"add.u32 %a, %a, {self.start};"
        yield f"mul.lo.u32 %a, %a, {self.width};"
        yield f"and.b32 %a, %a, {AREA - 1};"
        yield "cvt.u64.u32 %w, %a;"
        yield f"add.u64 %w, %w, {name};"
        if self.kind != "load":
            yield from _value(self, number, equal)
        at = "" if self.guard.test == "all" else "@%g "
        if at:
            yield from self.guard.ptx()
        if at and self.branch:
            yield f"@!%g bra L{number};"
            at = ""
        value = "%w2" if self.width == 8 else "%v"
        if self.kind == "load":
            yield f"{at}ld.{self.space}.u{bits} {'%x2' if self.width == 8 else '%x'}, [%w];"
        elif self.kind == "store":
            yield f"{at}st.{self.space}.u{bits} [%w], {value};"
        else:
            yield f"{at}atom.{self.space}.exch.b{bits} {value}, [%w], {value};"
        yield f"L{number}:"


def _value(step: Access, number: int, equal: bool) -> Iterator[str]:
    """Sets the value to write: another for every thread and step, or one for all stores.

    Every byte of a word is below 32 and single bytes are not, so that none is equal to
    what an access of another width left.
    """
    if equal and step.kind == "store":
        yield "mov.u32 %v, 0x5a5a5a5a;"
    elif step.width == 1:
        yield f"mad.lo.u32 %v, %cta, 70, {32 + 70 * step.ordinal};"
        yield "add.u32 %v, %v, %thread;"
    else:
        yield f"mad.lo.u32 %v, %cta, 0x40000, {0x11000000 + (number << 8)};"
        yield "and.b32 %b, %thread, 31;"
        yield "add.u32 %v, %v, %b;"
        yield "shr.u32 %b, %thread, 5;"
        yield "mad.lo.u32 %v, %b, 0x10000, %v;"
    if step.width == 8:
        yield "mov.b64 %w2, {%v, %v};"


@dataclass(frozen=True)
class BlockBarrier:
    """``bar.sync 0``."""

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield "bar.sync 0;"


@dataclass(frozen=True)
class WarpBarrier:
    """``bar.warp.sync``: each lane gives the mask that names it; others pass by."""

    masks: tuple[int, ...] = (0xFFFFFFFF,)

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        if self.masks == (0xFFFFFFFF,):
            yield "bar.warp.sync 0xffffffff;"
            return
        yield "mov.u32 %v, 0;"
        for mask in self.masks:
            yield "and.b32 %b, %thread, 31;"
            yield f"mov.u32 %a, {mask:#x};"
            yield "shr.u32 %a, %a, %b;"
            yield "and.b32 %a, %a, 1;"
            yield "setp.eq.u32 %g, %a, 1;"
            yield f"@%g mov.u32 %v, {mask:#x};"
        yield "setp.ne.u32 %g, %v, 0;"
        yield f"@!%g bra L{number};"
        yield "bar.warp.sync %v;"
        yield f"L{number}:"


@dataclass(frozen=True)
class NamedBarrier:
    """``bar.sync n, count`` of the warps in ``waits``, which ``arrives`` only count for."""

    waits: tuple[int, ...]
    arrives: tuple[int, ...] = ()

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        count = WARP * (len(self.waits) + len(self.arrives))
        yield "shr.u32 %a, %thread, 5;"
        for part, warps in (("arrive", self.arrives), ("sync", self.waits)):
            for warp in warps:
                yield f"setp.eq.u32 %g, %a, {warp};"
                yield f"@%g bra {part}{number};"
            yield f"bra past_{part}{number};"
            yield f"{part}{number}:"
            if warps:
                yield f"bar.{part} {number % 15 + 1}, {count};"
            yield f"past_{part}{number}:"


Step = Access | BlockBarrier | WarpBarrier | NamedBarrier


@dataclass(frozen=True)
class Program:
    """Steps, and the launch: ``equal``: all stores write the same value."""

    steps: tuple[Step, ...]
    threads: int
    blocks: int = 1
    equal: bool = False

    def ptx(self) -> str:
        lines = [
            ".version 8.0", ".target sm_90", ".address_size 64",
            ".visible .entry program(.param .u64 data)", "{",
            ".reg .pred %g;", ".reg .b32 %thread, %cta, %a, %b, %v, %x;",
            ".reg .b64 %w, %w2, %x2, %s, %d;",
            f".shared .align 8 .b8 area[{AREA}];",
            "mov.u32 %thread, %tid.x;", "mov.u32 %cta, %ctaid.x;", "mov.u64 %s, area;",
            "ld.param.u64 %d, [data];", "cvta.to.global.u64 %d, %d;",
        ]  # fmt: skip
        for number, step in enumerate(self.steps):
            lines += step.ptx(number, self.equal)
        return "\n".join([*lines, "ret;", "}", ""])


Verdict = set[tuple[str, str, str]]
"""(space, ``raw``/``war``/``waw``, ``warning``/``error``) of every racing pair."""


@dataclass(frozen=True)
class _Seen:
    """An access to a byte: by whom, at which time of theirs, and in which step."""

    thread: int
    time: int
    step: Access


def detect(program: Program) -> Verdict:
    """Every kind of race that the program has.

    The steps are gone through in order, one thread after the other: that settles which access
    of a pair is named first (RAW or WAR), under every schedule, and nothing else.
    """
    size = program.threads
    total = size * program.blocks
    clocks = [[0] * total for _ in range(total)]
    for thread, clock in enumerate(clocks):
        clock[thread] = 1
    seen: dict[tuple[str, int, int], list[_Seen]] = {}
    found: Verdict = set()
    for step in program.steps:
        if isinstance(step, Access):
            for thread in range(total):
                block, tid = divmod(thread, size)
                if step.guard.holds(tid):
                    for byte in step.bytes(tid, block):
                        own = block if step.space == "shared" else 0
                        earlier = seen.setdefault((step.space, own, byte), [])
                        _judge(program, step, thread, clocks[thread], earlier, found)
                        earlier.append(_Seen(thread, clocks[thread][thread], step))
        else:
            for block in range(program.blocks):
                for givers, takers in meetings(step, size):
                    _meet(
                        clocks,
                        [block * size + t for t in givers],
                        [block * size + t for t in takers],
                    )
    return found


def meetings(step: Step, threads: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Who tells whom of what they did, at a barrier, within a block."""
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


def _meet(clocks: list[list[int]], givers: Sequence[int], takers: Sequence[int]) -> None:
    if not givers:
        return
    known = [max(times) for times in zip(*(clocks[t] for t in givers), strict=True)]
    for thread in takers:
        clocks[thread] = [max(a, b) for a, b in zip(clocks[thread], known, strict=True)]
    for thread in {*givers, *takers}:
        clocks[thread][thread] += 1


def _judge(
    program: Program, step: Access, thread: int, clock: list[int], earlier: list[_Seen],
    found: Verdict,
) -> None:  # fmt: skip
    """Hold one byte of an access against everything that was done to that byte before."""
    for other in earlier:
        if other.thread == thread or other.time <= clock[other.thread]:
            continue
        before = other.step.kind
        if before == step.kind and step.kind != "store":
            continue  # two loads, or two atomics
        write, wrote = step.kind != "load", before != "load"
        kind = ("waw" if wrote else "war") if write else "raw"
        size = program.threads
        same_warp = (
            other.thread // size == thread // size
            and other.thread % size // WARP == thread % size // WARP
        )
        same_value = program.equal and before == step.kind == "store"
        in_step = same_warp and other.step is not step
        found.add((step.space, kind, "warning" if in_step or same_value else "error"))
