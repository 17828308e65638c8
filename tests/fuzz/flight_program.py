"""Programs with asynchronous copies for the net of races: steps like those of ``race_program``.

A block's shared area, mbarriers beside it, a global array, and one that is only read. Where nothing
is written to the global one there may be several blocks, which differ in some accesses.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.race_program import (
    AREA,
    Access,
    BlockBarrier,
    Fence,
    Guard,
    NamedBarrier,
    WarpBarrier,
)

BARRIERS = 4
SOURCE = 1 << 14
"""Bytes of the array that copies read, no two words the same."""


def guarded(guard: Guard, number: int, lines: str) -> Iterator[str]:
    yield from guard.ptx()
    yield f"@!%g bra L{number};"
    yield lines
    yield f"L{number}:"


@dataclass(frozen=True)
class Copy:
    """``cp.async``: each thread brings ``width`` bytes to where an ``Access`` would be."""

    width: int
    flip: int
    stride: int
    start: int
    guard: Guard

    def bytes(self, tid: int) -> range:
        return Access("shared", "store", self.width, 1, "weak", self.flip, self.stride, 0,
                      self.start).elements(0, tid)  # fmt: skip

    def first(self, tid: int) -> int:
        """Of its bytes."""
        return ((tid ^ self.flip) * self.stride + self.start) * self.width % AREA

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield f"xor.b32 %a, %me, {self.flip}; mul.lo.u32 %a, %a, {self.stride};"
        yield f"add.u32 %a, %a, {self.start}; mul.lo.u32 %a, %a, {self.width};"
        yield f"and.b32 %a, %a, {AREA - 1}; cvt.u64.u32 %w, %a; add.u64 %w, %w, %s;"
        yield f"mad.lo.u32 %b, %me, 16, {number * 1600 % (SOURCE - 2048)};"
        yield "cvt.u64.u32 %v2, %b; add.u64 %v2, %v2, %c;"
        how = "cg" if self.width == 16 else "ca"
        copy = f"cp.async.{how}.shared.global [%w], [%v2], {self.width};"
        yield from guarded(self.guard, number, copy)


@dataclass(frozen=True)
class Queue:
    """``commit``, ``wait N`` or ``wait all`` of some threads' copies; ``bulk`` of theirs in bulk.

    A wait for bulk copies may be for their reads alone.
    """

    what: str
    left: int
    guard: Guard
    bulk: bool = False
    read: bool = False

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        name = "cp.async.bulk" if self.bulk else "cp.async"
        words = {
            "commit": f"{name}.commit_group;",
            "wait": f"{name}.wait_group{'.read' if self.read else ''} {self.left};",
            "all": "cp.async.wait_all;",
        }
        yield from guarded(self.guard, number, words[self.what])


@dataclass(frozen=True)
class Arrive:
    """Threads arrive at an mbarrier; ``expect`` bytes, or their copies when they have come.

    ``relaxed``: they hand on what they have fenced alone.
    """

    barrier: int
    guard: Guard
    expect: int = 0
    copies: bool = False
    relaxed: bool = False

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        at = f"[bars+{8 * self.barrier}]"
        line = f"mbarrier.arrive{'.relaxed.cta' if self.relaxed else ''}.shared.b64 _, {at};"
        if self.expect:
            line = f"mbarrier.arrive.expect_tx.shared.b64 _, {at}, {self.expect};"
        if self.copies:
            line = f"cp.async.mbarrier.arrive.noinc.shared.b64 {at};"
        yield from guarded(self.guard, number, line)


@dataclass(frozen=True)
class Await:
    """Threads wait until the phase of a parity is over; ``relaxed``: they know it by a fence."""

    barrier: int
    guard: Guard
    parity: int
    relaxed: bool = False

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield from self.guard.ptx()
        yield f"@!%g bra L{number};"
        yield f"W{number}:"
        order, at = ".relaxed.cta" if self.relaxed else "", f"[bars+{8 * self.barrier}]"
        yield f"mbarrier.try_wait.parity{order}.shared.b64 %h, {at}, {self.parity};"
        yield f"@!%h bra W{number};"
        yield f"L{number}:"


@dataclass(frozen=True)
class Bulk:
    """One thread copies bytes to or from the shared area at ``place`` (``barrier`` -1: from)."""

    thread: int
    place: int
    size: int
    barrier: int = -1
    there: int = 0

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        guard = Guard(self.thread, self.thread + 1)
        if self.barrier < 0:
            copy = (
                f"cp.async.bulk.global.shared::cta.bulk_group [%d+{self.there}], "
                f"[area+{self.place}], {self.size};"
            )
        else:
            copy = (
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                f"[area+{self.place}], [%c+{number * 1600 % (SOURCE - 2048)}], {self.size}, "
                f"[bars+{8 * self.barrier}];"
            )
        yield from guarded(guard, number, copy)


@dataclass(frozen=True)
class ProxyFence:
    """``fence.proxy.async`` of some threads."""

    guard: Guard

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield from guarded(self.guard, number, "fence.proxy.async.shared::cta;")


Step = (
    Access | BlockBarrier | WarpBarrier | NamedBarrier | Copy | Queue | Arrive | Await | Bulk |
    Fence | ProxyFence
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Steps, the threads of the block, and how many threads arrive at each mbarrier in a phase."""

    steps: tuple[Step, ...]
    threads: int
    counts: tuple[int, ...] = ()
    blocks: int = 1

    def ptx(self) -> tuple[str, dict[int, int]]:
        """The text, and which step the lines belong to."""
        lines = [
            ".version 8.0", ".target sm_90", ".address_size 64",
            ".visible .entry program(.param .u64 data, .param .u64 source)", "{",
            ".reg .pred %g, %h; .reg .b32 %me, %cta, %a, %b, %v, %x, %y;",
            ".reg .b64 %w, %n, %o, %v2, %x2, %y2, %s, %d, %c;",
            f".shared .align 128 .b8 area[{AREA}]; .shared .align 8 .b8 bars[{8 * BARRIERS}];",
            "mov.u32 %me, %tid.x; mov.u32 %cta, %ctaid.x; mov.u64 %s, area;",
            "ld.param.u64 %d, [data]; ld.param.u64 %c, [source];",
            "cvta.to.global.u64 %d, %d; cvta.to.global.u64 %c, %c;",
            "setp.eq.u32 %g, %me, 0; @!%g bra ready;",
            *(f"mbarrier.init.shared.b64 [bars+{8 * i}], {n};" for i, n in enumerate(self.counts)),
            "fence.mbarrier_init.release.cluster;", "ready:", "bar.sync 0;",
        ]  # fmt: skip
        steps: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            for line in step.ptx(number, False):
                lines.append(line)
                steps[len(lines)] = number
        return "\n".join([*lines, "ret;", "}", ""]), steps
