"""Runs one instruction on many operands at once and compares with a Python model.

A ``Case`` is an instruction variant, its operand types and its meaning on Python
integers. Operands travel as bit patterns; a model gets signed integers for ``.s``
types, ``bool`` for predicates and bit patterns for everything else (floats too: see
``floats``), and gives an integer whose low bits count, or a tuple of them.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import device
import simulator
from kernels import Kernel

MACHINES = [simulator] + ([device] if device.available()[0] else [])

WIDTH = {
    "pred": 1, "s8": 8, "u8": 8, "b8": 8, "s16": 16, "u16": 16, "b16": 16, "f16": 16, "bf16": 16,
    "s32": 32, "u32": 32, "b32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
    "s64": 64, "u64": 64, "b64": 64, "f64": 64,
}  # fmt: skip

_INTEGERS = [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 255, 256, 0x5A, 0x1234]
EDGES: dict[str, list[int]] = {
    "pred": [0, 1],
    "f16": [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01, 1, 0x8001, 0x3FF,
            0x400, 0x401, 0x7BFF, 0xFBFF, 0x3555, 0x3C01, 0x1000, 0x6400, 0x77FF],
    "bf16": [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 1, 0x8001, 0x7F,
             0x80, 0x81, 0x7F7F, 0xFF7F, 0x3F81, 0x3300, 0x4B00, 0x4EFF],
    "f32": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0xC0200000, 0x7F800000,
            0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F812345, 1, 0x80000001, 0x007FFFFF, 0x00800000,
            0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x4F000000, 0xCF000000, 0x3F7FFFFF, 0x3F800800,
            0x21800000, 0x33800000, 0x33000000, 0x3FC00000],
    "f64": [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000,
            0x4004000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
            0xFFF8000000012345, 0x7FF0000000012345, 1, (1 << 63) | 1, 0x000FFFFFFFFFFFFF,
            0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x43E0000000000000,
            0xC1E0000000200000, 0x3810000000000000, 0x36A0000000000000, 0x47EFFFFFF0000000,
            0x3FF0000010000000, 0x3CA0000000000000, 0x3C90000000000000, 0x3FF0000000000001],
}  # fmt: skip
"""Bit patterns that every variant sees."""


def _more_edges() -> None:
    for bits in (8, 16, 32, 64):
        top = 1 << (bits - 1)
        around = [top - 2, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]
        values = sorted({v % (2 * top) for v in _INTEGERS + around})
        if bits == 64:
            values += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 53) + 1]
        for kind in (f"s{bits}", f"u{bits}", f"b{bits}"):
            EDGES[kind] = values
    for half in ("f16", "bf16"):
        low = EDGES[half]
        EDGES[half + "x2"] = [a | b << 16 for a, b in zip(low, low[7:] + low[:7], strict=True)]


_more_edges()


_FEW = 24
"""Rows of operands in the forms that cost a launch each."""


@dataclass(frozen=True)
class Case:
    """One instruction variant.

    Attributes:
        name: The instruction with its modifiers, unless ``code`` says more.
        out: Types of the results; ``ins``: of the operands.
        model: What it means, on Python numbers.
        tail: Immediate operands after the others.
        code: Statements with ``{o0}`` for results and ``{v0}`` for operands.
        edges: Values instead of ``EDGES`` by operand number.
        most: Rows of the operands' cross product at most.
        close: Whether a result is near enough, for approximations: (operands, got, model).
    """

    name: str
    out: tuple[str, ...]
    ins: tuple[str, ...]
    model: Callable[..., Any]
    tail: str = ""
    code: str = ""
    edges: tuple[tuple[int, tuple[int, ...]], ...] = ()
    most: int = 1500
    close: Callable[..., bool] | None = None

    @property
    def statements(self) -> str:
        """The code under test."""
        if self.code:
            return self.code
        first = "|".join(f"{{o{i}}}" for i in range(len(self.out)))
        sources = ", ".join(f"{{v{i}}}" for i in range(len(self.ins)))
        return f"{self.name} {first}{', ' if self.ins else ''}{sources}{self.tail};"

    @property
    def opcodes(self) -> set[str]:
        """Opcodes in the code under test."""
        return {m[1] for m in re.finditer(r"(?:^|;)\s*(?:@\S+\s+)?([a-z]\w*)", self.statements)}

    def __str__(self) -> str:
        return f"{self.name}{self.tail}"


def register(kind: str) -> str:
    """The register type that holds a value of a type."""
    if kind in ("pred", "f32", "f64"):
        return kind
    return f"b{max(WIDTH[kind], 16)}"


def result_register(kind: str) -> str:
    """The same for a result: 8-bit ones are seen extended to 32 bits."""
    return "b32" if WIDTH[kind] == 8 else register(kind)


def _moved(kind: str) -> str:
    """The type that loads and stores a register."""
    return "b32" if kind == "pred" else kind if kind in ("f32", "f64") else f"b{WIDTH[kind]}"


@functools.cache
def build(case: Case, diverged: bool = False) -> Kernel:
    """A kernel that loads operands, runs the case's code and stores the results.

    Args:
        case: What to run.
        diverged: Only threads of even number run it, after a branch.
    """
    outs = [f"%o{i}" for i in range(len(case.out))]
    values = [f"%v{i}" for i in range(len(case.ins))]
    lines = [f".reg .{result_register(k)} {o};" for k, o in zip(case.out, outs, strict=True)]
    lines += [f".reg .{register(k)} {v};" for k, v in zip(case.ins, values, strict=True)]
    lines += [
        ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b16 %h<8>; .reg .f32 %f<4>;",
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
        "mad.lo.u32 %r3, %r1, %r2, %r0;",
    ]
    for i, (kind, name) in enumerate(zip(case.ins, values, strict=True)):
        moved = _moved(register(kind))
        lines += [
            f"ld.param.u64 %rd0, [p{i}]; mul.wide.u32 %rd1, %r3, {WIDTH[moved] // 8};",
            "add.u64 %rd2, %rd0, %rd1;",
        ]
        if kind == "pred":
            lines += ["ld.global.b32 %r4, [%rd2];", f"setp.ne.u32 {name}, %r4, 0;"]
        else:
            lines.append(f"ld.global.{moved} {name}, [%rd2];")
    names = {f"o{i}": o for i, o in enumerate(outs)} | {f"v{i}": v for i, v in enumerate(values)}
    if diverged:
        lines.append("and.b32 %r6, %r0, 1; setp.eq.u32 %p3, %r6, 1; @%p3 bra DONE;")
    lines.append(case.statements.format(**names))
    lines.append("DONE:")
    for i, (kind, name) in enumerate(zip(case.out, outs, strict=True)):
        moved = _moved(result_register(kind))
        number = len(case.ins) + i
        lines += [
            f"ld.param.u64 %rd0, [p{number}]; mul.wide.u32 %rd1, %r3, {WIDTH[moved] // 8};",
            "add.u64 %rd2, %rd0, %rd1;",
        ]
        if kind == "pred":
            lines += [f"selp.u32 %r5, 1, 0, {name};", "st.global.b32 [%rd2], %r5;"]
        else:
            lines.append(f"st.global.{moved} [%rd2], {name};")
    return kernel([*lines, "ret;"], len(case.ins) + len(case.out))


def kernel(lines: Iterable[str], pointers: int, before: str = "") -> Kernel:
    """An entry ``k`` with 64-bit parameters ``p0``, ``p1`` ... around some lines."""
    params = ", ".join(f".param .u64 p{i}" for i in range(pointers))
    header = ".version 8.6\n.target sm_90\n.address_size 64\n"
    body = "\n".join(lines)
    return Kernel.from_ptx(f"{header}{before}\n.visible .entry k({params})\n{{\n{body}\n}}\n", "k")


def _array(kind: str, values: Sequence[int]) -> np.ndarray:
    """Operands as memory holds them; 8-bit ones below bits that must not matter."""
    size = WIDTH[_moved(register(kind))] // 8
    if WIDTH[kind] == 8:
        values = [(v & 0xFF) | 0xA700 for v in values]
    return np.array([int(v) for v in values], f"u{size}")


def decode(kind: str, pattern: int) -> int | bool:
    """A bit pattern as the model sees it."""
    pattern &= (1 << WIDTH[kind]) - 1
    if kind == "pred":
        return bool(pattern)
    if kind[0] == "s" and pattern >> (WIDTH[kind] - 1):
        return pattern - (1 << WIDTH[kind])
    return pattern


def rows_of(case: Case) -> list[tuple[int, ...]]:
    """The cross product of the operands' edge values, or a sample of it."""
    special = dict(case.edges)
    columns = [list(special.get(i, EDGES[k])) for i, k in enumerate(case.ins)]
    total = 1
    for column in columns:
        total *= len(column)
    if total <= case.most:
        return list(itertools.product(*columns))
    rng = random.Random(str(case))
    rows = [tuple(rng.choice(c) for c in columns) for _ in range(case.most)]
    # Whatever the sample misses: each value of each operand once at least.
    rows += [tuple(c[i % len(c)] for c in columns) for i in range(max(map(len, columns)))]
    return rows


def execute(
    machine: Any,
    case: Case,
    rows: Sequence[tuple[int, ...]],
    block: int = 64,
    diverged: bool = False,
) -> list[tuple[int, ...]]:
    """The results' bit patterns, a tuple a row."""
    count = len(rows)
    padded = [*rows, *[rows[0]] * (-count % block)]
    columns = list(zip(*padded, strict=True)) if case.ins else []
    inputs = [_array(k, c) for k, c in zip(case.ins, columns, strict=True)]
    outputs = [
        np.zeros(len(padded), f"u{WIDTH[_moved(result_register(k))] // 8}") for k in case.out
    ]
    options = {"checks": "none"} if machine is simulator else {}
    made = build(case, diverged)
    machine.launch(made, len(padded) // block, block, [*inputs, *outputs], **options)
    return list(zip(*(o[:count].tolist() for o in outputs), strict=True))


def expected(case: Case, row: tuple[int, ...]) -> tuple[int, ...]:
    """The model's results as bit patterns of the registers they end in."""
    result = case.model(*(decode(k, v) for k, v in zip(case.ins, row, strict=True)))
    results = result if isinstance(result, tuple) else (result,)
    patterns = []
    for kind, value in zip(case.out, results, strict=True):
        number = int(value)
        if WIDTH[kind] == 8:
            number = int(decode(kind, number))
        wide = max(WIDTH[kind], 32) if WIDTH[kind] == 8 else WIDTH[kind]
        patterns.append(number & ((1 << wide) - 1))
    return tuple(patterns)


def compare(case: Case, rows: Sequence[tuple[int, ...]]) -> None:
    """Every machine gives the model's results on these operands."""
    wanted = [expected(case, row) for row in rows]
    for machine in MACHINES:
        found = execute(machine, case, rows)
        wrong = [
            f"{case} {' '.join(map(hex, row))}: {' '.join(map(hex, got))}, not "
            f"{' '.join(map(hex, want))} ({machine.__name__})"
            for row, got, want in zip(rows, found, wanted, strict=True)
            if got != want and not (case.close and case.close(row, got[0], want[0]))
        ]
        assert not wrong, f"{len(wrong)} of {len(rows)}\n" + "\n".join(wrong[:12])


def check_edges(case: Case) -> None:
    """The case on its edge values; on some of them one at a time and after a branch, too."""
    rows = rows_of(case)
    compare(case, rows)
    check_forms(case, rows[:: max(1, len(rows) // _FEW)])


def check_forms(case: Case, rows: Sequence[tuple[int, ...]]) -> None:
    """The simulator's other ways to compute the same: on NumPy scalars, and diverged."""
    wanted = [expected(case, row) for row in rows]
    nothing = (0,) * len(case.out)
    found = {
        "diverged": execute(simulator, case, [r for row in rows for r in (row, row)], 64, True),
        "uniform": execute(simulator, case, rows[:1], 1) + execute(simulator, case, rows[-1:], 1),
    }
    assert not any(got != nothing for got in found["diverged"][1::2])
    found["diverged"] = found["diverged"][::2]
    for form, results in found.items():
        models = wanted if form == "diverged" else [wanted[0], wanted[-1]]
        operands = rows if form == "diverged" else [rows[0], rows[-1]]
        for row, got, want in zip(operands, results, models, strict=True):
            near = case.close and case.close(row, got[0], want[0])
            assert got == want or near, (str(case), form, row, got, want)


_WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 70),
    # A run of ones or zeros inside the other: carries, masks, exponents all set or clear.
    st.tuples(st.integers(0, 64), st.integers(0, 64), st.booleans()).map(
        lambda t: (((1 << t[0]) - 1) << t[1] ^ (-1 if t[2] else 0)) & (2**64 - 1)
    ),
)


def drawn_rows(operands: int = 4, most: int = 24) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Operands of any bit pattern; a case takes as many and as wide ones as it has."""
    return st.lists(st.tuples(*[_WORDS] * operands), min_size=1, max_size=most)


def check_drawn(cases: Sequence[Case], rows: Sequence[tuple[int, ...]]) -> None:
    """All cases on the same drawn operands (cases with their own edge values left out)."""
    for case in cases:
        if case.edges:
            continue
        compare(case, [
            tuple(v & ((1 << WIDTH[k]) - 1) for v, k in zip(row, case.ins, strict=False))
            for row in rows
        ])  # fmt: skip
