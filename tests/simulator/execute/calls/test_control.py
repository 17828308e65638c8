"""Branches, calls, barriers and special registers against the same written in Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from kernels import Kernel
from tests.simulator.isa.harness import MACHINES, kernel
from tests.support.control_kernels import LOAD, SHARED, SLOT, START, STORE, launch, mapped

OPCODES = {
    "bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier", "membar", "fence",
    "brkpt", "nanosleep", "pmevent", "setmaxnreg", "prefetch", "prefetchu", "discard",
    "applypriority", "griddepcontrol",
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("checked_writes")

words = st.lists(st.integers(0, 40), min_size=64, max_size=64).map(lambda x: np.array(x, np.uint32))


@pytest.mark.parametrize("block", [1, 37, 64])
def test_branch_table(block: int) -> None:
    lines = [
        "rem.u32 %r10, %r8, 4; mov.u32 %r9, 0;",
        "TABLE: .branchtargets L0, L1, L2, L1;",
        "brx.idx %r10, TABLE;",
        "L0: add.u32 %r9, %r9, 1;",  # falls into the next
        "L1: add.u32 %r9, %r9, 10; bra DONE;",
        "L2: add.u32 %r9, %r9, 100;",
        "DONE:",
    ]
    given = np.arange(2 * block, dtype=np.uint32)
    assert mapped(lines, given, block).tolist() == [
        (11, 10, 100, 10)[i % 4] for i in range(2 * block)
    ]


FUNCTIONS = """
.visible .func (.param .b32 result) triple(.param .b32 x)
{
    .reg .b32 %r<4>; .reg .pred %p<2>;
    ld.param::func.u32 %r0, [x];
    setp.gt.u32 %p0, %r0, 20;
    @%p0 bra BIG;
    mul.lo.u32 %r1, %r0, 3;
    st.param.b32 [result], %r1;
    ret;
BIG:
    mov.u32 %r1, 7;
    st.param::func.b32 [result], %r1;
    ret;
}
.func (.param .b64 sum) twice(.param .b64 x, .param .b32 y, .param .align 4 .b8 pair[8])
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [y];
    ld.param.u32 %r5, [pair]; ld.param.u32 %r6, [pair+4];
    {
        .param .b32 a; .param .b32 r;
        st.param.b32 [a], %r0;
        call.uni (r), triple, (a);
        ld.param.b32 %r1, [r];
    }
    add.u32 %r1, %r1, %r5; sub.u32 %r1, %r1, %r6;
    cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd0, %rd1;
    st.param.b64 [sum], %rd2;
    ret;
}
"""


@settings(max_examples=8, deadline=None)
@given(words)
def test_functions(given: np.ndarray) -> None:
    """Calls of calls from a divergent place; returns at several places; structs by value."""
    lines = [
        "mov.u32 %r9, %r8; and.b32 %r10, %r8, 1; setp.eq.u32 %p1, %r10, 1; @%p1 bra SKIP;",
        "cvt.u64.u32 %rd4, %r8; mov.u32 %r12, 50; mov.u32 %r13, 8;",
        "{ .param .b64 a; .param .b32 b; .param .align 4 .b8 s[8]; .param .b64 r;",
        "st.param.b64 [a], %rd4; st.param.b32 [b], %r8;",
        "st.param.b32 [s], %r12; st.param.b32 [s+4], %r13;",
        "call.uni (r), twice, (a, b, s); ld.param.b64 %rd5, [r]; }",
        "cvt.u32.u64 %r9, %rd5;",
        "SKIP:",
    ]
    found = mapped(lines, given, before=FUNCTIONS)

    def model(x: int) -> int:
        return x if x & 1 else x + (7 if x > 20 else 3 * x) + 42

    assert found.tolist() == [model(int(x)) for x in given]


def test_return_and_exit_under_guards() -> None:
    """Lanes that are gone write nothing more; the others go on."""
    lines = [
        *START, *LOAD, "mov.u32 %r9, 1; setp.lt.u32 %p1, %r0, 10; setp.gt.u32 %p2, %r0, 50;",
        "setp.gt.u32 %p3, %r1, 9999; @%p3 exit;", *STORE, "@%p1 ret;",
        "mov.u32 %r9, 2;", *STORE, "@%p2 exit;", "mov.u32 %r9, 3;", *STORE, "ret;",
    ]  # fmt: skip
    for machine in MACHINES:
        out = np.zeros(128, np.uint32)
        launch(machine, kernel(lines, 2), 2, 64, np.zeros(128, np.uint32), out)
        assert out.tolist() == ([1] * 10 + [3] * 41 + [2] * 13) * 2


def test_trap() -> None:
    lines = [
        *START,
        *LOAD,
        "setp.eq.u32 %p1, %r0, 5; @%p1 trap;",
        "mov.u32 %r9, 1;",
        *STORE,
        "ret;",
    ]
    out = np.zeros(32, np.uint32)
    result = simulator.launch(kernel(lines, 2), 1, 32, [np.zeros(32, np.uint32), out])
    assert [h.kind for h in result.hazards] == ["trap"]
    assert out[6:].all()


@pytest.mark.parametrize(
    "barrier",
    ["bar.sync 0;", "barrier.sync 3;", "barrier.sync.aligned 1, 128;", "barrier.cta.sync 0;",
     "bar.sync %r20;", "bar.sync 2, %r2;"],
)  # fmt: skip
def test_block_barrier(barrier: str) -> None:
    """Everyone sees what the thread of another warp wrote, round after round."""
    lines = [
        SHARED, SLOT, "mov.u32 %r20, 4; mov.u32 %r10, 0; mov.u32 %r9, %r8;",
        "ROUND: st.shared.u32 [%rd5], %r9;", barrier,
        "add.u32 %r11, %r0, 33; rem.u32 %r11, %r11, %r2; mul.wide.u32 %rd6, %r11, 4;",
        "add.u64 %rd6, %rd4, %rd6; ld.shared.u32 %r9, [%rd6];", barrier,
        "add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra ROUND;",
    ]  # fmt: skip
    given = np.arange(256, dtype=np.uint32) * 7
    found = mapped(lines, given, 128)
    blocks = given.reshape(2, 128)
    assert (found.reshape(2, 128) == np.roll(blocks, -99, axis=1)).all()


@pytest.mark.parametrize("threads", [32, 50, 128])
def test_barrier_reductions(threads: int) -> None:
    lines = [
        "setp.gt.u32 %p1, %r8, 20; bar.red.popc.u32 %r9, 0, %p1; bar.red.and.pred %p2, 0, %p1;",
        "bar.red.or.pred %p3, 0, %p1; barrier.red.popc.u32 %r10, 1, !%p1;",
        "selp.u32 %r11, 1000, 0, %p2; selp.u32 %r12, 2000, 0, %p3;",
        "add.u32 %r9, %r9, %r11; add.u32 %r9, %r9, %r12; mad.lo.u32 %r9, %r10, 10000, %r9;",
    ]
    blocks = [np.full(threads, 3), np.full(threads, 30), np.arange(threads)]
    given = np.concatenate(blocks).astype(np.uint32)
    wanted = []
    for block in blocks:
        true = int((block > 20).sum())
        total = true + 1000 * (true == threads) + 2000 * (true > 0) + 10000 * (threads - true)
        wanted += [total] * threads
    assert mapped(lines, given, threads).tolist() == wanted


def test_producers_arrive_and_consumers_wait() -> None:
    """Two warps pass data through two named barriers without stopping the producer."""
    lines = [
        SHARED, SLOT, "mov.u32 %r9, 0; setp.ge.u32 %p1, %r0, 32; mov.u32 %r10, 0;",
        "@%p1 bra CONSUMER;",
        "PRODUCER: add.u32 %r11, %r8, %r10; st.shared.u32 [%rd5], %r11; bar.arrive 1, 64;",
        "bar.sync 2, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 4; @%p2 bra PRODUCER;",
        "bra END;",
        "CONSUMER: bar.sync 1, 64; ld.shared.u32 %r11, [%rd5+-128]; add.u32 %r9, %r9, %r11;",
        "bar.arrive 2, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 4; @%p2 bra CONSUMER;",
        "END: bar.sync 0;",
    ]  # fmt: skip
    given = np.arange(128, dtype=np.uint32)
    wanted = [0 if i % 64 < 32 else 4 * (i - 32) + 6 for i in range(128)]
    assert mapped(lines, given, 64).tolist() == wanted


def test_barriers_of_part_of_a_block() -> None:
    """Two pairs of warps, each with a barrier of its own."""
    lines = [
        SHARED, SLOT, "mov.u32 %r9, 0; shr.u32 %r10, %r0, 6; add.u32 %r11, %r10, 1;",
        "st.shared.u32 [%rd5], %r8; barrier.sync %r11, 64;",
        "xor.b32 %r12, %r0, 32; mul.wide.u32 %rd6, %r12, 4; add.u64 %rd6, %rd4, %rd6;",
        "ld.shared.u32 %r9, [%rd6];",
    ]  # fmt: skip
    given = np.arange(256, dtype=np.uint32) + 5
    assert mapped(lines, given, 128).tolist() == [(i ^ 32) + 5 for i in range(256)]


@pytest.mark.slow_cases("two")
@pytest.mark.parametrize("places", ["one", "two"])
def test_warp_barrier(places: str) -> None:
    """A divided warp hands values over through shared memory."""
    meet = "bra MEET;" if places == "one" else "bar.warp.sync 0xffffffff; bra END;"
    lines = [
        SHARED,
        SLOT,
        "and.b32 %r10, %r0, 1; setp.eq.u32 %p1, %r10, 0; mov.u32 %r9, %r8;",
        f"@%p1 bra MEET; st.shared.u32 [%rd5], %r8; {meet}",
        "MEET: bar.warp.sync -1; @!%p1 bra END; ld.shared.u32 %r9, [%rd5+4];",
        "END:",
    ]
    given = np.arange(64, dtype=np.uint32)
    assert mapped(lines, given, 32).tolist() == [i | 1 for i in range(64)]


def test_what_changes_nothing() -> None:
    """Fences, hints and waits leave registers and memory as they are."""
    lines = [
        "mov.u32 %r9, %r8; membar.cta; membar.gl; membar.sys; fence.acq_rel.gpu; fence.sc.cta;",
        "nanosleep.u32 20; prefetch.global.L1 [%rd2]; prefetchu.L1 [%rd2]; pmevent 1;",
        "griddepcontrol.wait; griddepcontrol.launch_dependents;",
        "and.b64 %rd9, %rd2, -128; applypriority.global.L2::evict_normal [%rd9], 128;",
    ]
    given = np.arange(64, dtype=np.uint32)
    assert (mapped(lines, given) == given).all()


@pytest.mark.parametrize(
    "line", ["brkpt;", "setmaxnreg.inc.sync.aligned.u32 64;", "discard.global.L2 [%rd9], 128;"]
)
def test_what_only_the_simulator_should_run(line: str) -> None:
    """A GPU would stop, needs other conditions, or loses memory's content."""
    lines = [*START, *LOAD, "and.b64 %rd9, %rd2, -128; mov.u32 %r9, %r8;", line, *STORE, "ret;"]
    given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    text = kernel(lines, 2).ptx.replace(".target sm_90\n", ".target sm_90a\n")
    launch(simulator, Kernel.from_ptx(text), 1, 32, given, out)
    assert (out == given).all()
