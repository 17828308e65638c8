"""Loads and stores of every width, vector and space against Python loops."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.cases import EDGES, WIDTH, decode
from tests.simulator.isa.harness import MACHINES, kernel
from tests.support.memory_kernels import START, THREADS, element, home, launch, random_bytes

OPCODES = {
    "ld", "st", "ldu", "cvta", "isspacep", "alloca", "stacksave", "stackrestore", "createpolicy",
}  # fmt: skip
TYPES = [f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)] + ["f32", "f64", "b128"]
SPACES = ("global", "shared", "local", "generic")
pytestmark = pytest.mark.usefixtures("checked_writes")

ZERO = {"b128": "{%rd0, %rd0}", "f32": "0f00000000", "f64": "0d0000000000000000"}


@pytest.mark.slow_cases("f64-2-shared")
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    ("t", "vector"), [(t, n) for t in TYPES for n in (1, 2, 4) if WIDTH[t] * n <= 128]
)
def test_there_and_back(t: str, vector: int, space: str) -> None:
    """Global memory to registers, to a space, back to registers, to global memory."""
    size = WIDTH[t] // 8
    kinds = {8: "%h", 16: "%h", 32: "%r1", 64: "%rd1", 128: "%q"}
    kind = {"f32": "%f", "f64": "%fd"}.get(t, kinds[WIDTH[t]])
    names = [f"{kind}{i}" for i in range(vector)]
    operand = "{" + ", ".join(names) + "}" if vector > 1 else names[0]
    v = f".v{vector}" if vector > 1 else ""
    setup, word = home(space, size * vector)
    dot = f".{word}" if word else ""
    lines = [
        *START, *element(0, size * vector), *setup,
        f"ld.global{v}.{t} {operand}, [%rd2];",
        f"st{dot}{v}.{t} [%rd4], {operand};",
        *(f"mov.{'b16' if WIDTH[t] == 8 else t} {n}, {ZERO.get(t, 0)};" for n in names),
        f"ld{dot}{v}.{t} {operand}, [%rd4];",
        *element(1, size * vector), f"st.global{v}.{t} [%rd2], {operand}; ret;",
    ]  # fmt: skip
    k = kernel(lines, 3)
    for machine in MACHINES:
        given = random_bytes(2 * THREADS * size * vector, f"{t}{vector}")
        out, room = np.zeros_like(given), np.zeros_like(given)
        launch(machine, k, 2, THREADS, [given, out, room])
        assert (out == given).all()
        assert space != "global" or (room == given).all()


NARROW = [t for t in TYPES if t[0] != "f" and WIDTH[t] < 64]


@pytest.mark.parametrize(
    ("t", "target"), [(t, n) for t in NARROW for n in (16, 32, 64) if n >= WIDTH[t]]
)
def test_loads_extend_and_stores_truncate(t: str, target: int) -> None:
    name = {16: "%h0", 32: "%r8", 64: "%rd8"}[target]
    size = WIDTH[t] // 8
    lines = [
        *START, *element(0, size), f"ld.global.{t} {name}, [%rd2];",
        *element(1, target // 8), f"st.global.b{target} [%rd2], {name};",
        *element(2, size), f"st.global.{t} [%rd2], {name}; ret;",
    ]  # fmt: skip
    values = EDGES[t]
    for machine in MACHINES:
        given = np.array(values, f"u{size}")
        wide, narrow = np.zeros(len(values), f"u{target // 8}"), np.zeros_like(given)
        launch(machine, kernel(lines, 3), 1, len(values), [given, wide, narrow])
        assert wide.tolist() == [int(decode(t, v)) % (1 << target) for v in values]
        assert narrow.tolist() == values


def test_offsets_and_any_address() -> None:
    """Gather and scatter through an index, with constant offsets of both signs."""
    lines = [
        *START, *element(1, 4), "ld.global.u32 %r8, [%rd2];",
        *element(0, 4, "%r8", "%rd6"),
        "ld.global.u32 %r9, [%rd6+-4]; ld.global.u32 %r10, [%rd6+8];",
        "sub.u32 %r9, %r9, %r10;",
        *element(2, 4, "%r8", "%rd6"), "st.global.u32 [%rd6+4], %r9; ret;",
    ]  # fmt: skip
    rng = np.random.default_rng(3)
    for machine in MACHINES:
        data = rng.integers(0, 2**32, 515, np.uint32)
        index = (rng.permutation(512) + 1).astype(np.uint32)
        out = np.zeros(516, np.uint32)
        launch(machine, kernel(lines, 3), 4, 128, [data, index, out])
        wanted = np.zeros_like(out)
        wanted[index + 1] = data[index - 1] - data[index + 2]
        assert (out == wanted).all()


def test_variables_with_initial_values() -> None:
    before = """\
.const .align 4 .u32 primes[4] = {2, 3, 5, 7};
.global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 250, 6, 7, 8};
.global .align 4 .f32 third = 0f3EAAAAAB;
.global .align 8 .u64 pointer[2] = {primes_copy, generic(primes_copy)+4};
"""
    before = ".global .align 4 .u32 primes_copy[2] = {11, 13};\n" + before
    lines = [
        *START, "and.b32 %r4, %r0, 3; mul.wide.u32 %rd3, %r4, 4;",
        "mov.u64 %rd4, primes; add.u64 %rd4, %rd4, %rd3; ld.const.u32 %r8, [%rd4];",
        "ld.const.u32 %r9, [primes+8]; add.u32 %r8, %r8, %r9;",
        "ld.global.s8 %r9, [bytes+4]; add.u32 %r8, %r8, %r9;",
        "ld.global.f32 %f0, [third]; mov.b32 %r9, %f0; xor.b32 %r8, %r8, %r9;",
        "ld.global.u64 %rd5, [pointer+8]; ld.u32 %r9, [%rd5]; add.u32 %r8, %r8, %r9;",
        *element(0, 4), "st.global.u32 [%rd2], %r8; ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        out = np.zeros(8, np.uint32)
        launch(machine, kernel(lines, 1, before), 1, 8, [out])
        primes = [2, 3, 5, 7] * 2
        assert out.tolist() == [((p + 5 - 6) % 2**32 ^ 0x3EAAAAAB) + 13 for p in primes]


def test_ldu_and_cache_operators() -> None:
    lines = [
        *START, *element(0, 4), "ldu.global.u32 %r8, [%rd2];", "ld.global.nc.u32 %r9, [%rd2];",
        "ld.volatile.global.u32 %r10, [%rd2]; ld.global.cg.u32 %r11, [%rd2];",
        "ld.relaxed.gpu.global.u32 %r12, [%rd2];",
        "add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r10; add.u32 %r8, %r8, %r11;",
        "add.u32 %r8, %r8, %r12;", *element(1, 4), "st.global.wt.u32 [%rd2], %r8; ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
        launch(machine, kernel(lines, 2), 1, 32, [given, out])
        assert out.tolist() == [5 * i for i in range(32)]


@pytest.mark.parametrize(("t", "align"), [("u64", 64), ("u32", 32)])
def test_stack(t: str, align: int) -> None:
    """What is allocated holds what is put there; restored, the stack gives the same place again.

    A function's allocations are gone when it returns.
    """
    function = (
        f".func (.param .b64 r) f(.param .b64 x) {{ .reg .{t} %a; .reg .b64 %x; "
        f"ld.param.b64 %x, [x]; alloca.{t} %a, 400; st.local.b64 [%a+392], %x; "
        "ld.local.b64 %x, [%a+392]; st.param.b64 [r], %x; ret; }"
    )
    call = (
        "{ .param .b64 x; .param .b64 r; st.param.b64 [x], %rd8; call (r), f, (x); "
        "ld.param.b64 %rd8, [r]; }"
    )
    lines = [
        *START, *element(0, 8), "ld.global.u64 %rd8, [%rd2]; createpolicy.fractional"
        ".L2::evict_last.b64 %rd9, 1.0; st.global.L2::cache_hint.u64 [%rd2], %rd8, %rd9;",
        f".reg .{t} %old, %a, %b, %c; stacksave.{t} %old; alloca.{t} %a, 24;",
        f"alloca.{t} %b, 8, {align}; st.local.u64 [%a+16], %rd8; st.local.u64 [%b], %rd2;",
        f"ld.local.u64 %rd8, [%a+16]; and.b{t[1:]} %b, %b, {align - 1}; stackrestore.{t} %old;",
        f"alloca.{t} %c, 24; setp.eq.{t} %p1, %a, %c; setp.eq.and.{t} %p1, %b, 0, %p1;",
        call, call, call, "@!%p1 mov.u64 %rd8, 7;", *element(1, 8), "st.global.u64 [%rd2], %rd8;",
        "ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        given, out = np.arange(64, dtype=np.uint64) << np.uint64(33), np.zeros(64, np.uint64)
        launch(machine, kernel(lines, 2, function), 2, 32, [given, out])
        assert out.tolist() == given.tolist()


def test_a_stack_that_is_full() -> None:
    """Where it ends, ``stack_bytes`` says."""
    lines = [*START, "alloca.u64 %rd4, 1016; alloca.u64 %rd5, 16;", "st.local.u8 [%rd5], 1; ret;"]
    for room, fits in ((1024, False), (2048, True), (1032, True), (1031, False)):
        run = simulator.launch(kernel(lines, 0), 1, 1, [], stack_bytes=room)
        assert [h.kind for h in run.hazards] == ["out-of-bounds"] * (not fits), room


@pytest.mark.parametrize("uniform", [False, True])
def test_guards(uniform: bool) -> None:
    """Lanes that are off touch neither memory nor the destination."""
    condition = "setp.gt.u32 %p1, %r2, 9999;" if uniform else "setp.lt.u32 %p1, %r9, 3;"
    lines = [
        *START, "and.b32 %r9, %r0, 7;", condition, *element(0, 4),
        "mov.u32 %r8, 5; mov.u32 %r10, 6; mov.u32 %r11, 7;",
        "@%p1 ld.global.u32 %r8, [%rd2];", "@!%p1 atom.global.add.u32 %r10, [%rd2], 100;",
        "@%p1 st.global.u32 [%rd2], 9;", "@%p1 red.global.add.u32 [%rd2], 1;",
        "add.u32 %r8, %r8, %r10;", *element(1, 4), "st.global.u32 [%rd2], %r8; ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        data, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
        launch(machine, kernel(lines, 2), 1, 64, [data, out])
        for i in range(64):
            on = not uniform and i % 8 < 3
            assert (data[i], out[i]) == ((10, i + 6) if on else (i + 100, 5 + i))


def test_address_spaces() -> None:
    """Generic addresses: there and back, and which space they are in."""
    lines = [
        ".shared .align 4 .b8 s[128]; .local .align 4 .b8 l[16];", *START,
        "mov.u32 %r8, 0; ld.param.u64 %rd0, [p0]; cvta.to.global.u64 %rd4, %rd0;",
        "cvta.global.u64 %rd4, %rd4; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;",
        "mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6;",
    ]  # fmt: skip
    bit = 1
    for space in ("global", "shared", "local", "shared::cluster"):
        for name in ("%rd4", "%rd5", "%rd6"):
            lines += [f"isspacep.{space} %p1, {name};", f"@%p1 or.b32 %r8, %r8, {bit};"]
            bit *= 2
    lines += [
        "st.u32 [%rd6+4], %r3; ld.local.u32 %r9, [l+4]; cvta.to.shared.u64 %rd7, %rd5;",
        "mul.wide.u32 %rd8, %r0, 4; add.u64 %rd7, %rd7, %rd8; st.shared.u32 [%rd7], %r9;",
        "add.u64 %rd5, %rd5, %rd8; ld.u32 %r9, [%rd5]; shl.b32 %r9, %r9, 16; or.b32 %r8, %r8, %r9;",
        *element(0, 4),
        "st.global.u32 [%rd2], %r8; ret;",
    ]
    for machine in MACHINES:
        out = np.zeros(64, np.uint32)
        launch(machine, kernel(lines, 1), 2, 32, [out])
        assert out.tolist() == [i << 16 | 0b010_100_010_001 for i in range(64)]


def test_generic_access_to_several_spaces_at_once() -> None:
    """One load and one store whose lanes point to global, shared and local memory."""
    lines = [
        ".shared .align 4 .b8 s[384]; .local .align 4 .b8 l[8];", *START,
        *element(0, 4, into="%rd4"), "mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;",
        "add.u64 %rd5, %rd5, %rd1; mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6;",
        "rem.u32 %r9, %r0, 3; setp.eq.u32 %p1, %r9, 1; setp.eq.u32 %p2, %r9, 2;",
        "selp.b64 %rd7, %rd5, %rd4, %p1; selp.b64 %rd7, %rd6, %rd7, %p2;",
        "st.u32 [%rd7], %r0; ld.u32 %r8, [%rd7]; add.u32 %r8, %r8, 7; st.u32 [%rd7], %r8;",
        "atom.add.u32 %r10, [%rd7], 1000; ld.u32 %r8, [%rd7]; add.u32 %r8, %r8, %r10;",
        *element(1, 4), "st.global.u32 [%rd2], %r8; ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        data, out = np.zeros(96, np.uint32), np.zeros(96, np.uint32)
        launch(machine, kernel(lines, 2), 1, 96, [data, out])
        assert out.tolist() == [2 * (i + 7) + 1000 for i in range(96)]
        assert data.tolist() == [0 if i % 3 else i + 1007 for i in range(96)]


def test_parameters_of_all_types() -> None:
    """By-value parameters at their places in the buffer, structs and vector loads included."""
    header = ".version 8.6\n.target sm_90\n.address_size 64\n"
    params = (
        ".param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, .param .f64 d, "
        ".param .align 8 .b8 e[24], .param .u32 f, .param .u16 g"
    )
    lines = [
        ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .f64 %fd<4>;",
        "ld.param.u64 %rd0, [out]; ld.param.u8 %r0, [a]; st.global.u32 [%rd0], %r0;",
        "ld.param.s16 %r0, [b]; st.global.u32 [%rd0+4], %r0;",
        "ld.param.f32 %f0, [c]; st.global.f32 [%rd0+8], %f0;",
        "ld.param.f64 %fd0, [d]; st.global.f64 [%rd0+16], %fd0;",
        "ld.param.v2.u32 {%r1, %r2}, [e]; st.global.v2.u32 [%rd0+24], {%r1, %r2};",
        "ld.param.u64 %rd1, [e+16]; st.global.u64 [%rd0+32], %rd1;",
        "ld.param.s8 %r3, [e+11]; st.global.u32 [%rd0+40], %r3;",
        "ld.param.u32 %r0, [f]; st.global.u32 [%rd0+44], %r0;",
        "ld.param.u16 %r0, [g]; st.global.u32 [%rd0+12], %r0; ret;",
    ]
    body = "\n".join(lines)
    k = Kernel.from_ptx(f"{header}.visible .entry k({params})\n{{\n{body}\n}}\n", "k")
    struct = np.frombuffer(bytes(range(200, 224)), np.dtype("V24"))[0]
    for machine in MACHINES:
        out = np.zeros(48, np.uint8)
        machine.launch(k, 1, 1, [out, 250, -2, 0.5, -0.25, struct, 0xDEADBEEF, 0xFFFE])
        words = out.view(np.uint32)
        assert words[:4].tolist() == [250, 0xFFFFFFFE, 0x3F000000, 0xFFFE]
        assert out[16:24].view(np.float64)[0] == -0.25
        assert out[24:40].tolist() == [*range(200, 208), *range(216, 224)]
        assert words[[10, 11]].tolist() == [211 - 256 + 2**32, 0xDEADBEEF]


@pytest.mark.parametrize("far", [-(1 << 40), -(1 << 22), 1 << 22, 1 << 40])
@pytest.mark.parametrize("kind", ["u8", "u32", "u64"])
@pytest.mark.parametrize("space", ["shared", "local"])
def test_lanes_that_are_off_may_hold_any_address(space: str, kind: str, far: int) -> None:
    size = int(kind[1:]) // 8
    place, _ = home(space, size)
    value = "%rd6" if size == 8 else "%r4"
    body = [
        *START, *place,
        "setp.lt.u32 %p1, %r0, 5;",
        f"@!%p1 mov.b64 %rd4, {far};",
        f"mov.b{64 if size == 8 else 32} {value}, 77;",
        f"@%p1 st.{space}.{kind} [%rd4], {value};",
        f"@%p1 ld.{space}.{kind} {value}, [%rd4];",
        *element(0, size),
        f"st.global.{kind} [%rd2], {value};",
        "ret;",
    ]  # fmt: skip
    out = np.zeros(32 * size, np.uint8)
    launch(simulator, kernel(body, 1), 1, 32, [out])
    assert (out.view(f"u{size}") == 77).all()
