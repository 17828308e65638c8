"""``wgmma``: matrices of registers and of shared memory by descriptor, against a slow model."""

import itertools

import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.harness import MACHINES
from tests.simulator.isa.wgmma_cases import CASES, KINDS, ROOM, ROWS, WAIT, Case, Operands, program
from tests.support.launches import every_other


@pytest.mark.slow_but("m64n8k16.f32.f16.f16")
@pytest.mark.parametrize("case", every_other(CASES), ids=lambda case: case.name)
def test_equals_the_model(case: Case) -> None:
    """On each machine; of large results, some elements."""
    operands = Operands(case)
    found = [(machine, *operands.launch(machine, program(case))) for machine in MACHINES]
    step = max(case.n * case.k // 512, 1)
    for block, (a, b, c) in enumerate(operands.matrices):
        left, right, start = a.tolist(), b.tolist(), c.tolist()
        for i, j in itertools.islice(itertools.product(range(ROWS), range(case.n)), 0, None, step):
            given = [right[j][k] for k in operands.places[block, i]]
            wanted = case.element(list(zip(left[i], given, strict=True)), start[i][j])
            for machine, matrix, _ in found:
                got = int(matrix[block, i, j])
                assert got == wanted, (machine.__name__, KINDS[block], i, j, hex(got), hex(wanted))
    run = found[0][2]
    assert (run.hazards, run.arch) == ([], "sm_90")
    counts = run.counters  # what is read of shared memory passes no load and store unit
    assert counts.flops + counts.tensor_int == 2 * ROWS * case.n * case.kept * len(KINDS)
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


@pytest.mark.slow
def test_what_is_still_read_is_not_written() -> None:
    """A wgmma reads its tiles until it has been waited for: who writes there before, races."""
    case, write = CASES[1], "mov.u32 %y, tile; shl.b32 %x, %t, 2; add.u32 %y, %y, %x; st.shared.b32"
    text = program(case).ptx
    commit, wait = WAIT.split("; ")
    for first, second, kinds in (
        (f"{commit}; {write} [%y], %x; {wait}", "", {"war-race"}),
        (f"{commit}; bar.sync 0; {write} [%y+{ROOM}], %x; {wait}", "", {"war-race"}),
        (f"{commit}; {wait}", f"{write} [%y], %x;", set()),  # the whole warpgroup's reads are over
        (f"{commit}; {wait}", f"bar.sync 0; {write} [%y], %x;", set()),
        (f"{commit}; {commit}; wgmma.wait_group.sync.aligned 1;", f"bar.sync 0; {write} [%y], %x;",
         set()),
        (f"{commit}; wgmma.wait_group.sync.aligned 1;", f"bar.sync 0; {write} [%y], %x;",
         {"war-race", "raw-race"}),  # and the sums are stored
    ):  # fmt: skip
        made = Kernel.from_ptx(text.replace(WAIT, f"{first} {second}"), "k")
        run = Operands(case).launch(simulator, made)[1]
        assert {hazard.kind for hazard in run.hazards} == kinds, (first, second)
    fence, again = "wgmma.fence.sync.aligned;", "add.u32 %v0, %v0, 1; setp.lt.u32 %more, %v0, 2;"
    for proxies, kinds in (("fence.proxy.async;", {"war-race"}), ("", {"war-race", "raw-race"})):
        head = f"mov.u32 %v0, 0; AGAIN: {write} [%y], %x; {proxies} bar.sync 0; {fence}"
        loop = text.replace(fence, head).replace(
            WAIT, f"{commit}; {again} @%more bra AGAIN; {wait}"
        )
        made = Kernel.from_ptx(loop, "k")
        hazards = Operands(case).launch(simulator, made)[1].hazards
        assert {hazard.kind for hazard in hazards} == kinds
