"""The types of registers that hold a matrix: what ptxas takes, no more and no less."""

import itertools

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.fuzz import modifiers, ptxas

needs_ptxas = pytest.mark.skipif(ptxas.path() is None, reason="the wheel nvidia-cuda-nvcc")
TYPES = ("b32", "s32", "u32", "f32", "f16x2")
PRODUCTS = {  # and how many registers D, A, B and C are
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16": (2, 2, 1, 2),
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32": (8, 2, 2, 8),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": (4, 4, 2, 4),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": (4, 4, 2, 4),
    "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16": (2, 4, 2, 2),
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32": (4, 4, 2, 4),
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32": (4, 4, 2, 4),
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc": (4, 4, 2, 4),
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16": (4, 8, 8, 4),
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32": (8, 4, 4, 8),
    "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32": (8, 2, 2, 8),
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32": (8, 4, 4, 8),
}
MOVED = {
    "a.sync.aligned.row.m16n16k16.shared.f16": 8, "c.sync.aligned.row.m16n16k16.shared.f16": 4,
    "c.sync.aligned.row.m16n16k16.shared.f32": 8, "c.sync.aligned.row.m16n16k16.shared.s32": 8,
    "b.sync.aligned.row.m16n16k16.shared.bf16": 4, "a.sync.aligned.row.m16n16k16.shared.s8": 2,
    "a.sync.aligned.row.m8n8k32.shared.s4": 1, "a.sync.aligned.row.m8n8k128.shared.b1": 1,
    "a.sync.aligned.row.m16n16k8.shared.tf32": 4,
}  # fmt: skip
WARPGROUPS = ("k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.f32.e4m3.e4m3")


def several(type: str, count: int) -> str:
    return "{" + ", ".join(f"%{type}_{i % 3 + 1}" for i in range(count)) + "}"


def compared(lines: list[tuple[str, list[str]]], target: str) -> None:
    drawn = [(words[0], tuple(words[1:]), tuple(o)) for i, o in lines if (words := i.split("."))]
    modifiers.assert_agrees(drawn, target)


@needs_ptxas
def test_products() -> None:
    lines = []
    for product, counts in PRODUCTS.items():
        sums = "f32" if ".f32" in product else "s32" if ".s32" in product else "b32"
        usual = [sums, "b32", "b32", sums]
        for place, type in itertools.product(range(4), TYPES):
            types = [type if i == place else one for i, one in enumerate(usual)]
            lines.append((product, [several(*each) for each in zip(types, counts, strict=True)]))
    for (how, count), type in itertools.product(MOVED.items(), TYPES):
        lines.append((f"wmma.load.{how}", [several(type, count), "[sv]", "16"]))
    compared(lines, "sm_90")


@needs_ptxas
def test_products_of_warpgroups() -> None:
    lines = []
    for how, type in itertools.product(WARPGROUPS, TYPES):
        turned = ["0"] if "16" in how.split(".")[-1] else []
        operands = [several("f32", 4), several(type, 4), "%b64_1", "1", "1", "1", *turned]
        lines.append((f"wgmma.mma_async.sync.aligned.m64n8{how}", operands))
    compared(lines, "sm_90a")


@needs_ptxas
def test_conversions_with_random_bits_and_leaders() -> None:
    lines = []
    for to, bits in itertools.product(TYPES, TYPES):
        for kind in ("f16x2", "relu.satfinite.f16x2", "bf16x2"):
            source = [f"%{to}_1", "%f32_1", "%f32_2", f"%{bits}_2"]
            lines.append((f"cvt.rs.{kind}.f32", source))
        four = [f"%{to}_1", several("f32", 4), f"%{bits}_2"]
        lines.append(("cvt.rs.satfinite.e4m3x4.f32", four))
        lines.append(("elect.sync", [f"%{to}_1|%pred_1", f"%{bits}_2"]))
    compared(lines, "sm_100a")


PROGRAM = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 into) {
    .reg .HOLD %a<4>, %b<2>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %p<3>;
    mov.u32 %r0, %laneid;
    mul.lo.u32 %r1, %r0, 0x3C01; mov.b32 %a0, %r1;
    xor.b32 %r2, %r1, 0x40003; and.b32 %r2, %r2, 0x3fff3fff; mov.b32 %a1, %r2;
    and.b32 %r3, %r1, 0x3c013c01; mov.b32 %b0, %r3;
    and.b32 %r1, %r1, 0x3fff3fff; mov.b32 %a0, %r1;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
        {%f0, %f1, %f2, %f3}, {%a0, %a1}, {%b0}, {%f0, %f1, %f2, %f3};
    ld.param.u64 %p0, [into]; cvta.to.global.u64 %p0, %p0;
    mul.wide.u32 %p1, %r0, 16; add.u64 %p0, %p0, %p1;
    st.global.v4.f32 [%p0], {%f0, %f1, %f2, %f3};
    ret;
}
"""


def test_pairs_of_halves_hold_what_words_hold() -> None:
    """As the PTX ISA declares them in its examples."""
    left = []
    for type in ("b32", "f16x2"):
        out = np.zeros((32, 4), np.float32)
        simulator.launch(Kernel.from_ptx(PROGRAM.replace("HOLD", type), "k"), 1, 32, [out])
        left.append(out)
    assert np.isfinite(left[0]).all()
    assert left[0].any()
    assert (left[0] == left[1]).all()
