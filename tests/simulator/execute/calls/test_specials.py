"""Special registers, clocks and the step limit."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.harness import MACHINES, kernel
from tests.support.control_kernels import SHARED, START, STORE, launch

pytestmark = pytest.mark.usefixtures("checked_writes")

SPECIALS = {
    "%tid.x": lambda t, b, n, g: t[0], "%tid.y": lambda t, b, n, g: t[1],
    "%tid.z": lambda t, b, n, g: t[2],
    "%ctaid.x": lambda t, b, n, g: b[0], "%ctaid.y": lambda t, b, n, g: b[1],
    "%ctaid.z": lambda t, b, n, g: b[2],
    "%ntid.x": lambda t, b, n, g: n[0], "%ntid.y": lambda t, b, n, g: n[1],
    "%ntid.z": lambda t, b, n, g: n[2],
    "%nctaid.x": lambda t, b, n, g: g[0], "%nctaid.y": lambda t, b, n, g: g[1],
    "%nctaid.z": lambda t, b, n, g: g[2],
    "%laneid": lambda t, b, n, g: flat(t, n) % 32,
    "%warpid": lambda t, b, n, g: flat(t, n) // 32,
    "%nwarpid": lambda t, b, n, g: -(-n[0] * n[1] * n[2] // 32),
    "%lanemask_eq": lambda t, b, n, g: 1 << flat(t, n) % 32,
    "%lanemask_lt": lambda t, b, n, g: (1 << flat(t, n) % 32) - 1,
    "%lanemask_le": lambda t, b, n, g: (2 << flat(t, n) % 32) - 1,
    "%lanemask_gt": lambda t, b, n, g: 2**32 - (2 << flat(t, n) % 32),
    "%lanemask_ge": lambda t, b, n, g: 2**32 - (1 << flat(t, n) % 32),
    "%clusterid.x": lambda t, b, n, g: b[0], "%nclusterid.y": lambda t, b, n, g: g[1],
    "%cluster_nctaid.x": lambda t, b, n, g: 1, "%cluster_ctaid.x": lambda t, b, n, g: 0,
    "%cluster_ctarank": lambda t, b, n, g: 0, "%cluster_nctarank": lambda t, b, n, g: 1,
    "%total_smem_size": lambda t, b, n, g: 512, "%dynamic_smem_size": lambda t, b, n, g: 0,
}  # fmt: skip


def flat(thread: tuple[int, ...], extents: tuple[int, ...]) -> int:
    return (thread[2] * extents[1] + thread[1]) * extents[0] + thread[0]


@pytest.mark.parametrize(
    ("grid", "block"), [((3, 2, 2), (5, 4, 3)), ((4, 1, 1), (64, 1, 1)), ((1, 1, 1), (1, 1, 1))]
)
def test_special_registers(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    lines = [
        SHARED, ".reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b32 %v;",
        *(f"mov.u32 %r{4 + i}, %{name};" for i, name in enumerate(
            ("tid.x", "tid.y", "ntid.x", "ntid.y", "ctaid.x", "ctaid.y", "nctaid.x", "nctaid.y"))),
        "mov.u32 %r0, %tid.z; mad.lo.u32 %r0, %r0, %r7, %r5; mad.lo.u32 %r0, %r0, %r6, %r4;",
        "mov.u32 %r1, %ctaid.z; mad.lo.u32 %r1, %r1, %r11, %r9; mad.lo.u32 %r1, %r1, %r10, %r8;",
        f"mad.lo.u32 %r2, %r1, {threads}, %r0; ld.param.u64 %rd0, [p0];",
        f"mul.wide.u32 %rd1, %r2, {4 * len(SPECIALS)}; add.u64 %rd2, %rd0, %rd1;",
        "mov.u32 %v, room; st.shared.u32 [room], 1;" if threads == 1 else "",
    ]  # fmt: skip
    for i, name in enumerate(SPECIALS):
        lines.append(f"mov.u32 %v, {name}; st.global.u32 [%rd2+{4 * i}], %v;")
    for machine in MACHINES[:1]:  # a GPU has a word of its own on shared memory's size
        out = np.zeros((blocks * threads, len(SPECIALS)), np.uint32)
        launch(machine, kernel([*lines, "ret;"], 1), grid, block, out)
        for number in range(blocks):
            b = (number % grid[0], number // grid[0] % grid[1], number // grid[0] // grid[1])
            for i in range(threads):
                t = (i % block[0], i // block[0] % block[1], i // block[0] // block[1])
                wanted = [fn(t, b, block, grid) for fn in SPECIALS.values()]
                assert out[number * threads + i].tolist() == wanted


def test_clocks_go_on() -> None:
    lines = [
        *START, "mov.u64 %rd4, %clock64; mov.u32 %r9, %clock; mov.u64 %rd5, %globaltimer;",
        "mov.u64 %rd6, %clock64; mov.u64 %rd7, %globaltimer; setp.ge.u64 %p1, %rd6, %rd4;",
        "setp.ge.and.u64 %p1, %rd7, %rd5, %p1; selp.u32 %r9, 1, 0, %p1;", *STORE, "ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        out = np.zeros(32, np.uint32)
        launch(machine, kernel(lines, 2), 1, 32, np.zeros(32, np.uint32), out)
        assert out.all()


def test_a_small_step_limit_is_a_small_one() -> None:
    """Endless loops aside: a loop of a million rounds is given up after the steps allowed."""
    kernel = Kernel.from_cuda(
        """\
__global__ void count(int* out) {
#pragma unroll 1
    for (int i = 0; i < 1000000; ++i) atomicAdd(out, i);
}
""",
        "count",
    )
    out = np.zeros(1, np.uint32)
    (found,) = simulator.launch(kernel, 1, 1, [out], step_limit=100).hazards
    assert found.kind == "deadlock"
    assert out[0] <= sum(range(100))
