"""Random programs for the net of races, and a detector that is slow: a vector clock a thread.

A program is a list of steps that every thread goes through: accesses under a guard (vectors,
``volatile`` and atomics among them, and shared memory of other blocks of a cluster), barriers of
clusters, of blocks, of some warps and of some lanes, fences, and flags that hand on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

LOCKS = 64
"""Words of flags; a lock and what it guards, of each step, stand behind."""
AREA = 256
"""Bytes of shared memory, and of the global array: few, so that accesses meet."""
WARP = 32
FENCES = {
    "cta": "membar.cta;", "cluster": "fence.sc.cluster;", "gpu": "membar.gl;", "sys": "membar.sys;",
}  # fmt: skip


@dataclass(frozen=True)
class Guard:
    """Threads ``low <= tid < high`` with ``tid % step == rest``, in ``block`` (-1: all)."""

    low: int = 0
    high: int = 1 << 20
    step: int = 1
    rest: int = 0
    block: int = -1

    def holds(self, block: int, tid: int) -> bool:
        here = self.block in (-1, block)
        return here and self.low <= tid < self.high and tid % self.step == self.rest

    def ptx(self) -> Iterator[str]:
        """Sets ``%g``."""
        yield f"setp.ge.u32 %g, %me, {self.low};"
        yield f"setp.lt.and.u32 %g, %me, {self.high}, %g;"
        yield f"rem.u32 %a, %me, {self.step};"
        yield f"setp.eq.and.u32 %g, %a, {self.rest}, %g;"
        if self.block >= 0:
            yield f"setp.eq.and.u32 %g, %cta, {self.block}, %g;"


@dataclass(frozen=True)
class Access:
    """Element ``((tid ^ flip) * stride + ctaid * far + start)`` of ``width`` bytes, wrapped.

    ``kind``: ``load``, ``store``, ``atomic`` or ``quiet`` (an atomic that adds zero);
    ``order``: ``weak``, ``volatile``, or the scope of a relaxed access or an atomic;
    ``predicate``: the guard is one, rather than a branch round the access; ``ordinal``: which of
    the stores of single bytes it is; ``peer``: shared memory is that of the block so many ranks
    on in the cluster.
    """

    space: str
    kind: str
    width: int
    vector: int = 1
    order: str = "weak"
    flip: int = 0
    stride: int = 1
    far: int = 0
    start: int = 0
    guard: Guard = Guard()
    predicate: bool = False
    ordinal: int = 0
    peer: int = 0

    @property
    def whole(self) -> int:
        return self.width * self.vector

    @property
    def writes(self) -> bool:
        return self.kind != "load"

    def elements(self, block: int, tid: int) -> range:
        """First bytes of the elements."""
        place = ((tid ^ self.flip) * self.stride + block * self.far + self.start) * self.whole
        first = place % AREA
        return range(first, first + self.whole, self.width)

    def home(self, block: int, cluster: int) -> int:
        """The block in whose memory a thread of a block accesses; global memory is block 0's."""
        if self.space == "global":
            return 0
        return block - block % cluster + (block % cluster + self.peer) % cluster

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        bits = self.width * 8
        yield f"xor.b32 %a, %me, {self.flip};"
        yield f"mul.lo.u32 %a, %a, {self.stride};"
        yield f"mad.lo.u32 %a, %cta, {self.far}, %a;"
        yield f"add.u32 %a, %a, {self.start};"
        yield f"mul.lo.u32 %a, %a, {self.whole};"
        yield f"and.b32 %a, %a, {AREA - 1};"
        base, address = ("%s", "%n") if self.space == "shared" else ("%d", "%w")
        yield "cvt.u64.u32 %o, %a;"
        yield f"add.u64 {address}, %o, {base};"
        if self.peer:
            yield f"mov.u32 %a, %cluster_ctarank; add.u32 %a, %a, {self.peer};"
            yield "mov.u32 %b, %cluster_nctarank; rem.u32 %a, %a, %b;"
            yield "mapa.shared::cluster.u64 %n, %n, %a;"
        yield from self.value(number, equal)
        yield from self.guard.ptx()
        at = "" if self.guard == Guard() else "@%g "
        if not self.predicate:
            yield f"@!%g bra L{number};"
        yield f"{at if self.predicate else ''}{self.instruction(bits)}"
        yield f"L{number}:"

    def value(self, number: int, equal: bool) -> Iterator[str]:
        """Sets what to write: one value for all, or another for every thread and step.

        Every byte of a word is below 32 and single bytes are not, so that none is equal to
        what an access of another width left.
        """
        if equal:
            yield "mov.u32 %v, 0x5a5a5a5a;"
        elif self.width == 1:
            yield f"mad.lo.u32 %v, %cta, 70, {32 + 70 * self.ordinal};"
            yield "add.u32 %v, %v, %me;"
        else:
            yield f"mad.lo.u32 %v, %cta, 0x40000, {0x11000000 + (number << 8)};"
            yield "and.b32 %b, %me, 31; add.u32 %v, %v, %b;"
            yield "shr.u32 %b, %me, 5; mad.lo.u32 %v, %b, 0x10000, %v;"
        yield "mov.b64 %v2, {%v, %v};"

    def instruction(self, bits: int) -> str:
        word = {1: "", 2: ".v2"}[self.vector]
        how = {"weak": "", "volatile": ".volatile"}.get(self.order, f".relaxed.{self.order}")
        value, got = ("%v2", "%x2") if bits == 64 else ("%v", "%x")
        space = self.space + ("::cluster" if self.peer else "")
        address = "%n" if self.space == "shared" else "%w"
        if self.kind == "load":
            into = got if self.vector == 1 else f"{{{got}, {'%y2' if bits == 64 else '%y'}}}"
            return f"ld{how}.{space}{word}.u{bits} {into}, [{address}];"
        if self.kind == "store":
            given = value if self.vector == 1 else f"{{{value}, {value}}}"
            return f"st{how}.{space}{word}.u{bits} [{address}], {given};"
        if self.kind == "quiet":
            return f"atom{how}.{space}.add.u{bits} {got}, [{address}], 0;"
        return f"atom{how}.{space}.exch.b{bits} {got}, [{address}], {value};"


@dataclass(frozen=True)
class BlockBarrier:
    """``bar.sync 0``."""

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield "bar.sync 0;"


@dataclass(frozen=True)
class ClusterArrive:
    """``barrier.cluster.arrive``; ``relaxed``: it hands on what its thread has fenced alone."""

    relaxed: bool = False

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield f"barrier.cluster.arrive{'.relaxed' if self.relaxed else ''};"


@dataclass(frozen=True)
class ClusterWait:
    """``barrier.cluster.wait``, behind the arrival."""

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield "barrier.cluster.wait;"


@dataclass(frozen=True)
class WarpBarrier:
    """``bar.warp.sync``: each lane gives the mask that names it; others pass by."""

    masks: tuple[int, ...] = (0xFFFFFFFF,)

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield "mov.u32 %v, 0; and.b32 %b, %me, 31;"
        for mask in self.masks:
            yield f"mov.u32 %a, {mask:#x}; shr.u32 %a, %a, %b; and.b32 %a, %a, 1;"
            yield f"setp.eq.u32 %g, %a, 1; @%g mov.u32 %v, {mask:#x};"
        yield f"setp.eq.u32 %g, %v, 0; @%g bra L{number};"
        yield f"bar.warp.sync {self.masks[0]:#x};" if len(self.masks) == 1 else "bar.warp.sync %v;"
        yield f"L{number}:"


@dataclass(frozen=True)
class NamedBarrier:
    """``bar.sync n, count`` of the warps in ``waits``; those in ``arrives`` only arrive."""

    NUMBERS: ClassVar[int] = 15
    waits: tuple[int, ...]
    arrives: tuple[int, ...] = ()

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        count = WARP * (len(self.waits) + len(self.arrives))
        yield "shr.u32 %a, %me, 5;"
        for part, warps in (("arrive", self.arrives), ("sync", self.waits)):
            for warp in warps:
                yield f"setp.eq.u32 %g, %a, {warp};"
                yield f"@%g bra {part}{number};"
            yield f"bra past_{part}{number};"
            yield f"{part}{number}:"
            if warps:
                yield f"mov.u32 %v, {number % self.NUMBERS + 1}; bar.{part} %v, {count};"
            yield f"past_{part}{number}:"


@dataclass(frozen=True)
class Fence:
    """A fence of some threads."""

    scope: str
    guard: Guard

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield from self.guard.ptx()
        yield f"@!%g bra L{number};"
        yield FENCES[self.scope]
        yield f"L{number}:"


@dataclass(frozen=True)
class Flag:
    """One thread sets a word of its own; another waits for it, or reads it and goes on.

    ``before`` and ``after`` are the scopes of the fences about it (empty: none), ``put`` and
    ``get`` the scopes of the accesses, or ``volatile``; with ``itself`` the accesses are
    ``.release`` and ``.acquire``.
    """

    giver: tuple[int, int]
    taker: tuple[int, int]
    before: str = "gpu"
    after: str = "gpu"
    put: str = "gpu"
    get: str = "gpu"
    itself: bool = False
    looks: bool = True

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        put, get = (
            ".volatile" if scope == "volatile" else f".{word if self.itself else 'relaxed'}.{scope}"
            for word, scope in (("release", self.put), ("acquire", self.get))
        )
        for (block, tid), end in ((self.giver, f"M{number}"), (self.taker, f"N{number}")):
            yield f"setp.eq.u32 %g, %me, {tid};"
            yield f"setp.eq.and.u32 %g, %cta, {block}, %g;"
            yield f"@!%g bra {end};"
            if end[0] == "M":
                yield FENCES.get(self.before, "")
                yield f"st{put}.global.u32 [%f+{4 * number}], 1;"
            else:
                yield f"P{number}:"
                yield f"ld{get}.global.u32 %p{number}, [%f+{4 * number}];"
                if self.looks:
                    yield f"setp.eq.u32 %g, %p{number}, 0;"
                    yield f"@%g bra P{number};"
                yield FENCES.get(self.after, "")
            yield f"{end}:"


@dataclass(frozen=True)
class Lock:
    """Threads of several warps take a readers' lock, the first of them to write a word.

    The others read it, any number at once. ``early``: which of them lets the lock go before.
    """

    takers: tuple[tuple[int, int], ...]
    early: int = -1

    def ptx(self, number: int, equal: bool) -> Iterator[str]:
        yield f"add.u64 %l, %f, {4 * LOCKS + 8 * number};"
        for i, (block, tid) in enumerate(self.takers):
            at = f"{number}_{i}"
            yield f"setp.eq.u32 %g, %me, {tid};"
            yield f"setp.eq.and.u32 %g, %cta, {block}, %g;"
            yield f"@!%g bra L{at};"
            yield f"T{at}:"
            if i == 0:
                yield "atom.global.cas.b32 %a, [%l], 0, -1; setp.ne.u32 %g, %a, 0;"
            else:
                yield f"atom.global.add.u32 %a, [%l], 0; setp.lt.s32 %g, %a, 0; @%g bra T{at};"
                yield "add.u32 %b, %a, 1; atom.global.cas.b32 %v, [%l], %a, %b;"
                yield "setp.ne.u32 %g, %v, %a;"
            yield f"@%g bra T{at};"
            access = "st.global.u32 [%l+4], 7;" if i == 0 else "ld.global.u32 %x, [%l+4];"
            free = f"membar.gl; atom.global.add.u32 %a, [%l], {-1 if i else 1};"
            yield "membar.gl;"
            yield from (free, access) if i == self.early else (access, free)
            yield f"L{at}:"


Step = (
    Access | BlockBarrier | ClusterArrive | ClusterWait | WarpBarrier | NamedBarrier | Fence | Flag
    | Lock
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Steps, and the launch; ``equal``: all stores write the same value.

    ``cluster``: of so many blocks.
    """

    steps: tuple[Step, ...]
    threads: int
    blocks: int = 1
    equal: bool = False
    cluster: int = 1

    def ptx(self) -> tuple[str, dict[int, int]]:
        """The text, and which step the accesses' lines belong to."""
        flags = "".join(f", %p{i}" for i in range(len(self.steps)))
        shape = f".explicitcluster .reqnctapercluster {self.cluster}" if self.cluster > 1 else ""
        lines = [
            ".version 8.0", ".target sm_90", ".address_size 64",
            f".visible .entry program(.param .u64 data, .param .u64 flags) {shape}", "{",
            f".reg .pred %g; .reg .b32 %me, %cta, %a, %b, %v, %x, %y{flags};",
            ".reg .b64 %w, %n, %l, %o, %v2, %x2, %y2, %s, %d, %f;",
            f".shared .align 16 .b8 area[{AREA}];",
            "mov.u32 %me, %tid.x; mov.u32 %cta, %ctaid.x; mov.u64 %s, area;",
            "ld.param.u64 %d, [data]; ld.param.u64 %f, [flags];",
            "cvta.to.global.u64 %d, %d; cvta.to.global.u64 %f, %f;",
        ]  # fmt: skip
        steps: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            for line in step.ptx(number, self.equal):
                lines.append(line)
                steps[len(lines)] = number
        return "\n".join([*lines, "ret;", "}", ""]), steps
