"""Loads, stores and atomics of every width, vector and space against Python loops."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from instructions.cases import EDGES, WIDTH, decode
from instructions.floats import FORMATS
from instructions.harness import MACHINES, kernel

import simulator
from kernels import Kernel

OPCODES = {"ld", "st", "ldu", "atom", "red", "cvta", "isspacep"}
TYPES = [f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)] + ["f32", "f64"]
SPACES = ("global", "shared", "local", "generic")
pytestmark = pytest.mark.usefixtures("checked_writes")

THREADS = 96
ZERO = {"f32": "0f00000000", "f64": "0d0000000000000000"}

START = [
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;",
    ".reg .f32 %f<8>; .reg .f64 %fd<8>;",
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
    "mad.lo.u32 %r3, %r1, %r2, %r0;",
]


def launch(machine: Any, k: Kernel, grid: int, block: int, arrays: Sequence[np.ndarray]) -> None:
    result = machine.launch(k, grid, block, list(arrays))
    if machine is simulator:
        assert result.hazards == []


def element(parameter: int, size: int, index: str = "%r3", into: str = "%rd2") -> list[str]:
    """Address of an element of an array that is a parameter."""
    return [
        f"ld.param.u64 %rd0, [p{parameter}]; mul.wide.u32 %rd1, {index}, {size};",
        f"add.u64 {into}, %rd0, %rd1;",
    ]


def random_bytes(count: int, seed: str) -> np.ndarray:
    return np.frombuffer(random.Random(seed).randbytes(count), np.uint8).copy()


def home(space: str, size: int) -> tuple[list[str], str]:
    """Code that puts the address of a thread's own element of a space in %rd4, and its word."""
    each = f"mul.wide.u32 %rd5, %r0, {size};"
    if space == "shared":
        return [".shared .align 16 .b8 room[3072];", f"mov.u64 %rd4, room; {each}",
                "add.u64 %rd4, %rd4, %rd5;"], "shared"  # fmt: skip
    if space == "local":
        return [
            ".local .align 16 .b8 own[64];",
            "mov.u64 %rd4, own; add.u64 %rd4, %rd4, 16;",
        ], "local"
    if space == "generic":
        lines = [".shared .align 16 .b8 room[3072];", f"mov.u64 %rd4, room; {each}"]
        return [*lines, "add.u64 %rd4, %rd4, %rd5; cvta.shared.u64 %rd4, %rd4;"], ""
    return [*element(2, size, into="%rd4")], "global"


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    ("t", "vector"), [(t, n) for t in TYPES for n in (1, 2, 4) if WIDTH[t] * n <= 128]
)
def test_there_and_back(t: str, vector: int, space: str) -> None:
    """Global memory to registers, to a space, back to registers, to global memory."""
    size = WIDTH[t] // 8
    kind = {"f32": "%f", "f64": "%fd"}.get(t, {8: "%h", 16: "%h", 32: "%r1", 64: "%rd1"}[WIDTH[t]])
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
    before = (
        ".const .align 4 .u32 primes[4] = {2, 3, 5, 7};\n"
        ".global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 250, 6, 7, 8};\n"
        ".global .align 4 .f32 third = 0f3EAAAAAB;\n"
        ".global .align 8 .u64 pointer[2] = {primes_copy, generic(primes_copy)+4};\n"
    )
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
    for space in ("global", "shared", "local"):
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
        assert out.tolist() == [i << 16 | 0b100_010_001 for i in range(64)]


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


# -- atomics ----------------------------------------------------------------------

Operation = Callable[..., int]


def float_add(t: str, is_global: bool) -> Operation:
    """As an H200 adds: global memory flushes floats, and leaves a double's NaN signalling."""
    f = FORMATS[t]
    zero = (lambda x: f.flush(x)) if is_global and t == "f32" else (lambda x: x)
    quiet = 0 if is_global else 1 << 51

    def add(old: int, v: int) -> int:
        nans = [x for x in (v, old) if f.is_nan(x)]
        if t == "f64" and nans:
            return nans[0] | quiet
        return zero(f.add(zero(old), zero(v)))

    return add


def atomics() -> list[tuple[str, str, Operation]]:
    found: list[tuple[str, str, Operation]] = []
    for t in ("s32", "u32", "s64", "u64"):
        if t != "s64":
            found.append(("add", t, lambda old, v: old + v))
        found += [("min", t, min), ("max", t, max)]
    for t in ("b32", "b64"):
        found += [
            ("and", t, lambda old, v: old & v), ("or", t, lambda old, v: old | v),
            ("xor", t, lambda old, v: old ^ v), ("exch", t, lambda old, v: v),
            ("cas", t, lambda old, c, v: v if old == c else old),
        ]  # fmt: skip
    found += [
        ("inc", "u32", lambda old, v: 0 if old >= v else old + 1),
        ("dec", "u32", lambda old, v: v if old == 0 or old > v else old - 1),
        ("add", "f32", lambda old, v: 0), ("add", "f64", lambda old, v: 0),
    ]  # fmt: skip
    return found


PLACES: dict[str, Callable[[int], int]] = {
    "apart": lambda i: i,
    "pairs": lambda i: i // 2 * 2 % THREADS,
    "few": lambda i: i * 7 % 3,
    "one": lambda i: 5,
}


def atomic_cases() -> list[Any]:
    cases = []
    for name, t, fn in atomics():
        for places in PLACES:
            for space in ("global", "shared", ""):
                label = f"{name}.{t}-{places}-{space or 'generic'}"
                cases.append(pytest.param(name, t, fn, places, space, id=label))
    return cases


@pytest.mark.parametrize(("name", "t", "fn", "places", "space"), atomic_cases())
def test_atomic(name: str, t: str, fn: Operation, places: str, space: str) -> None:
    """Old values and final content are those of the lanes one after the other."""
    if name == "add" and t[0] == "f":
        fn = float_add(t, space != "shared")
    size = WIDTH[t] // 8
    b = f"b{WIDTH[t]}"
    values = [f"%r{i}" if size == 4 else f"%rd{i}" for i in (8, 9, 10, 11)]
    if t[0] == "f":
        values = [f"%{t[0] if size == 4 else 'fd'}{i}" for i in range(4)]
        b = t
    dot = f".{space}" if space else ""
    second = f", {values[1]}" if name == "cas" else ""
    lines = [
        *START, f".shared .align 8 .b8 room[{THREADS * size}];", *element(0, size),
        f"mul.wide.u32 %rd1, %r0, {size}; mov.u64 %rd3, room; add.u64 %rd3, %rd3, %rd1;",
        f"ld.global.{b} {values[2]}, [%rd2]; st.shared.{b} [%rd3], {values[2]}; bar.sync 0;",
        *element(1, 4), "ld.global.u32 %r4, [%rd2];",
        *element(2, size), f"ld.global.{b} {values[0]}, [%rd2];",
        *element(3, size), f"ld.global.{b} {values[1]}, [%rd2];",
        f"mul.wide.u32 %rd1, %r4, {size}; mov.u64 %rd5, room; add.u64 %rd5, %rd5, %rd1;",
        *(element(0, size, "%r4", "%rd5") if space != "shared" else []),
        f"atom{dot}.{name}.{t} {values[3]}, [%rd5], {values[0]}{second};",
        *element(4, size), f"st.global.{b} [%rd2], {values[3]};",
        # The same once more, without the old value.
        *([] if name in ("exch", "cas") else
          [f"bar.sync 0; red{dot}.{name}.{t} [%rd5], {values[0]}{second};"]),
        "bar.sync 0;",
        *([f"ld.shared.{b} {values[2]}, [%rd3];", *element(0, size),
           f"st.global.{b} [%rd2], {values[2]};"] if space == "shared" else []),
        "ret;",
    ]  # fmt: skip
    rng = random.Random(f"{name}{t}{places}")
    pool = EDGES[t] if t[0] == "f" else [*EDGES[t], *range(5)]
    data, first, other = ([rng.choice(pool) for _ in range(THREADS)] for _ in range(3))
    if name == "cas":  # so that some succeed
        first = [rng.choice((data[PLACES[places](i)], x)) for i, x in enumerate(first)]
    where = [PLACES[places](i) for i in range(THREADS)]
    state = list(data)
    old = []
    bits = (1 << WIDTH[t]) - 1
    for rounds in range(1 if name in ("exch", "cas") else 2):
        for i, at in enumerate(where):
            if rounds == 0:
                old.append(state[at])
            given = [decode(t, x[i]) for x in ((first, other) if name == "cas" else (first,))]
            state[at] = int(fn(decode(t, state[at]), *given)) & bits
    arrays = [np.array(data, f"u{size}"), np.array(where, np.uint32),
              np.array(first, f"u{size}"), np.array(other, f"u{size}"),
              np.zeros(THREADS, f"u{size}")]  # fmt: skip
    # Another order is as right, on a GPU: only the simulator's is known.
    launch(simulator, kernel(lines, 5), 1, THREADS, arrays)
    assert arrays[4].tolist() == old
    assert arrays[0].tolist() == state


@pytest.mark.parametrize("machine", MACHINES)
def test_tickets_of_many_blocks(machine: Any) -> None:
    """Every thread of a grid draws a ticket: each number once, whatever the order."""
    lines = [
        *START, "ld.param.u64 %rd4, [p0]; atom.global.add.u32 %r8, [%rd4], 1;",
        *element(1, 4, "%r8"), "red.global.add.u32 [%rd2], 1; ret;",
    ]  # fmt: skip
    counter, drawn = np.zeros(1, np.uint32), np.zeros(7 * 160, np.uint32)
    launch(machine, kernel(lines, 2), 7, 160, [counter, drawn])
    assert counter[0] == 7 * 160
    assert (drawn == 1).all()


def test_parameters_of_all_types() -> None:
    """By-value parameters at their places in the buffer, structs and vector loads included."""
    header = ".version 8.6\n.target sm_90\n.address_size 64\n"
    params = (
        ".param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, .param .f64 d, "
        ".param .align 8 .b8 e[24], .param .u32 f"
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
        "ld.param.u32 %r0, [f]; st.global.u32 [%rd0+44], %r0; ret;",
    ]
    body = "\n".join(lines)
    k = Kernel.from_ptx(f"{header}.visible .entry k({params})\n{{\n{body}\n}}\n", "k")
    struct = np.frombuffer(bytes(range(200, 224)), np.dtype("V24"))[0]
    for machine in MACHINES:
        out = np.zeros(48, np.uint8)
        machine.launch(k, 1, 1, [out, 250, -2, 0.5, -0.25, struct, 0xDEADBEEF])
        words = out.view(np.uint32)
        assert words[[0, 1, 2]].tolist() == [250, 0xFFFFFFFE, 0x3F000000]
        assert out[16:24].view(np.float64)[0] == -0.25
        assert out[24:40].tolist() == [*range(200, 208), *range(216, 224)]
        assert words[[10, 11]].tolist() == [211 - 256 + 2**32, 0xDEADBEEF]


def test_a_sum_of_many_in_one_place_flushes_at_each_step() -> None:
    """Global atom.add.f32: 64 additions or more take another path than few do."""
    source = "__global__ void total(const float* x, float* s) { atomicAdd(s, x[threadIdx.x]); }"
    rng = np.random.default_rng(5)
    x = rng.choice(np.float32([1e-38, -1e-38, 1.2e-38, -1.3e-38, 3e-39, 1.0e-37]), 1024)
    s = np.zeros(1, np.float32)
    with np.errstate(all="ignore"):
        expected = np.float32(0)
        for value in x:
            expected = flushed(expected + flushed(value))
    simulator.launch(Kernel.from_cuda(source, "total"), 1, 1024, [x, s])
    assert s[0].tobytes() == expected.tobytes()


def flushed(x: np.float32) -> np.float32:
    return np.float32(np.copysign(0, x)) if abs(x) < np.finfo(np.float32).smallest_normal else x


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
