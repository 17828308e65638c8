"""One-instruction kernels over edge values and random bits, against a model lane by lane.

A model takes each operand's bits as a Python int (a predicate's as 0 or 1) and gives the
result's bits: one int, or a tuple where there are several results. Models never call the
simulator's arithmetic. Each case runs with all operands varying from lane to lane, with
each one uniform, and with all uniform: the simulator then computes on NumPy scalars.
"""

from __future__ import annotations

import itertools
import random
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel

SIZES = {"pred": 1, "f16": 2, "f32": 4, "f64": 8} | {
    f"{sign}{8 * size}": size for sign in "bsu" for size in (1, 2, 4, 8)
}
HEADER = ".version 8.8\n.target sm_100\n.address_size 64\n"

_INTEGER_EDGES = {
    1: [0, 1, 2, 0x55, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF],
    2: [0, 1, 2, 7, 15, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF],
    4: [
        0, 1, 2, 3, 5, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
        0x7FFFFE, 0x800000, 0xFFFFFF, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001,
        0xFFFFFFFE, 0xFFFFFFFF, 0xAAAAAAAA, 0x12345678,
    ],
    8: [
        0, 1, 2, 3, 63, 64, 65, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000,
        0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, 0xFFFFFFFF00000000,
        0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 0x123456789ABCDEF0, (1 << 53) + 1,
    ],
}  # fmt: skip
_FLOAT_EDGES = {
    "f16": [
        0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3555, 0x37FF, 0x3800, 0x3C00, 0xBC00, 0x3E00,
        0xBE00, 0x4100, 0x57FF, 0x77FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01,
    ],
    "f32": [
        0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x800001,
        0x33800000, 0x3EAAAAAB, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0xBF800000,
        0x3F800001, 0x3FC00000, 0xBFC00000, 0x40200000, 0xC0200000, 0x40490FDB, 0x42C80000,
        0x4B000001, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF,
        0x5F000000, 0xDF000000, 0x5F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
        0x7FC00000, 0xFFC12345, 0x7F812345,
    ],
    "f64": [
        0, 1 << 63, 1, (1 << 63) | 1, (1 << 52) - 1, 1 << 52, (1 << 63) | (1 << 52), 0x3CA << 52,
        0x36A0000000000000, 0x380FFFFFFFFFFFFF, 0x3810000000000000, 0x3810000000000001,
        0x3FDFFFFFFFFFFFFF, 0x3FE0000000000000, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000,
        0xBFF0000000000000, 0x3FF0000000000001, 0x3FF0000010000000, 0x3FF0000030000000,
        0x3FF8000000000000, 0xBFF8000000000000, 0x4004000000000000, 0xC004000000000000,
        0x400921FB54442D18, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000000000,
        0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x4330000000000001,
        0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0xC3E0000000000000, 0x43EFFFFFFFFFFFFF,
        0x43F0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x7FEFFFFFFFFFFFFF,
        0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
        0xFFF8000000012345, 0x7FF0000000012345,
    ],
}  # fmt: skip


def bits(kind: str) -> int:
    return SIZES[kind] * 8


def edges(kind: str) -> list[int]:
    if kind == "pred":
        return [0, 1]
    return _FLOAT_EDGES.get(kind) or _INTEGER_EDGES[SIZES[kind]]


def mask(width: int) -> int:
    return (1 << width) - 1


def to_signed(x: int, width: int) -> int:
    """The two's complement number that some bits stand for."""
    x &= mask(width)
    return x - (1 << width) if x >> (width - 1) else x


def number(x: int, kind: str) -> int:
    """The integer that the bits of a .s, .u or .b type stand for."""
    return to_signed(x, bits(kind)) if kind[0] == "s" else x & mask(bits(kind))


@dataclass(frozen=True)
class Case:
    """An instruction and what it should do.

    Attributes:
        name: The opcode with its modifiers, ``add.s32``.
        outs: Types of the results; ``ins``: of the sources.
        model: Bits of the sources to bits of the result(s).
        text: The statement(s), ``{0}`` being the first source, ``{o}`` and ``{q}`` the first
            and second result; by default ``name {o}, {0}, {1} ...;`` (``{o}|{q}`` for two).
        values: For some sources, the values to take in place of the usual edges.
        random: Lanes of random bits.
        most: Lanes of the edges' cross product at most; a sample is taken if there are more.
        same: Judges a result where more than one is right: (found, wanted).
        tail: Told apart by this from cases of the same name.
    """

    name: str
    outs: tuple[str, ...]
    ins: tuple[str, ...]
    model: Callable[..., Any]
    text: str = ""
    values: tuple[Sequence[int] | None, ...] = ()
    random: int = 400
    most: int = 1200
    same: Callable[[int, Any], bool] | None = None
    tail: str = ""

    @property
    def statement(self) -> str:
        if self.text:
            return self.text
        sources = ", ".join(f"{{{i}}}" for i in range(len(self.ins)))
        results = "{o}|{q}" if len(self.outs) > 1 else "{o}"
        return f"{self.name} {results}, {sources};"

    @property
    def label(self) -> str:
        return self.name + self.tail

    def given(self, i: int) -> Sequence[int] | None:
        """The values that the case names for a source."""
        return self.values[i] if i < len(self.values) else None


def lanes_of(case: Case) -> list[tuple[int, ...]]:
    """Edge values' cross product (or a sample of it) and random bits."""
    rng = random.Random(zlib.crc32(case.label.encode()))
    pools = [case.given(i) or edges(kind) for i, kind in enumerate(case.ins)]
    total = 1
    for pool in pools:
        total *= len(pool)
    chosen: list[tuple[int, ...]]
    if total <= case.most:
        chosen = list(itertools.product(*pools))
    else:
        chosen = [tuple(rng.choice(pool) for pool in pools) for _ in range(case.most)]
    for _ in range(case.random):
        lane = []
        for i, kind in enumerate(case.ins):
            if case.given(i) is not None or rng.random() < 0.2:
                lane.append(rng.choice(pools[i]))
            elif kind == "pred":
                lane.append(rng.getrandbits(1))
            elif kind[0] == "f" and rng.random() < 0.5:
                lane.append(_near_one(rng, kind))
            else:
                lane.append(rng.getrandbits(bits(kind)))
        chosen.append(tuple(lane))
    return chosen


def _near_one(rng: random.Random, kind: str) -> int:
    """A number of moderate exponent: sums of such cancel, products round."""
    fraction, bias = {"f16": (10, 15), "f32": (23, 127), "f64": (52, 1023)}[kind]
    exponent = bias + rng.randrange(-4, 5)
    return rng.getrandbits(1) << (bits(kind) - 1) | exponent << fraction | rng.getrandbits(fraction)


def _register(kind: str) -> str:
    if kind in ("f32", "f64", "pred"):
        return f".{kind}"
    return f".b{max(16, bits(kind))}"


def _moved(kind: str) -> str:
    return "u8" if kind == "pred" else kind if kind in ("f32", "f64") else f"u{bits(kind)}"


def ptx_of(case: Case, uniform: Iterable[int] = ()) -> str:
    """The kernel: one parameter a source (a value if ``uniform``), then one a result."""
    uniform = set(uniform)
    params, registers, body = [], [], []
    body += [
        "mov.u32 %i0, %tid.x;", "mov.u32 %i1, %ctaid.x;", "mov.u32 %i2, %ntid.x;",
        "mad.lo.s32 %i3, %i1, %i2, %i0;",
    ]  # fmt: skip
    for i, kind in enumerate(case.ins):
        registers.append(f".reg {_register(kind)} %a{i};")
        target, load = f"%a{i}", _moved(kind)
        if kind == "pred":
            registers.append(f".reg .b16 %t{i};")
            target = f"%t{i}"
        if i in uniform:
            params.append(f".param .{load} p{i}")
            body.append(f"ld.param.{load} {target}, [p{i}];")
        else:
            params.append(f".param .u64 p{i}")
            body += [
                f"ld.param.u64 %l0, [p{i}];", f"mul.wide.u32 %l1, %i3, {SIZES[kind]};",
                "add.s64 %l2, %l0, %l1;", f"ld.global.{load} {target}, [%l2];",
            ]  # fmt: skip
        if kind == "pred":
            body.append(f"setp.ne.s16 %a{i}, %t{i}, 0;")
    for i, kind in enumerate(case.outs):
        registers.append(f".reg {_register(kind)} %o{i};")
        params.append(f".param .u64 q{i}")
    sources = [f"%a{i}" for i in range(len(case.ins))]
    body.append(case.statement.format(*sources, o="%o0", q="%o1"))
    for i, kind in enumerate(case.outs):
        value = f"%o{i}"
        if kind == "pred":
            registers.append(f".reg .b16 %u{i};")
            body.append(f"selp.u16 %u{i}, 1, 0, %o{i};")
            value = f"%u{i}"
        body += [
            f"ld.param.u64 %l0, [q{i}];", f"mul.wide.u32 %l1, %i3, {SIZES[kind]};",
            "add.s64 %l2, %l0, %l1;", f"st.global.{_moved(kind)} [%l2], {value};",
        ]  # fmt: skip
    registers += [
        ".reg .b16 %h<9>;", ".reg .b32 %i<9>;", ".reg .b64 %l<9>;", ".reg .pred %p<9>;",
    ]  # fmt: skip
    code = "\n".join([*registers, *body, "ret;"])
    return f"{HEADER}.visible .entry k({', '.join(params)})\n{{\n{code}\n}}\n"


def launch(ptx: str, grid: Any, block: Any, args: Sequence[Any], **more: Any) -> Any:
    return simulator.launch(Kernel.from_ptx(ptx, "k"), grid, block, args, **more)


def results(case: Case, lanes: Sequence[tuple[int, ...]], uniform: Iterable[int] = ()) -> Any:
    """Each lane's result bits, as tuples; the uniform sources are the first lane's."""
    uniform = set(uniform)
    block = min(len(lanes), 128)
    count = -(-len(lanes) // block) * block
    args: list[Any] = []
    for i, kind in enumerate(case.ins):
        word = np.dtype(f"u{SIZES[kind]}")
        if i in uniform:
            raw = word.type(lanes[0][i])
            args.append(raw.view(f"f{SIZES[kind]}") if kind in ("f32", "f64") else int(raw))
        else:
            column = np.zeros(count, word)
            column[: len(lanes)] = [lane[i] for lane in lanes]
            args.append(column)
    outs = [np.zeros(count, f"u{SIZES[kind]}") for kind in case.outs]
    launch(ptx_of(case, uniform), count // block, block, [*args, *outs], checks="none")
    return list(zip(*(out[: len(lanes)].tolist() for out in outs), strict=True))


def check(case: Case) -> None:
    """Compare every lane; then again with sources that are the same for all threads."""
    lanes = lanes_of(case)
    _compare(case, lanes, ())
    rng = random.Random(len(lanes))
    everything = tuple(range(len(case.ins)))
    for lane in rng.sample(lanes, min(2, len(lanes))):
        _compare(case, [lane], everything)
    if len(case.ins) > 1:
        for i in everything:
            part = rng.sample(lanes, min(64, len(lanes)))
            _compare(case, [(*lane[:i], part[0][i], *lane[i + 1 :]) for lane in part], (i,))


def _compare(case: Case, lanes: Sequence[tuple[int, ...]], uniform: tuple[int, ...]) -> None:
    got = results(case, lanes, uniform)
    wrong = []
    for lane, found in zip(lanes, got, strict=True):
        wanted = case.model(*lane)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if case.same:
            good = all(case.same(f, w) for f, w in zip(found, wanted, strict=True))
        else:
            good = found == wanted
        if not good:
            wanted_text = ", ".join(hex(w) if isinstance(w, int) else str(w) for w in wanted)
            wrong.append(f"({', '.join(map(hex, lane))}): {[*map(hex, found)]}, not {wanted_text}")
    note = f"{case.label}, uniform {uniform}: {len(wrong)} of {len(lanes)}"
    assert not wrong, "\n  ".join([note, *wrong[:8]])


def covered(cases: Iterable[Case]) -> frozenset[str]:
    """The opcodes that some cases execute."""
    return frozenset(opcode for case in cases for opcode in opcodes(case.statement))


def opcodes(text: str) -> set[str]:
    """The first words of PTX statements."""
    found = set()
    for statement in re.sub(r"(?m)//.*$|^\s*[\w$]+:(?!:)", "", text).split(";"):
        words = statement.strip().lstrip("{").split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words and not words[0].startswith((".", "}")):
            found.add(words[0].split(".")[0])
    return found
