"""Random PTX: valid, without races, its results the same under every order of threads.

Each thread writes its own slots of ``out``; it sees others through barriers, shuffles and
votes, and through atomics that commute. Every register has a value from the start, so any
statement may be left out.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from tests.fuzz.compare import Launch
from tests.fuzz.rows import Form, forms
from tests.fuzz.tree import Draw, Statement, render

KINDS = {"h": ("b16", 5), "r": ("b32", 8), "l": ("b64", 6), "f": ("f32", 5), "d": ("f64", 4),
         "p": ("pred", 5)}  # fmt: skip
"""Register letters: how they are declared, and how many of each there are."""
INPUTS = 64
"""64-bit words of the input array."""
SLOTS = 48
"""64-bit words of ``out`` that a thread owns: scratch (16), then its registers."""
SCRATCH = 16
BLOCKS = ((32,), (64,), (96,), (128,), (40,), (16, 4), (8, 4, 2), (24, 3), (7,), (1,))
EDGES = {
    "h": [0, 1, 2, 0x7FFF, 0x8000, 0xFFFF, 0x3C00, 0xBC00, 0x7C00, 0x3F80, 0xFF, 0x80],
    "r": [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000, 0x3F800000],
    "l": [0, 1, 63, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63,
          (1 << 64) - 1, (1 << 53) + 1],
    "f": [0, 0x80000000, 0x3F800000, 0xBF800000, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000,
          0xFF800000, 0x7FC00000, 0x3F000000, 0x4B000001, 0x4F000000, 0x5F000000, 0x33800000],
    "d": [0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52,
          0xFFF << 52, 0x7FF8 << 48, 0x3FE << 52, 0x41E << 52, 0x43E << 52, 0x3FF0000010000000],
}  # fmt: skip


@dataclass
class Program:
    """A program: its parts as trees, its shape (a cluster's blocks), and its arguments.

    Attributes:
        alike: Where the start values of registers are other ones (``ALIKE``), in turn.
    """

    seed: int
    body: list[Statement]
    functions: list[list[Statement]]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: np.ndarray
    names: set[str] = field(default_factory=set)
    entry: str = "k"
    cluster: int = 1
    alike: tuple[str, ...] = ("thread",)

    def trees(self) -> list[list[Statement]]:
        return [self.body, *self.functions]

    def kernel_text(self) -> str:
        """Functions and entry, without the header."""
        counter = itertools.count()
        parts = []
        for number, tree in enumerate(self.functions):
            body = "\n".join(s.render(counter) for s in tree)
            parts.append(FUNCTION.replace("NAME", f"{self.entry}_f{number}").replace("BODY", body))
        body = render(self.body).replace("call_f", f"{self.entry}_f")
        return "\n".join([*parts, self.head() + body, self.meeting(), tail()])

    def meeting(self) -> str:
        """All meet that have to do with shared memory: a block, or a cluster."""
        return "bar.sync 0;" if self.cluster == 1 else MEETING

    def head(self) -> str:
        threads = math.prod(self.block)
        return (
            HEAD.replace("CLUSTER", CLUSTER.format(self.cluster) if self.cluster > 1 else "")
            .replace("NAME", self.entry)
            .replace("REGISTERS", registers())
            .replace("START", start(self.alike))
            .replace("MEET", self.meeting())
            .replace("SHARED", str(16 * threads))
            .replace("THREADS", str(threads))
        )

    def ptx(self) -> str:
        return HEADER + self.kernel_text()

    def arguments(self) -> list[np.ndarray]:
        """Output slots, inputs, counters."""
        total = math.prod(self.block) * math.prod(self.grid)
        slots = np.arange(SLOTS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        out = np.tile(slots, total)
        return [out, self.inputs.copy(), np.zeros(32, np.uint64)]

    def launch(self) -> Launch:
        return Launch(self.ptx(), self.entry, self.grid, self.block, self.arguments())


HEADER = """\
.version 8.6
.target sm_90
.address_size 64
.const .align 8 .b8 table[64] = {1,2,3,250,128,127,0,255,7,6,5,4,3,2,1,0,200,100,50,25,12,6,3,1,
9,8,7,6,5,4,3,255,0,0,128,63,0,0,0,64,255,255,255,255,0,0,0,128,1,0,1,0,1,0,1,0,33,44,55,66,77,88,99,1};
"""


def registers() -> str:
    declared = [f".reg .{kind} %{c}<{n}>;" for c, (kind, n) in KINDS.items()]
    return "\n".join([*declared, ".reg .b32 %t<24>; .reg .b64 %a<16>; .reg .pred %q<4>;"])


ALIKE = {
    "thread": "%t1", "block": "%t8", "thread of each block": "%t0", "warp": "%t22", "launch": "0",
    "place": "%t4",
}  # fmt: skip
"""What threads have alike, and the number by which it differs: values broadcast by these."""


def filled(register: str, number: str, factor: int, start: int) -> str:
    """A register gets an input, by a number."""
    c = register[1]
    lines = [
        f"mad.lo.u32 %t9, {number}, {factor}, {start};", f"and.b32 %t9, %t9, {INPUTS - 1};",
        "mad.wide.u32 %a9, %t9, 8, %a1;",
    ]  # fmt: skip
    if c == "p":
        lines += ["ld.global.u8 %t9, [%a9];", f"setp.lt.u32 {register}, %t9, 100;"]
    else:
        lines.append(f"ld.global.{KINDS[c][0]} {register}, [%a9];")
    return "\n".join(lines)


def start(alike: tuple[str, ...]) -> str:
    """Every register gets a value from the inputs."""
    numbers = itertools.cycle(ALIKE[name] for name in alike)
    return "\n".join(
        filled(f"%{c}{i}", next(numbers), 2 * i + 1, 7 * i + ord(c))
        for c, (_, n) in KINDS.items()
        for i in range(n)
    )


MEETING = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
CLUSTER = ".explicitcluster .reqnctapercluster {}\n"
HEAD = """\
.visible .entry NAME(.param .u64 NAME_out, .param .u64 NAME_in, .param .u64 NAME_count)
CLUSTER{
REGISTERS
.shared .align 16 .b8 s[SHARED];
.shared .align 8 .b8 sums[64];
.local .align 16 .b8 own[64];
ld.param.u64 %a0, [NAME_out];
ld.param.u64 %a1, [NAME_in];
ld.param.u64 %a2, [NAME_count];
cvta.to.global.u64 %a0, %a0;
cvta.to.global.u64 %a1, %a1;
cvta.to.global.u64 %a2, %a2;
mov.u32 %t2, %tid.x; mov.u32 %t3, %ntid.x; mov.u32 %t4, %tid.y; mov.u32 %t5, %ntid.y;
mov.u32 %t6, %tid.z;
mad.lo.u32 %t7, %t6, %t5, %t4;
mad.lo.u32 %t0, %t7, %t3, %t2;
mov.u32 %t8, %ctaid.x; mov.u32 %t10, %nctaid.x; mov.u32 %t11, %ctaid.y;
mad.lo.u32 %t8, %t11, %t10, %t8;
mad.lo.u32 %t1, %t8, THREADS, %t0;
mad.wide.u32 %a3, %t1, 384, %a0;
shr.u32 %t22, %t0, 5;
mov.u64 %a4, s; mad.wide.u32 %a5, %t0, 16, %a4;
mov.u64 %a6, own; mov.u64 %a7, sums;
st.local.v2.u64 [own], {%a1, 81985529216486895};
START
st.local.u64 [own], %l0; st.local.u64 [own+8], %l1;
st.local.v4.b32 [own+16], {%r0, %r1, %r2, %r3};
st.local.v2.u64 [own+32], {%l2, %l3}; st.local.v2.b64 [own+48], {%l4, %l5};
st.shared.v2.b64 [%a5], {%l0, %l1};
setp.lt.u32 %q0, %t0, 8; mad.wide.u32 %a8, %t0, 8, %a7;
setp.eq.u32 %q1, %t0, 0;
@%q1 st.shared.v2.u64 [sums], {0, 0}; @%q1 st.shared.v2.u64 [sums+16], {0, 0};
@%q1 st.shared.v2.u64 [sums+32], {0, 0}; @%q1 st.shared.v2.u64 [sums+48], {0, 0};
MEET
"""


def tail() -> str:
    """All registers go to the thread's slots."""
    lines, at = ["setp.eq.u32 %q1, %t0, 0;"], SCRATCH * 8
    for c, (kind, n) in KINDS.items():
        for i in range(n):
            if c == "p":
                lines.append(f"selp.u32 %t9, 1, 0, %p{i};")
                lines.append(f"st.global.u32 [%a3+{at}], %t9;")
            else:
                lines.append(f"st.global.{kind} [%a3+{at}], %{c}{i};")
            at += 8 if c in "ld" else 4
        at = -(-at // 8) * 8
    assert at <= SLOTS * 8
    for i in range(8):
        lines.append(f"@%q1 ld.shared.u64 %a9, [sums+{8 * i}];")
        lines.append(f"@%q1 red.global.add.u64 [%a2+{8 * i + 128}], %a9;")
    return "\n".join([*lines, "ret;", "}"])


FUNCTION = """\
.func (.param .b64 NAME_r) NAME(.param .b32 NAME_0, .param .b64 NAME_1, .param .b32 NAME_2)
{
.reg .b16 %h<5>; .reg .b32 %r<8>; .reg .b64 %l<6>; .reg .f32 %f<5>; .reg .f64 %d<4>;
.reg .pred %p<5>;
.reg .b32 %t<24>; .reg .b64 %a<16>; .reg .pred %q<4>;
ld.param.b32 %r0, [NAME_0]; ld.param.b64 %l0, [NAME_1]; ld.param.f32 %f0, [NAME_2];
mov.b32 {%h0, %h1}, %r0; mov.b64 {%r1, %r2}, %l0; mov.b64 %d0, %l0; mov.b32 %r3, %f0;
add.u32 %r4, %r0, %r1; xor.b32 %r5, %r2, %r1; mul.lo.u32 %r6, %r4, %r5; not.b32 %r7, %r0;
mov.u16 %h2, 3; mov.b16 %h3, %h0; mov.b16 %h4, %h1; not.b64 %l1, %l0; mul.lo.u64 %l2, %l0, %l1;
cvt.u64.u32 %l3, %r0; mov.b64 %l4, {%r3, %r0}; mov.u64 %l5, 5;
mov.b32 %f1, %r1; mov.f32 %f2, 0f3F800000; mov.b32 %f3, %r4; mov.f32 %f4, %f0;
mov.b64 %d1, %l2; mov.f64 %d2, 0d4008000000000000; cvt.f64.f32 %d3, %f0;
setp.lt.s32 %p0, %r0, %r1; setp.gt.u64 %p1, %l0, %l1; setp.ne.b32 %p2, %r2, 0;
setp.lt.f32 %p3, %f0, %f1; not.pred %p4, %p0;
BODY
mov.b32 %r7, %f0;
mov.b64 %a9, {%r0, %r7};
xor.b64 %l0, %l0, %a9;
st.param.b64 [NAME_r], %l0;
ret;
}
"""


def one(rng: Draw, form: Form) -> str:
    """An instruction of a form, with random operands."""

    def register(c: str) -> str:
        return f"%{c}{rng.randrange(KINDS[c][1])}"

    def constant(c: str) -> str:
        if (c in "fd" and rng.chance(0.5)) or rng.chance(0.6):
            bits = rng.choice(EDGES[c])
        else:
            bits = rng.getrandbits({"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}[c])
        if c == "f":
            return f"0f{bits:08X}"
        if c == "d":
            return f"0d{bits:016X}"
        if c == "h":
            return str(bits if bits < 0x8000 else bits - 0x10000)
        if rng.chance(0.2):
            return str(-rng.randrange(1, 100))
        return str(bits) + ("U" if bits >> 63 else "")

    def source(c: str) -> str:
        if c == "n":
            amounts = [0, 1, 5, 8, 16, 31, 32, 33, 63, 64]
            return register("r") if rng.chance(0.4) else str(rng.choice(amounts))
        if c == "5":
            return str(rng.randrange(32))
        if c == "i":
            return hex(rng.randrange(256))
        if c == "q":
            return rng.choice(["", "!"]) + register("p")
        if c == "W":
            return register(rng.choice("hrl"))
        if c.islower() and c != "p" and rng.chance(0.3):
            return constant(c)
        return register(c.lower())

    results: list[str] = []
    for c in form.results:
        while True:
            made = register(rng.choice("hrl") if c == "w" else c)
            if made not in results:
                break
        results.append(made)
    first = "|".join(results)
    guard = f"@{rng.choice(['', '!'])}{register('p')} " if rng.chance(0.2) else ""
    if form.results == "pp" and rng.chance(0.5):  # an instruction may overwrite its own guard
        guard = f"@{rng.choice(results)} "
    return f"{guard}{form.name} {first}, {', '.join(source(c) for c in form.sources)};"


def value(rng: Draw, names: set[str]) -> Statement:
    """One instruction that computes a value; opcodes alike often, whatever their forms."""
    table = forms()
    form = rng.choice(table[rng.choice(sorted(table))])
    names.add(form.name)
    return Statement(one(rng, form))
