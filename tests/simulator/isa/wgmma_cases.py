"""Variants of ``wgmma``: how matrices lie in shared memory, their operands, their programs."""

import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel
from tests.simulator.isa import tensor_cases as tensors
from tests.simulator.isa import tensor_model as model
from tests.simulator.isa import test_sparse as sparse
from tests.simulator.isa.harness import kernel
from tests.simulator.isa.tensor_cases import BITS, elements

PLAIN, BY_128, BY_64, BY_32 = range(4)
"""Modes of swizzling as a descriptor numbers them."""
ROWS = 64
WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


@dataclass(frozen=True)
class Matrix:
    """How a matrix lies in shared memory.

    Attributes:
        mode: Of swizzling.
        turned: Whether M or N lies along a row, not K.
        lead, stride: The descriptor's two distances in bytes.
        shift: Where the matrix begins, behind what the pattern asks for.
    """

    mode: int
    turned: bool
    lead: int
    stride: int
    shift: int = 0

    def at(self, row: int, k: int, size: int) -> int:
        """The byte of an element, of ``size`` bytes; ``row``: of M or N."""
        width = {PLAIN: 16, BY_128: 128, BY_64: 64, BY_32: 32}[self.mode]
        along, across = (row, k) if self.turned else (k, row)
        far = along * size // width
        fars, eights = self.lead, self.stride
        if self.mode == PLAIN and self.turned:  # blocks of eight rows of sixteen bytes
            fars, eights = eights, fars
        place = across % 8 * width + along * size % width + far * fars + across // 8 * eights
        mask = {PLAIN: 0, BY_128: 7, BY_64: 3, BY_32: 1}[self.mode]
        return self.shift + (place ^ (place >> 7 & mask) << 4)

    @property
    def descriptor(self) -> int:
        """Without the address."""
        base = self.shift >> 7 & 7
        return self.lead >> 4 << 16 | self.stride >> 4 << 32 | base << 49 | self.mode << 62


@dataclass(frozen=True)
class Case:
    """One product; ``a``: of memory, or ``None`` for registers; ``rest``: of the operands.

    ``selector``: if A is sparse, which lanes of four have the places.
    """

    name: str
    a: Matrix | None
    b: Matrix
    rest: str
    keeps: bool = True
    selector: int | None = None

    @property
    def sparse(self) -> bool:
        return self.selector is not None

    @property
    def types(self) -> list[str]:
        """Of D, A and B."""
        return [word for word in self.name.split(".") if word in BITS]

    @property
    def n(self) -> int:
        return int(re.findall(r"\d+", self.name)[1])

    @property
    def k(self) -> int:
        return int(re.findall(r"\d+", self.name)[2])

    @property
    def tile(self) -> tensors.Case:
        """The ``mma`` whose fragments are a warp's: of A, and of eight columns of D."""
        d, a, b = self.types
        return tensors.Case(f"mma.sync.aligned.m16n8k{self.kept}.row.col.{d}.{a}.{b}.{d}")

    @property
    def kept(self) -> int:
        """Elements of A along K."""
        return self.k // 2 if self.sparse else self.k

    @property
    def sums(self) -> int:
        """Registers of D."""
        return self.tile.places()["d"][0] * self.n // 8

    @property
    def code(self) -> str:
        """The statement."""
        d = ", ".join(f"%d{i}" for i in range(self.sums))
        a = "%da" if self.a else f"{{{', '.join(f'%a{i}' for i in range(4))}}}"
        how, which = (".sp", f", %e, {self.selector}") if self.sparse else ("", "")
        return f"wgmma.mma_async{how}.sync.aligned.{self.name} {{{d}}}, {a}, %db{which}{self.rest};"

    @property
    def declared(self) -> str:
        held = "f32" if self.types[0] == "f32" else "b32"
        return (
            f".reg .{held} %d<{self.sums}>; .reg .b32 %a<4>, %e; .reg .b64 %da, %db; .reg .pred %p;"
        )

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        return f"{self.declared} wgmma.fence.sync.aligned; {self.code} {WAIT}"

    def element(self, pairs: list[tuple[int, int]], c: int) -> int:
        """One output, by the model for Hopper."""
        out, kind, other = self.types
        if not self.keeps:
            c = 0
        if out == "s32":
            return model.integers((kind, other), pairs, c, "satfinite" in self.name, "and")
        if self.rest.count("-1") == 1:
            sign = 1 << (BITS[kind] - 1)
            pairs = [(a ^ sign, b) for a, b in pairs]
        if kind not in model.F8:
            return model.summed(kind, pairs, out, c, 25)
        wide = [(model.widened(kind, a), model.widened(other, b)) for a, b in pairs]
        return model.summed("f16", wide, out, c, 13, 13, (model.LEAST[kind], model.LEAST[other]))


def k_major(mode: int, lead: int = 128, stride: int = 0, shift: int = 0) -> Matrix:
    return Matrix(mode, False, lead, stride or (256, 1024, 512, 256)[mode], shift)


_PACKED = k_major(PLAIN)
CASES = (
    Case("m64n8k16.f32.f16.f16", None, _PACKED, ", 1, 1, 1, 0"),
    Case("m64n24k16.f32.f16.f16", k_major(BY_128), k_major(BY_128), ", %p, 1, 1, 0, 0"),
    Case("m64n64k16.f16.f16.f16", k_major(BY_64), k_major(BY_32), ", 1, -1, 1, 0, 0"),
    Case("m64n40k16.f32.bf16.bf16", k_major(BY_32), k_major(BY_64), ", 1, -1, -1, 0, 0"),
    Case("m64n256k16.f16.f16.f16", None, k_major(BY_32), ", 0, 1, -1, 0", False),
    Case("m64n72k16.f32.f16.f16", None, Matrix(BY_128, True, 2048, 1024), ", 1, 1, 1, 1"),
    Case("m64n16k16.f32.bf16.bf16", Matrix(BY_64, True, 1024, 512), Matrix(BY_32, True, 512, 256),
         ", !%p, 1, 1, 1, 1", False),
    Case("m64n48k16.f32.f16.f16", Matrix(PLAIN, True, 1024, 128), Matrix(PLAIN, True, 128, 256),
         ", 1, 1, 1, 1, 1"),
    Case("m64n32k16.f32.f16.f16", Matrix(BY_128, True, 4096, 1024), k_major(PLAIN, 1024, 128),
         ", 1, 1, 1, 1, 0"),
    Case("m64n32k16.f32.f16.f16", k_major(BY_128, shift=256), k_major(BY_128, shift=640),
         ", 1, 1, 1, 0, 0"),
    Case("m64n16k8.f32.tf32.tf32", k_major(BY_128), k_major(BY_64), ", 1, 1, -1"),
    Case("m64n8k8.f32.tf32.tf32", None, k_major(PLAIN, 256, 512), ", 1, 1, 1"),
    Case("m64n40k32.f32.e4m3.e5m2", k_major(BY_128), k_major(BY_128), ", 1, -1, 1"),
    Case("m64n16k32.f16.e5m2.e4m3", None, k_major(BY_32), ", 1, 1, 1"),
    Case("m64n8k32.f32.e5m2.e5m2", _PACKED, _PACKED, ", 1, 1, 1"),
    Case("m64n24k32.s32.s8.u8.satfinite", k_major(BY_128), k_major(BY_64), ", 1"),
    Case("m64n32k32.s32.u8.s8", None, k_major(BY_128), ", %p"),
    Case("m64n8k256.s32.b1.b1.and.popc", k_major(BY_32), _PACKED, ", 1"),
    Case("m64n16k32.f32.f16.f16", None, k_major(BY_128), ", 1, 1, -1, 0", selector=0),
    Case("m64n24k32.f16.f16.f16", k_major(BY_128), k_major(BY_64), ", %p, 1, 1, 0, 0",
         selector=1),
    Case("m64n72k32.f32.bf16.bf16", k_major(BY_64), Matrix(BY_128, True, 4096, 1024),
         ", 1, 1, 1, 0, 1", selector=1),
    Case("m64n8k32.f32.f16.f16", Matrix(BY_128, True, 2048, 1024), k_major(PLAIN, 128, 512),
         ", 0, 1, 1, 1, 0", False, selector=0),
    Case("m64n16k16.f32.tf32.tf32", k_major(BY_32), k_major(BY_128), ", 1, 1, 1", selector=0),
    Case("m64n8k16.f32.tf32.tf32", None, k_major(BY_64), ", 1, -1, 1", selector=1),
    Case("m64n16k64.f32.e4m3.e5m2", None, k_major(BY_128), ", 1, 1, 1", selector=0),
    Case("m64n24k64.f16.e5m2.e4m3", k_major(BY_128), k_major(BY_64), ", 1, 1, -1", selector=0),
    Case("m64n32k64.s32.s8.u8.satfinite", k_major(BY_128), k_major(BY_64), ", 1", selector=0),
    Case("m64n8k64.s32.u8.u8", None, k_major(PLAIN, 128, 512), ", %p", selector=0),
)  # fmt: skip
KINDS = ("exponents", "cancelling", "any")
"""Of operands, a block each."""
ROOM = 16384
"""Bytes of a matrix in shared memory."""


def program(case: Case, barrier: str = "fence.proxy.async; bar.sync 0;") -> Kernel:
    """The block's matrices into shared memory, its registers from their arrays, and the product."""
    held = "f32" if case.types[0] == "f32" else "b32"
    threads = 128 * len(KINDS)
    lines = [
        f"{case.declared} .shared .align 1024 .b8 tile[{2 * ROOM}]; .reg .b64 %at, %p0;",
        ".reg .b32 %t, %g, %x, %y, %v<4>; .reg .pred %more;",
        "mov.u32 %t, %tid.x; mov.u32 %x, %ctaid.x; mad.lo.u32 %g, %x, 128, %t;",
        f"setp.eq.u32 %p, %t, %t; ld.param.u64 %p0, [p0]; mul.wide.u32 %at, %x, {2 * ROOM};",
        "add.s64 %p0, %p0, %at; shl.b32 %x, %t, 4;",
        "COPY: cvt.u64.u32 %at, %x; add.s64 %at, %at, %p0; mov.u32 %y, tile; add.u32 %y, %y, %x;",
        "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%at];",
        "st.shared.v4.b32 [%y], {%v0, %v1, %v2, %v3};",
        f"add.u32 %x, %x, 2048; setp.lt.u32 %more, %x, {2 * ROOM}; @%more bra COPY;",
    ]
    for name, matrix, at in (("a", case.a, 0), ("b", case.b, ROOM)):
        if matrix:
            lines.append(
                f"mov.u32 %y, tile; add.u32 %y, %y, {at + matrix.shift}; and.b32 %y, %y, 0x3FFFF;"
                f"shr.u32 %y, %y, 4; cvt.u64.u32 %d{name}, %y;"
                f"or.b64 %d{name}, %d{name}, {matrix.descriptor};"
            )
    for number, name, count, kind in ((1, "a", 4, "b32"), (2, "d", case.sums, held)):
        lines.append(f"ld.param.u64 %p0, [p{number}]; mad.wide.u32 %at, %g, 4, %p0;")
        lines += [f"ld.global.{kind} %{name}{i}, [%at+{i * threads * 4}];" for i in range(count)]
    if case.sparse:
        lines.append("ld.param.u64 %p0, [p1]; mad.wide.u32 %at, %g, 4, %p0;")
        lines.append(f"ld.global.b32 %e, [%at+{4 * threads * 4}];")
    lines += [
        barrier, "wgmma.fence.sync.aligned;", case.code,
        WAIT,
        "ld.param.u64 %p0, [p3]; mad.wide.u32 %at, %g, 4, %p0;",
        *(f"st.global.{held} [%at+{i * threads * 4}], %d{i};" for i in range(case.sums)),
    ]  # fmt: skip
    made = kernel(lines, 4)
    return Kernel.from_ptx(made.ptx.replace(".target sm_90\n", ".target sm_90a\n"), "k")


def image(found: Any, matrix: Matrix, kind: str, values: Any) -> None:
    """Lay a matrix out in bytes."""
    bits = BITS[kind]
    if bits == 1:  # bytes of eight elements
        values = np.packbits(values.astype(np.uint8), axis=1, bitorder="little")
        bits = 8
    for row, column in itertools.product(*map(range, values.shape)):
        at, value = matrix.at(row, column, bits // 8), int(values[row, column])
        found[at : at + bits // 8] = list(value.to_bytes(bits // 8, "little"))


class Operands:
    """A case's matrices by block, and the arrays that hold them."""

    def __init__(self, case: Case, seed: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.case, (d, a, b) = case, case.types
        self.image = np.zeros((len(KINDS), 2, ROOM), np.uint8)
        self.matrices = []
        for block, data in enumerate(KINDS):
            left, right = (elements(rng, kind, data, (rows, case.k), False)
                           for kind, rows in ((a, ROWS), (b, case.n)))  # fmt: skip
            left = left[:, : case.kept]
            sums = elements(rng, d, data, (ROWS, case.n), True)
            self.matrices.append((left, right, sums))
            if case.a:
                image(self.image[block, 0], case.a, a, left)
            image(self.image[block, 1], case.b, b, right)
        warps = np.concatenate([m.reshape(4, 16, -1) for m, _, _ in self.matrices])
        place = case.tile.places()
        self.a = tensors.packed(warps, *place["a"], BITS[a], 1)
        self.places = np.tile(np.arange(case.k), (len(KINDS), ROWS, 1))
        if case.sparse:
            one = sparse.Case(f"mma.sp.sync.aligned.m16n8k{case.k}.row.col.{d}.{a}.{b}.{d}",
                              case.selector)  # fmt: skip
            found = [sparse.places(rng, one) for _ in range(4 * len(KINDS))]
            words = [sparse.metadata(rng, one, where) for where in found]
            self.a = np.concatenate([self.a, np.concatenate(words).astype(np.uint32)[None]])
            self.places = np.array(found).reshape(len(KINDS), ROWS, -1)
        sums = np.concatenate([m.reshape(4, 16, -1) for _, _, m in self.matrices])
        tiles = np.split(sums, case.n // 8, axis=2)
        self.d = np.concatenate([tensors.packed(tile, *place["d"], BITS[d], 1) for tile in tiles])

    def launch(self, machine: Any, made: Kernel) -> tuple[Any, Any]:
        """D by block, and what the machine returns."""
        out = np.zeros_like(self.d)
        run = machine.launch(made, len(KINDS), 128, [self.image, self.a, self.d, out])
        count, place = self.case.tile.places()["d"]
        like = np.zeros((4 * len(KINDS), 16, 8), np.uint64)
        tiles = [
            tensors.unpacked(out[at : at + count], place, BITS[self.case.types[0]], like, 1)
            for at in range(0, len(out), count)
        ]
        return np.concatenate(tiles, 2).reshape(len(KINDS), ROWS, -1), run
