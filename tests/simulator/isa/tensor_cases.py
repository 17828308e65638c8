"""Variants of ``mma``: their fragments as the PTX ISA has them, their operands, their programs."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel
from tests.simulator.isa import tensor_model as model
from tests.simulator.isa.floats import FORMATS
from tests.simulator.isa.harness import kernel

BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
KINDS = ("normal", "exponents", "cancelling", "any", "zeros")
"""Of operands, a warp each."""
Place = Callable[[int, int, int], tuple[int, int]]
"""Row and column of an element by register, place in it, lane."""


@dataclass(frozen=True)
class Case:
    """One variant of ``mma``."""

    name: str

    @property
    def types(self) -> list[str]:
        """Of D, A, B and C."""
        return [word for word in self.name.split(".") if word in BITS]

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N, K."""
        m, n, k = re.search(r"\.m(\d+)n(\d+)k(\d+)", self.name).groups()
        return int(m), int(n), int(k)

    @property
    def four(self) -> bool:
        """Whether a warp makes four products."""
        return self.shape == (8, 8, 4) and self.types[1] == "f16"

    def places(self) -> dict[str, tuple[int, Place]]:
        """Of each matrix: its registers' number, and what they hold, as the PTX ISA says."""
        m, n, k = self.shape
        d_kind, a_kind, _, c_kind = self.types
        if self.four:
            layouts = [word for word in self.name.split(".") if word in ("row", "col")]
            return {
                "a": (2, _quarter_operand(layouts[0] == "row")),
                "b": (2, _quarter_operand(layouts[1] == "col")),
                "c": _quarter_result(c_kind), "d": _quarter_result(d_kind),
            }  # fmt: skip
        high, per = m // 8, max(32 // BITS[a_kind], 1)

        def a(r: int, j: int, lane: int) -> tuple[int, int]:
            return lane // 4 + 8 * (r % high), lane % 4 * per + j + 4 * per * (r // high)

        def b(r: int, j: int, lane: int) -> tuple[int, int]:
            return lane // 4, lane % 4 * per + j + 4 * per * r

        def result(kind: str) -> tuple[int, Place]:
            if BITS[kind] == 16:
                return high, lambda r, j, lane: (lane // 4 + 8 * r, lane % 4 * 2 + j)
            return 2 * high, lambda r, j, lane: (lane // 4 + 8 * (r // 2), lane % 4 * 2 + r % 2)

        return {
            "a": (m * k // 32 // per, a), "b": (n * k // 32 // per, b),
            "c": result(c_kind), "d": result(d_kind),
        }  # fmt: skip

    @property
    def code(self) -> str:
        """The statement, on registers ``%d0``, ``%a0`` ..."""
        counts = {name: count for name, (count, _) in self.places().items()}
        listed = (", ".join(f"%{name}{i}" for i in range(counts[name])) for name in "dabc")
        return f"{self.name} {', '.join(f'{{{items}}}' for items in listed)};"

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        places = self.places()
        return " ".join(f".reg .{self.held(n)} %{n}<{places[n][0]}>;" for n in "dabc") + self.code

    def held(self, name: str) -> str:
        """The type of a matrix's registers."""
        kind = self.types["dabc".index(name)]
        return kind if kind in ("f32", "f64") else "b32"

    def element(self, pairs: list[tuple[int, int]], c: int) -> int:
        """One output, by the model for Hopper."""
        out, kind, other, c_kind = self.types
        if kind == "f64":
            return model.doubles(pairs, c, next(iter(re.findall(r"\.(r[zmp])", self.name)), "rn"))
        if out == "s32":
            how = "xor" if "xor" in self.name else "and"
            return model.integers((kind, other), pairs, c, "satfinite" in self.name, how)
        if self.four:
            return model.small(pairs, out, c, c_kind)
        if kind in model.F8:
            wide = [(model.widened(kind, a), model.widened(other, b)) for a, b in pairs]
            return model.unpacked(wide, out, c)
        return model.summed(kind, pairs, out, c, 25)


def _quarter_operand(along_k: bool) -> Place:
    def place(r: int, j: int, lane: int) -> tuple[int, int]:
        along, across = 2 * r + j, lane % 4 + 4 * (lane // 16)
        return (across, along) if along_k else (along + 4 * (lane // 16), lane % 4)

    return place


def _quarter_result(kind: str) -> tuple[int, Place]:
    if kind == "f16":
        return 4, lambda r, j, lane: (lane % 4 + 4 * (lane // 16), 2 * r + j)
    return 8, lambda i, j, lane: (
        (lane & 1) + (i & 2) + 4 * (lane // 16),
        (i & 4) + (lane & 2) + (i & 1),
    )


def elements(
    rng: np.random.Generator, kind: str, data: str, shape: tuple[int, ...], sums: bool
) -> Any:
    """Bit patterns of some kind of data; ``sums``: for C."""
    bits = BITS[kind]
    found = rng.integers(0, 1 << min(bits, 63), shape, np.uint64) << np.uint64(bits == 64)
    if kind not in FORMATS and kind not in model.F8 and kind != "tf32":
        return found if data != "zeros" or not sums else found | np.uint64(0x7FFFFF00)
    form = model.F8.get(kind) or FORMATS["f32" if kind == "tf32" else kind]
    fraction = form.digits - 1
    top = (1 << (bits - 1 - fraction)) - 1
    exponent = rng.integers(0, top, shape)
    if data == "normal":
        exponent = form.bias + sums - rng.geometric(0.5, shape)
    elif data == "cancelling":
        exponent = form.bias + rng.integers(0, 5 if sums else 2, shape)
    elif data == "exponents" and sums:
        near = form.bias + rng.integers(-50, 40, shape)
        exponent = np.where(rng.random(shape) < 0.5, exponent, np.clip(near, 0, top - 1))
    below = found & np.uint64((1 << fraction) - 1)
    sign = found & np.uint64(form.sign_bit)
    if data == "cancelling" and not sums:
        below = np.where(rng.random(shape) < 0.7, below & np.uint64(1), below)
    if data == "zeros":
        exponent, below = form.bias * (rng.random(shape) < 0.2), np.zeros_like(found)
    if data == "any":
        exponent = np.where(rng.random(shape) < 0.004, top, exponent)
        below = np.where(rng.random(shape) < 0.5, below, np.uint64(0))
    return sign | np.maximum(exponent, 0).astype(np.uint64) << np.uint64(fraction) | below


def packed(matrices: Any, count: int, place: Place, bits: int, four: int) -> Any:
    """Registers of all lanes, ``(count, lanes)``, of matrices, one or four a warp."""
    words = np.zeros((count, 32 * len(matrices) // four), np.uint64)
    for r, lane, j in itertools.product(range(count), range(32), range(max(32 // bits, 1))):
        row, column = place(r, j, lane)
        product = lane // 4 % 4 if four > 1 else 0
        words[r, lane::32] |= matrices[product::four, row, column] << np.uint64(bits * j)
    return words.astype(np.uint64 if bits == 64 else np.uint32)


def unpacked(words: Any, place: Place, bits: int, like: Any, four: int) -> Any:
    """``packed`` back."""
    found = np.zeros_like(like)
    words = words.astype(np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for r, lane, j in itertools.product(range(len(words)), range(32), range(max(32 // bits, 1))):
        row, column = place(r, j, lane)
        product = lane // 4 % 4 if four > 1 else 0
        found[product::four, row, column] = words[r, lane::32] >> np.uint64(bits * j) & mask
    return found


def loads(case: Case, name: str, at: str, pitch: int) -> list[str]:
    """Registers of a matrix from the parameter of that number, ``at`` a thread's place."""
    count, kind = case.places()[name][0], case.held(name)
    size = 8 if kind == "f64" else 4
    lines = [f"ld.param.u64 %p, [p{'abc'.index(name)}]; mad.wide.u32 %p, {at}, {size}, %p;"]
    return lines + [f"ld.global.{kind} %{name}{i}, [%p+{i * pitch * size}];" for i in range(count)]


def program(case: Case, threads: int, before: str = "", scalar: str = "") -> Kernel:
    """A product a warp; ``scalar``: matrices that all warps read where the first has its own."""
    count, kind = case.places()["d"][0], case.held("d")
    declared = [f".reg .{case.held(n)} %{n}<{case.places()[n][0]}>;" for n in "dabc"]
    lines = [*declared, ".reg .b32 %t, %n, %lane; .reg .b64 %p; .reg .pred %q;"]
    lines += ["mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mov.u32 %lane, %ntid.x;"]
    lines += ["mad.lo.u32 %t, %n, %lane, %t; and.b32 %lane, %t, 31;"]
    for name in "abc":
        lines += loads(case, name, "%lane" if name in scalar else "%t", threads)
    zero = "0d0000000000000000" if kind == "f64" else "0f00000000" if kind == "f32" else "0"
    lines += [f"mov.{kind} %d{i}, {zero};" for i in range(count)]
    size = 8 if kind == "f64" else 4
    lines += [before, case.code, "OUT:", f"ld.param.u64 %p, [p3]; mad.wide.u32 %p, %t, {size}, %p;"]
    lines += [f"st.global.{kind} [%p+{i * threads * size}], %d{i};" for i in range(count)]
    made = kernel(lines, 4)
    return Kernel.from_ptx(made.ptx.replace(".version 8.6", ".version 8.7"), "k")  # 8-bit floats


class Operands:
    """The matrices of a case, a product each, and the registers that hold them."""

    def __init__(self, case: Case, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.case, (m, n, k) = case, case.shape
        four = 4 if case.four else 1
        sizes = {"a": (m, k), "b": (n, k), "c": (m, n)}
        self.matrices, self.words = {}, {}
        for name, kind in zip("abc", case.types[1:], strict=True):
            made = [elements(rng, kind, data, (four, *sizes[name]), name == "c") for data in KINDS]
            self.matrices[name] = np.concatenate(made)
            self.words[name] = packed(self.matrices[name], *case.places()[name], BITS[kind], four)
        self.threads = 32 * len(KINDS)

    def launch(self, machine: Any, made: Kernel, grid: int = 1, **how: Any) -> tuple[Any, Any]:
        """D's elements, and what the machine returns."""
        count, place = self.case.places()["d"]
        wide = self.case.held("d") == "f64"
        out = np.zeros((count, self.threads), np.uint64 if wide else np.uint32)
        arrays = [*self.words.values(), out]
        done = machine.launch(made, grid, self.threads // grid, arrays, **how)
        four = 4 if self.case.four else 1
        return unpacked(out, place, BITS[self.case.types[0]], self.matrices["c"], four), done

    def expected(self, element: Callable[[list[tuple[int, int]], int], int]) -> Any:
        """D's elements by a model of one."""
        a, b, c = (self.matrices[name].tolist() for name in "abc")
        return np.array(
            [
                [
                    [
                        element(list(zip(row, column, strict=True)), start[i][j])
                        for j, column in enumerate(right)
                    ]
                    for i, row in enumerate(left)
                ]
                for left, right, start in zip(a, b, c, strict=True)
            ],
            np.uint64,
        )


def wrong(found: Any, wanted: Any) -> list[str]:
    """Elements that differ."""
    places = np.argwhere(found != wanted)
    return [f"{place}: {found[tuple(place)]:#x}, not {wanted[tuple(place)]:#x}" for place in places]
