"""Instruction variants, their operands, and what models in plain Python make of them.

A ``Case`` is a variant, its operand types and its meaning on Python integers. Operands are
bit patterns; a model gets signed integers for ``.s`` types, ``bool`` for predicates and bit
patterns for everything else (floats too: see ``floats``), and gives an integer whose low bits
count, or what judges a result (``Near``), or a tuple of them.
"""

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulator.isa.floats import FORMATS

WIDTH = {
    "pred": 1, "s8": 8, "u8": 8, "b8": 8, "s16": 16, "u16": 16, "b16": 16, "f16": 16, "bf16": 16,
    "s32": 32, "u32": 32, "b32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
    "s64": 64, "u64": 64, "b64": 64, "f64": 64,
    "b128": 128,
}  # fmt: skip

EDGES: dict[str, list[int]] = {
    "pred": [0, 1],
    "f16": [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01, 1, 0x8001, 0x3FF,
            0x400, 0x401, 0x7BFF, 0xFBFF, 0x3555, 0x3C01, 0x1000, 0x6400, 0x77FF, 0x37FF, 0x3800,
            0x3E00, 0xBE00, 0x4100, 0x57FF],
    "bf16": [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 1, 0x8001, 0x7F,
             0x80, 0x81, 0x7F7F, 0xFF7F, 0x3F81, 0x3300, 0x4B00, 0x4EFF],
    "f32": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0xC0200000, 0x7F800000,
            0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F812345, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF,
            0x00800000, 0x80800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x4EFFFFFF, 0x4F000000,
            0xCF000000, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF, 0x5F000000, 0xDF000000, 0x5F7FFFFF,
            0x3EFFFFFF, 0x3F7FFFFF, 0x3F800001, 0x3F800800, 0x21800000, 0x33800000, 0x33000000,
            0x3EAAAAAB, 0x3FC00000, 0xBFC00000, 0x40490FDB, 0x42C80000, 0x4B000001],
    "f64": [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000,
            0x4004000000000000, 0xC004000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
            0x7FF8000000000000, 0xFFF8000000012345, 0x7FF0000000012345, 1, (1 << 63) | 1,
            0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000000, 0x7FEFFFFFFFFFFFFF,
            0xFFEFFFFFFFFFFFFF, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000000000,
            0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x43DFFFFFFFFFFFFF,
            0x43E0000000000000, 0xC3E0000000000000, 0x43EFFFFFFFFFFFFF, 0x43F0000000000000,
            0x36A0000000000000, 0x380FFFFFFFFFFFFF, 0x3810000000000000, 0x3810000000000001,
            0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3FDFFFFFFFFFFFFF, 0x3FEFFFFFFFFFFFFF,
            0x3FF0000000000001, 0x3FF0000010000000, 0x3FF0000030000000, 0x3FF8000000000000,
            0xBFF8000000000000, 0x3CA0000000000000, 0x3C90000000000000, 0x400921FB54442D18,
            0x4330000000000001],
}  # fmt: skip
"""Bit patterns that every variant sees."""

_INTEGERS = [
    0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 0x55, 0x5A, 0x7F, 0x80, 0xFF, 0x100,
    0x1234, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFE, 0x800000, 0xFFFFFF, 0xAAAAAAAA, 0x12345678,
]  # fmt: skip
_WIDE = [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 53) + 1, 0xFFFFFFFF << 32,
         0x123456789ABCDEF0]  # fmt: skip


def _more_edges() -> None:
    for bits in (8, 16, 32, 64):
        top = 1 << (bits - 1)
        around = [top - 2, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]
        values = sorted({v for v in _INTEGERS + around + _WIDE if v < 2 * top})
        for kind in (f"s{bits}", f"u{bits}", f"b{bits}"):
            EDGES[kind] = values
    for half in ("f16", "bf16"):
        low = EDGES[half]
        EDGES[half + "x2"] = [a | b << 16 for a, b in zip(low, low[7:] + low[:7], strict=True)]


_more_edges()


SCRATCH = ".reg .b32 %r<8>;"
"""Registers that a case's code may use."""


@dataclass(frozen=True)
class Case:
    """One instruction variant.

    Attributes:
        name: The instruction with its modifiers, unless ``code`` says more.
        out: Types of the results; ``ins``: of the operands.
        model: What it means, on Python numbers; ``None`` is what nobody promises.
        tail: Immediate operands after the others.
        code: Statements with ``{o0}`` for results and ``{v0}`` for operands.
        edges: Values instead of ``EDGES`` by operand number.
        most: Rows of the operands' cross product at most; ``drawn``: further ones of any bits.
        target: The least architecture that has it; older devices are passed over.
    """

    name: str
    out: tuple[str, ...]
    ins: tuple[str, ...]
    model: Callable[..., Any]
    tail: str = ""
    code: str = ""
    edges: tuple[tuple[int, tuple[int, ...]], ...] = ()
    most: int = 2250
    drawn: int = 300
    target: int = 90

    @property
    def statements(self) -> str:
        """The code under test."""
        if self.code:
            return self.code
        first = "|".join(f"{{o{i}}}" for i in range(len(self.out)))
        sources = ", ".join(f"{{v{i}}}" for i in range(len(self.ins)))
        return f"{self.name} {first}{', ' if self.ins else ''}{sources}{self.tail};"

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        names = {f"v{i}": f"%v{i}" for i in range(len(self.ins))}
        names |= {f"o{i}": f"%o{i}" for i in range(len(self.out))}
        kinds = [*map(register, self.ins), *map(result_register, self.out)]
        declared = "".join(f".reg .{k} {n}; " for k, n in zip(kinds, names.values(), strict=True))
        return f"{declared}{SCRATCH} {self.statements.format(**names)}"

    @property
    def operands(self) -> tuple[Any, ...]:
        """What cases must have in common to share a kernel."""
        return self.ins, self.edges, self.most, self.drawn, self.target

    def __str__(self) -> str:
        return f"{self.name}{self.tail}"


class Batch(tuple[Case, ...]):
    """Cases that take the same operands."""

    def __str__(self) -> str:
        return f"{self[0]}-to-{self[-1]}"


def batches(cases: Iterable[Case], size: int = 64) -> list[Batch]:
    """The cases by their operands."""
    alike: dict[Any, list[Case]] = {}
    for case in cases:
        alike.setdefault(case.operands, []).append(case)
    return [
        Batch(group[i : i + size]) for group in alike.values() for i in range(0, len(group), size)
    ]


def register(kind: str) -> str:
    """The register type that holds a value of a type."""
    if kind in ("pred", "f32", "f64"):
        return kind
    return f"b{max(WIDTH[kind], 16)}"


def result_register(kind: str) -> str:
    """The same for a result: 8-bit ones are seen extended to 32 bits."""
    return "b32" if WIDTH[kind] == 8 else register(kind)


def moved(kind: str) -> str:
    """The type that loads and stores a register."""
    return "b32" if kind == "pred" else kind if kind in ("f32", "f64") else f"b{WIDTH[kind]}"


def decode(kind: str, pattern: int) -> int | bool:
    """A bit pattern as the model sees it."""
    pattern &= (1 << WIDTH[kind]) - 1
    if kind == "pred":
        return bool(pattern)
    if kind[0] == "s" and pattern >> (WIDTH[kind] - 1):
        return pattern - (1 << WIDTH[kind])
    return pattern


def drawn(rng: random.Random, kind: str) -> int:
    """Bits for a type: any; a run of ones or zeros inside the other; floats of moderate size."""
    bits, how = WIDTH[kind], rng.randrange(4)
    if kind.endswith("x2"):
        return drawn(rng, kind[:-2]) | drawn(rng, kind[:-2]) << 16
    if kind in FORMATS and how < 2:  # sums of such cancel, products round
        f = FORMATS[kind]
        exponent = f.bias + rng.randrange(-4, 5)
        fraction = rng.getrandbits(f.digits - 1)
        return rng.getrandbits(1) << (bits - 1) | exponent << (f.digits - 1) | fraction
    if how == 0:  # carries, masks, exponents all set or clear
        run = ((1 << rng.randrange(bits + 1)) - 1) << rng.randrange(bits)
        return (run ^ -rng.getrandbits(1)) % (1 << bits)
    return rng.getrandbits(bits)


@functools.cache
def rows_of(batch: Batch) -> list[tuple[int, ...]]:
    """The cross product of the operands' edge values, or a sample of it; and any bits."""
    case = batch[0]
    special = dict(case.edges)
    columns = [list(special.get(i, EDGES[k])) for i, k in enumerate(case.ins)]
    rng = random.Random(str(case))
    if math.prod(map(len, columns)) <= case.most:
        rows = list(itertools.product(*columns))
    else:
        rows = [tuple(rng.choice(c) for c in columns) for _ in range(case.most)]
        # Whatever the sample misses: each value of each operand once at least.
        rows += [tuple(c[i % len(c)] for c in columns) for i in range(max(map(len, columns)))]
    for _ in range(case.drawn if case.ins else 0):
        some = zip(case.ins, columns, strict=True)
        rows.append(tuple(rng.choice(c) if rng.random() < 0.3 else drawn(rng, k) for k, c in some))
    rng.shuffle(rows)
    return rows


def expected(case: Case, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """The model's results, a column each: patterns of the registers they end in, or judges."""
    results = [case.model(*row) for row in rows]
    columns = []
    for i, kind in enumerate(case.out):
        column = [r[i] for r in results] if len(case.out) > 1 else results
        if WIDTH[kind] == 8:
            column = [decode(kind, v) for v in column]
        mask = (1 << WIDTH[result_register(kind)]) - 1
        columns.append([v & mask if isinstance(v, int) else v for v in column])
    return columns


def right(got: int, want: Any) -> bool:
    """Whether a result is the model's, or near enough, or one that nobody promises."""
    return got == want or want is None or (not isinstance(want, int) and want.holds(got))
