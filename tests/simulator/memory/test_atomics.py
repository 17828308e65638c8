"""Atomics of every operation and type against Python loops."""

import itertools
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.memory import atomics
from tests.simulator.isa.cases import EDGES, WIDTH, decode
from tests.simulator.isa.floats import FORMATS
from tests.simulator.isa.harness import MACHINES, kernel
from tests.support.memory_kernels import START, THREADS, element, launch

OPCODES = {"atom", "red"}
pytestmark = pytest.mark.usefixtures("checked_writes")

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


def operations() -> list[tuple[str, str, Operation]]:
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
    for name, t, fn in operations():
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


@pytest.mark.parametrize("name", ["add", "min", "max", "and", "or", "xor"])
def test_operations_in_bulk_know_whether_any_changed_a_value(name: str) -> None:
    """As one after the other would; two at one place among them may cancel each other out."""
    ufunc = atomics.in_bulk(name, "s32")
    assert ufunc is not None
    where = np.array([0, 0, 1])
    for start, *given in itertools.product([0, 1, -1, 5], repeat=4):
        operand, memory = np.array(given, np.int32), np.full(2, start, np.int32)
        changed = False
        for at, value in zip(where, operand, strict=True):
            old = memory[at]
            memory[at] = ufunc(old, value)
            changed |= bool(memory[at] != old)
        bulk = np.full(2, start, np.int32)
        ufunc.at(bulk, where, operand)
        before = np.full(3, start, np.int32)
        assert atomics.changes(name, operand, before, bulk[where]) == changed


@pytest.mark.parametrize("reads", [
    "add.u32 %r5, %r4, 0;",
    "@%p1 mov.u32 %r5, %r4;",
    "bra NEXT; NEXT: add.u32 %r5, %r4, 0;",
    "@!%p1 bra NEXT; mov.u32 %r5, %r4; NEXT: bar.warp.sync 0xffffffff;",
    "bar.sync 0; @%p1 bra NEXT; bra.uni NEXT; NEXT: shfl.sync.idx.b32 %r5, %r4, %r6, 31, -1;",
    "mov.b64 %rd4, {%r4, %r0}; mov.b64 {%r5, %r6}, %rd4;",
    "setp.eq.u32 %p2, %r4, %r3; @%p2 mov.u32 %r5, %r3;",
])  # fmt: skip
def test_whoever_reads_what_an_atomic_found(reads: str) -> None:
    """It may be in another block, or as a guard."""
    lines = [
        *START, *element(0, 4), "mov.u32 %r5, 99; and.b32 %r6, %r0, 31;",
        "setp.lt.u32 %p1, %r0, 1000;", "atom.global.add.u32 %r4, [%rd2], 7;", *reads.split("  "),
        *element(1, 4), "st.global.u32 [%rd2], %r5;", "ret;",
    ]  # fmt: skip
    arrays = [np.arange(THREADS, dtype=np.uint32), np.zeros(THREADS, np.uint32)]
    launch(simulator, kernel(lines, 2), 1, THREADS, arrays)
    assert arrays[1].tolist() == list(range(THREADS))
    assert arrays[0].tolist() == list(range(7, THREADS + 7))


def wide_atomics() -> list[Any]:
    """Instruction, type of an element, elements of one operand, meaning on one element."""
    cases: list[tuple[str, str, int, Callable[..., Any]]] = []
    for t in ("f16", "bf16"):
        f = FORMATS[t]
        fns = {"add": f.add, "min": partial(f.extreme, True), "max": partial(f.extreme, False)}
        for name, fn in fns.items():
            if name == "add":
                cases += [(f"{name}.noftz.{t}", t, 1, fn), (f"{name}.noftz.{t}x2", t, 2, fn)]
            for many in (2, 4, 8):
                cases.append((f"{name}.noftz.v{many}.{t}", t, many, fn))
            cases += [(f"{name}.noftz.v{n}.{t}x2", t, 2 * n, fn) for n in (2, 4)]
    cases += [(f"add.v{many}.f32", "f32", many, float_add("f32", True)) for many in (2, 4)]
    cases += [("exch.b128", "b128", 1, lambda old, v: v)]
    cases += [("cas.b128", "b128", 1, lambda old, c, v: v if old == c else old)]
    return [
        pytest.param(*case, where, space, id=f"{case[0]}-{where}-{space or 'generic'}")
        for case in cases for where in ("apart", "few")
        for space in (("global",) if ".v" in case[0] else ("global", "shared", ""))
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "t", "many", "fn", "places", "space"), wide_atomics())
def test_wide(
    name: str, t: str, many: int, fn: Callable[..., Any], places: str, space: str
) -> None:
    """Vectors, 16-bit floats and 128 bits; a lane's own 16 bytes are the same in any order."""
    held = "b128" if t == "b128" else "f32" if t == "f32" else "b32" if "x2" in name else "b16"
    count = int(found[1]) if (found := re.search(r"\.v(\d)", name)) else 1
    v = f".v{count}" if count > 1 else ""
    dot = f".{space}" if space else ""

    def values(letter: str) -> str:
        return "{" * (count > 1) + ", ".join(f"%{letter}{i}" for i in range(count)) + "}" * bool(v)

    second = f", {values('c')}" if name == "cas.b128" else ""
    lines = [
        *START, f".reg .{held} %a<8>, %c<8>, %d<8>; .shared .align 16 .b8 room[{16 * THREADS}];",
        "mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd3, room; add.u64 %rd3, %rd3, %rd1;",
        *element(0, 16), "ld.global.v2.b64 {%rd8, %rd9}, [%rd2];",
        "st.shared.v2.b64 [%rd3], {%rd8, %rd9}; bar.sync 0;",
        *element(1, 4), "ld.global.u32 %r4, [%rd2];",
        *element(2, 16), f"ld.global{v}.{held} {values('a')}, [%rd2];",
        *element(3, 16), f"ld.global{v}.{held} {values('c')}, [%rd2];",
        "mul.wide.u32 %rd1, %r4, 16; mov.u64 %rd5, room; add.u64 %rd5, %rd5, %rd1;",
        *(element(0, 16, "%r4", "%rd5") if space != "shared" else []),
        f"atom{dot}.{name} {values('d')}, [%rd5], {values('a')}{second};",
        *element(4, 16), f"st.global{v}.{held} [%rd2], {values('d')};",
        *([f"bar.sync 0; red{dot}.{name} [%rd5], {values('a')};"] if t != "b128" else []),
        "bar.sync 0;",
        *(["ld.shared.v2.b64 {%rd8, %rd9}, [%rd3];", *element(0, 16),
           "st.global.v2.b64 [%rd2], {%rd8, %rd9};"] if space == "shared" else []), "ret;",
    ]  # fmt: skip
    rng, size = random.Random(name), WIDTH[t] // 8
    pool = EDGES[t] if t != "b128" else [x << 64 | y for x in (0, 1, 1 << 63) for y in (0, 1, 5)]
    where = [PLACES[places](i) for i in range(THREADS)]
    data, first, other = ([[rng.choice(pool) for _ in range(many)] for _ in range(THREADS)]
                          for _ in range(3))  # fmt: skip
    if name == "cas.b128":  # so that some succeed
        first = [rng.choice((data[at], x)) for at, x in zip(where, first, strict=True)]
    state, old = [list(x) for x in data], []
    for rounds in range(1 if t == "b128" else 2):
        for at, *given in zip(where, first, *([other] if second else []), strict=True):
            if not rounds:
                old.append(state[at])
            state[at] = [fn(*each) for each in zip(state[at], *given, strict=True)]

    def packed(rows: list[list[int]]) -> Any:
        content = [b"".join(x.to_bytes(size, "little") for x in row) for row in rows]
        return np.array([list(x.ljust(16, b"\0")) for x in content], np.uint8)

    # With eight elements the process ends while driver 580.159 compiles the PTX.
    for machine in MACHINES if places == "apart" and count < 8 else [simulator]:
        arrays = [packed(data), np.array(where, np.uint32), packed(first), packed(other),
                  np.zeros((THREADS, 16), np.uint8)]  # fmt: skip
        launch(machine, kernel(lines, 5), 1, THREADS, arrays)
        assert (arrays[4] == packed(old)).all()
        assert (arrays[0] == packed(state)).all()


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
