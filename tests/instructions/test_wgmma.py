"""``wgmma``: matrices of registers and of shared memory by descriptor, against a slow model."""

import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel

from . import tensor_cases as tensors
from . import tensor_model as model
from .harness import MACHINES, kernel
from .tensor_cases import BITS, elements

PLAIN, BY_128, BY_64, BY_32 = range(4)
"""Modes of swizzling as a descriptor numbers them."""
ROWS = 64
_WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


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
    """One product; ``a``: of memory, or ``None`` for registers; ``rest``: of the operands."""

    name: str
    a: Matrix | None
    b: Matrix
    rest: str
    keeps: bool = True

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
        return tensors.Case(f"mma.sync.aligned.m16n8k{self.k}.row.col.{d}.{a}.{b}.{d}")

    @property
    def sums(self) -> int:
        """Registers of D."""
        return self.tile.places()["d"][0] * self.n // 8

    @property
    def code(self) -> str:
        """The statement."""
        d = ", ".join(f"%d{i}" for i in range(self.sums))
        a = "%da" if self.a else f"{{{', '.join(f'%a{i}' for i in range(4))}}}"
        return f"wgmma.mma_async.sync.aligned.{self.name} {{{d}}}, {a}, %db{self.rest};"

    @property
    def declared(self) -> str:
        held = "f32" if self.types[0] == "f32" else "b32"
        return f".reg .{held} %d<{self.sums}>; .reg .b32 %a<4>; .reg .b64 %da, %db; .reg .pred %p;"

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        return f"{self.declared} wgmma.fence.sync.aligned; {self.code} {_WAIT}"

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


def _k_major(mode: int, lead: int = 128, stride: int = 0, shift: int = 0) -> Matrix:
    return Matrix(mode, False, lead, stride or (256, 1024, 512, 256)[mode], shift)


_PACKED = _k_major(PLAIN)
CASES = (
    Case("m64n8k16.f32.f16.f16", None, _PACKED, ", 1, 1, 1, 0"),
    Case("m64n24k16.f32.f16.f16", _k_major(BY_128), _k_major(BY_128), ", %p, 1, 1, 0, 0"),
    Case("m64n64k16.f16.f16.f16", _k_major(BY_64), _k_major(BY_32), ", 1, -1, 1, 0, 0"),
    Case("m64n40k16.f32.bf16.bf16", _k_major(BY_32), _k_major(BY_64), ", 1, -1, -1, 0, 0"),
    Case("m64n256k16.f16.f16.f16", None, _k_major(BY_32), ", 0, 1, -1, 0", False),
    Case("m64n72k16.f32.f16.f16", None, Matrix(BY_128, True, 2048, 1024), ", 1, 1, 1, 1"),
    Case("m64n16k16.f32.bf16.bf16", Matrix(BY_64, True, 1024, 512), Matrix(BY_32, True, 512, 256),
         ", !%p, 1, 1, 1, 1", False),
    Case("m64n48k16.f32.f16.f16", Matrix(PLAIN, True, 1024, 128), Matrix(PLAIN, True, 128, 256),
         ", 1, 1, 1, 1, 1"),
    Case("m64n32k16.f32.f16.f16", Matrix(BY_128, True, 4096, 1024), _k_major(PLAIN, 1024, 128),
         ", 1, 1, 1, 1, 0"),
    Case("m64n32k16.f32.f16.f16", _k_major(BY_128, shift=256), _k_major(BY_128, shift=640),
         ", 1, 1, 1, 0, 0"),
    Case("m64n16k8.f32.tf32.tf32", _k_major(BY_128), _k_major(BY_64), ", 1, 1, -1"),
    Case("m64n8k8.f32.tf32.tf32", None, _k_major(PLAIN, 256, 512), ", 1, 1, 1"),
    Case("m64n40k32.f32.e4m3.e5m2", _k_major(BY_128), _k_major(BY_128), ", 1, -1, 1"),
    Case("m64n16k32.f16.e5m2.e4m3", None, _k_major(BY_32), ", 1, 1, 1"),
    Case("m64n8k32.f32.e5m2.e5m2", _PACKED, _PACKED, ", 1, 1, 1"),
    Case("m64n24k32.s32.s8.u8.satfinite", _k_major(BY_128), _k_major(BY_64), ", 1"),
    Case("m64n32k32.s32.u8.s8", None, _k_major(BY_128), ", %p"),
    Case("m64n8k256.s32.b1.b1.and.popc", _k_major(BY_32), _PACKED, ", 1"),
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
    lines += [
        barrier, "wgmma.fence.sync.aligned;", case.code,
        _WAIT,
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

    def __init__(self, case: Case) -> None:
        rng = np.random.default_rng(6)
        self.case, (d, a, b) = case, case.types
        self.image = np.zeros((len(KINDS), 2, ROOM), np.uint8)
        self.matrices = []
        for block, data in enumerate(KINDS):
            left, right = (elements(rng, kind, data, (rows, case.k), False)
                           for kind, rows in ((a, ROWS), (b, case.n)))  # fmt: skip
            sums = elements(rng, d, data, (ROWS, case.n), True)
            self.matrices.append((left, right, sums))
            if case.a:
                image(self.image[block, 0], case.a, a, left)
            image(self.image[block, 1], case.b, b, right)
        warps = np.concatenate([m.reshape(4, 16, -1) for m, _, _ in self.matrices])
        place = case.tile.places()
        self.a = tensors.packed(warps, *place["a"], BITS[a], 1)
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_the_model(case: Case) -> None:
    """On each machine; of large results, some elements."""
    operands = Operands(case)
    found = [(machine, *operands.launch(machine, program(case))) for machine in MACHINES]
    step = max(case.n * case.k // 512, 1)
    for block, (a, b, c) in enumerate(operands.matrices):
        left, right, start = a.tolist(), b.tolist(), c.tolist()
        for i, j in itertools.islice(itertools.product(range(ROWS), range(case.n)), 0, None, step):
            wanted = case.element(list(zip(left[i], right[j], strict=True)), start[i][j])
            for machine, matrix, _ in found:
                got = int(matrix[block, i, j])
                assert got == wanted, (machine.__name__, KINDS[block], i, j, hex(got), hex(wanted))
    run = found[0][2]
    assert (run.hazards, run.arch) == ([], "sm_90")
    counts = run.counters  # what is read of shared memory passes no load and store unit
    assert counts.flops + counts.tensor_int == 2 * ROWS * case.n * case.k * len(KINDS)
    assert not counts.shared_load.requests
    if len(found) > 1:
        assert (found[0][1] == found[1][1]).all()


def test_shared_memory_is_checked() -> None:
    """Reading what other warps wrote without a barrier, and beyond the block's memory."""
    case = CASES[1]
    run = Operands(case).launch(simulator, program(case, barrier=""))[1]
    assert {hazard.kind for hazard in run.hazards} == {"raw-race"}
    far = f"add.s64 %db, %db, {2 * ROOM >> 4}; fence.proxy.async; bar.sync 0;"
    run = Operands(case).launch(simulator, program(case, barrier=far))[1]
    assert {hazard.kind for hazard in run.hazards} == {"out-of-bounds"}


def test_what_is_still_read_is_not_written() -> None:
    """A wgmma reads its tiles until it has been waited for: who writes there before, races."""
    case, write = CASES[1], "mov.u32 %y, tile; shl.b32 %x, %t, 2; add.u32 %y, %y, %x; st.shared.b32"
    text = program(case).ptx
    commit, wait = _WAIT.split("; ")
    for first, second, kinds in (
        (f"{commit}; {write} [%y], %x; {wait}", "", {"war-race"}),
        (f"{commit}; bar.sync 0; {write} [%y+{ROOM}], %x; {wait}", "", {"war-race"}),
        (f"{commit}; {wait}", f"{write} [%y], %x;", {"war-race"}),  # of other warps
        (f"{commit}; {wait}", f"bar.sync 0; {write} [%y], %x;", set()),
        (f"{commit}; {commit}; wgmma.wait_group.sync.aligned 1;", f"bar.sync 0; {write} [%y], %x;",
         set()),
        (f"{commit}; wgmma.wait_group.sync.aligned 1;", f"bar.sync 0; {write} [%y], %x;",
         {"war-race", "raw-race"}),  # and the sums are stored
    ):  # fmt: skip
        made = Kernel.from_ptx(text.replace(_WAIT, f"{first} {second}"), "k")
        run = Operands(case).launch(simulator, made)[1]
        assert {hazard.kind for hazard in run.hazards} == kinds, (first, second)
    fence, again = "wgmma.fence.sync.aligned;", "add.u32 %v0, %v0, 1; setp.lt.u32 %more, %v0, 2;"
    loop = text.replace(fence, f"mov.u32 %v0, 0; AGAIN: {write} [%y], %x; bar.sync 0; {fence}")
    made = Kernel.from_ptx(loop.replace(_WAIT, f"{commit}; {again} @%more bra AGAIN; {wait}"), "k")
    hazards = Operands(case).launch(simulator, made)[1].hazards
    assert {hazard.kind for hazard in hazards} == {"war-race"}
