"""``wmma``: matrices of memory, multiplied and stored, against a slow model and on a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.isa.matrix.fragments import registers
from tests.simulator.isa import tensor_model as model
from tests.simulator.isa.floats import FORMATS
from tests.simulator.isa.harness import MACHINES, kernel
from tests.simulator.isa.tensor_cases import BITS, elements, wrong

SPACES = ("global", "shared", "")


@dataclass(frozen=True)
class Case:
    """A product with its loads and its store; ``pads``: elements between a row and the next."""

    name: str
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    space: str = "global"

    @property
    def words(self) -> list[str]:
        return self.name.split(".")

    @property
    def types(self) -> list[str]:
        """Of D, A, B and C."""
        found = [word for word in self.words if word in BITS]
        return [found[0], "f16", "f16", found[1]] if len(found) == 2 else found

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N, K."""
        m, n, k = re.findall(r"\d+", next(w for w in self.words if re.match(r"m\d", w)))
        return int(m), int(n), int(k)

    def layout(self, name: str) -> str:
        """Of a matrix in memory; C lies in columns where A lies in rows."""
        a, b = (word for word in self.words if word in ("row", "col"))
        return {"a": a, "b": b, "c": "col" if a == "row" else "row", "d": b}[name]

    def size(self, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix."""
        m, n, k = self.shape
        return {"a": (m, k), "b": (k, n)}.get(name, (m, n))

    def pitch(self, name: str) -> int:
        """Elements from a row, or column, to the next."""
        rows, columns = self.size(name)
        return (columns if self.layout(name) == "row" else rows) + self.pads["abcd".index(name)]

    def held(self, name: str) -> str:
        """The type of a matrix's registers."""
        kind = self.types["dabc".index(name)]
        return kind if kind in ("f32", "f64") else "b32"

    def operand(self, name: str) -> str:
        """Its registers in braces."""
        count = registers(tuple(self.words[1:]))[name][0]
        return f"{{{', '.join(f'%{name}{i}' for i in range(count))}}}"

    def access(self, name: str) -> str:
        """The statement that loads or stores a matrix at ``%at``."""
        shape = next(w for w in self.words if re.match(r"m\d", w))
        what = "store" if name == "d" else "load"
        kind = self.types["dabc".index(name)]
        space = f".{self.space}" if self.space else ""
        stride = f", {self.pitch(name)}" if self.pads["abcd".index(name)] else ""
        head = f"wmma.{what}.{name}.sync.aligned.{self.layout(name)}.{shape}{space}.{kind}"
        operands = ("[%at]", self.operand(name))
        return f"{head} {', '.join(operands if name == 'd' else operands[::-1])}{stride};"

    @property
    def code(self) -> str:
        return f"{self.name} {', '.join(map(self.operand, 'dabc'))};"

    @property
    def declared(self) -> str:
        return " ".join(f".reg .{self.held(n)} %{n}<8>;" for n in "dabc")

    @property
    def plain(self) -> str:
        """The statements with registers of their own."""
        return f"{self.declared} .reg .b64 %at; {' '.join(map(self.access, 'abcd'))} {self.code}"

    def element(self, pairs: list[tuple[int, int]], c: int) -> int:
        """One output, by the model for Hopper."""
        out, kind, other, _ = self.types
        if kind == "f64":
            return model.doubles(pairs, c, next(iter(re.findall(r"\.(r[zmp])", self.name)), "rn"))
        if out == "s32":
            how = "xor" if "xor" in self.name else "and"
            return model.integers((kind, other), pairs, c, "satfinite" in self.name, how)
        if self.types[3] != out:
            f16, f32 = FORMATS["f16"], FORMATS["f32"]
            found = model.summed(kind, pairs, "f32", f16.convert(c, f32) if out == "f32" else c, 25)
            return found if out == "f32" else f32.convert(found, f16)
        return model.steps(kind, pairs, out, c, 4 if kind == "tf32" else 16, 25)


_PADDED = (8, 16, 8, 24)
CASES = (
    *(
        Case(f"wmma.mma.sync.aligned.{a}.{b}.{shape}.{out}.{out}", pads, space)
        for shape in ("m16n16k16", "m8n32k16", "m32n8k16")
        for a, b, out, pads, space in (
            ("row", "col", "f32", (0, 0, 0, 0), "global"),
            ("col", "row", "f16", _PADDED, "shared"),
            ("row", "row", "f32", _PADDED, ""),
        )
    ),
    *(
        Case(f"wmma.mma.sync.aligned.{name}", pads, space)
        for name, pads, space in (
            ("row.col.m16n16k16.f32.f16", (0, 0, 0, 0), "global"),
            ("row.col.m8n32k16.f16.f32", _PADDED, "shared"),
            ("row.col.m16n16k16.s32.s8.s8.s32", (0, 0, 0, 0), "global"),
            ("col.row.m8n32k16.s32.u8.u8.s32.satfinite", _PADDED, "shared::cta"),
            ("row.row.m32n8k16.s32.s8.s8.s32.satfinite", (16, 16, 4, 4), ""),
            ("col.col.m16n16k16.f32.bf16.bf16.f32", _PADDED, "shared"),
            ("row.col.m8n32k16.f32.bf16.bf16.f32", (0, 0, 0, 0), "global"),
            ("row.col.m16n16k8.f32.tf32.tf32.f32", _PADDED, "global"),
            ("col.row.m16n16k8.f32.tf32.tf32.f32", (0, 0, 0, 0), "shared"),
            ("row.col.m8n8k4.f64.f64.f64.f64", (0, 0, 0, 0), "global"),
            ("col.row.m8n8k4.rz.f64.f64.f64.f64", (2, 4, 6, 2), "shared"),
            ("row.col.m8n8k32.s32.s4.s4.s32", (0, 0, 0, 0), "global"),
            ("row.col.m8n8k32.s32.u4.u4.s32.satfinite", (32, 64, 8, 0), "shared"),
            ("xor.popc.row.col.m8n8k128.s32.b1.b1.s32", (0, 0, 0, 0), "global"),
            ("and.popc.row.col.m8n8k128.s32.b1.b1.s32", (128, 256, 0, 8), "global"),
        )
    ),
)
KINDS = ("exponents", "cancelling", "any")
"""Of operands, a block of one warp each."""
ROOM = 4096
"""Bytes of a matrix, four of which a block has."""


def program(case: Case) -> Kernel:
    """Load, multiply and store in the block's part of an array, or in a copy in shared memory."""
    lines = [
        f"{case.declared} .shared .align 128 .b8 copy[{4 * ROOM}]; .reg .b64 %at, %home, %p, %q;",
        ".reg .b32 %t, %x, %v<4>; .reg .pred %more; ld.param.u64 %home, [p0];",
        f"mov.u32 %t, %ctaid.x; mul.wide.u32 %at, %t, {4 * ROOM}; add.s64 %home, %home, %at;",
    ]
    shared = case.space.startswith("shared")

    def copy(into: str, start: str, end: str) -> list[str]:
        load, store = ("global", "shared") if into == "COPY" else ("shared", "global")
        first, second = ("%home", "%p") if into == "COPY" else ("%p", "%home")
        return [
            f"mov.u64 %q, copy; mov.u32 %x, %tid.x; shl.b32 %x, %x, 4; add.u32 %x, %x, {start};",
            f"{into}: cvt.u64.u32 %at, %x; add.s64 %p, %q, %at; add.s64 %at, %home, %at;",
            f"ld.{load}.v4.b32 {{%v0, %v1, %v2, %v3}}, [{'%at' if first == '%home' else '%p'}];",
            f"st.{store}.v4.b32 [{'%at' if second == '%home' else '%p'}], {{%v0, %v1, %v2, %v3}};",
            f"add.u32 %x, %x, 512; setp.lt.u32 %more, %x, {end}; @%more bra {into};",
            "bar.sync 0;",
        ]

    if shared:
        lines += copy("COPY", "0", str(4 * ROOM))
        lines.append("mov.u64 %home, copy;")
    for number, name in enumerate("abc"):
        lines.append(f"add.s64 %at, %home, {number * ROOM}; {case.access(name)}")
    lines += [case.code, f"add.s64 %at, %home, {3 * ROOM}; {case.access('d')}"]
    if shared:
        lines.append("ld.param.u64 %home, [p0]; mov.u32 %t, %ctaid.x;")
        lines.append(f"mul.wide.u32 %at, %t, {4 * ROOM}; add.s64 %home, %home, %at; bar.sync 0;")
        lines += copy("BACK", str(3 * ROOM), str(4 * ROOM))
    return kernel(lines, 1)


def image(case: Case, name: str, matrix: Any) -> Any:
    """A matrix as bytes, in its layout."""
    bits, pitch = BITS[case.types["dabc".index(name)]], case.pitch(name)
    lying = matrix if case.layout(name) == "row" else matrix.T
    rows = np.zeros((len(lying), pitch), np.uint64)
    rows[:, : lying.shape[1]] = lying
    flat = rows.reshape(-1)
    if bits >= 8:
        return flat.astype(f"u{bits // 8}").view(np.uint8)
    each = flat.reshape(-1, 8 // bits)
    return sum(each[:, j] << np.uint64(bits * j) for j in range(8 // bits)).astype(np.uint8)


def from_image(case: Case, data: Any) -> Any:
    """D of its bytes."""
    rows, columns = case.size("d") if case.layout("d") == "row" else case.size("d")[::-1]
    size = BITS[case.types[0]] // 8
    flat = data.view(f"u{size}")[: rows * case.pitch("d")].reshape(rows, -1)[:, :columns]
    return (flat if case.layout("d") == "row" else flat.T).astype(np.uint64)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_the_model(case: Case) -> None:
    rng = np.random.default_rng(4)
    memory = np.zeros((len(KINDS), 4, ROOM), np.uint8)
    wanted = []
    for block, data in enumerate(KINDS):
        a, b, c = (
            elements(rng, kind, data, case.size(name), name == "c")
            for name, kind in zip("abc", case.types[1:], strict=True)
        )
        for number, (name, matrix) in enumerate(zip("abc", (a, b, c), strict=True)):
            found = image(case, name, matrix)
            memory[block, number, : len(found)] = found
        right = b.T.tolist()
        wanted.append(
            [
                [
                    case.element(list(zip(row, column, strict=True)), start[j])
                    for j, column in enumerate(right)
                ]
                for row, start in zip(a.tolist(), c.tolist(), strict=True)
            ]
        )
    for machine in MACHINES:
        done = memory.copy()
        run = machine.launch(program(case), len(KINDS), 32, [done])
        found = np.array([from_image(case, done[block, 3]) for block in range(len(KINDS))])
        assert not wrong(found, np.array(wanted, np.uint64))[:5], machine.__name__
        assert (done[:, :3] == memory[:, :3]).all()
        if machine is simulator:
            assert not run.hazards


def test_memory_is_checked() -> None:
    """A matrix that reaches past its array."""
    made = program(CASES[0])
    memory = np.zeros((1, 4, ROOM), np.uint8)
    run = simulator.launch(made, 1, 32, [memory[:, :3].copy()])
    assert {hazard.kind for hazard in run.hazards} == {"out-of-bounds"}
