"""Where lanes of a warp converge: edges of the rule that the net ``convergence`` does not draw."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.compile.cfg.convergence import Graph, points
from tests.fuzz import convergence, ptxas

HEAD = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
"""


STORE = """\
    ld.param.u64 %d1, [out];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r2;
    ret;
}
"""
FIRST_LOOPS = {
    "the function begins with it": ("""\
again:
    mov.u32 %r1, %tid.x;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra again;
""", [1, *range(1, 64)]),
    "a branch of it converges there": ("""\
again:
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r2, 8;
    @%p bra done;
    add.u32 %r2, %r2, 1;
    and.b32 %r3, %r1, %r2;
    setp.eq.u32 %p, %r3, 0;
    @%p bra again;
    bra again;
done:
""", [8] * 64),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["lockstep", "warps", 4])
@pytest.mark.parametrize("name", FIRST_LOOPS)
def test_lanes_are_together_behind_a_loop_at_the_start(name: str, schedule: str | int) -> None:
    loop, expected = FIRST_LOOPS[name]
    out = np.zeros(64, np.uint32)
    kernel = Kernel.from_ptx(HEAD + loop + STORE)
    run = simulator.launch(kernel, 1, 64, [out], checks="none", schedule=schedule)
    assert out.tolist() == expected
    assert run.counters.global_store.requests == 2


def test_one_of_several_ends_counts() -> None:
    # 0 -> 1 | 2; 1 -> end 3; 2 -> 4 | 5; 4 -> 5; end 5
    found, _ = points(Graph(0, {0: [1, 2], 1: [3], 2: [4, 5], 3: [], 4: [5], 5: []}))
    assert found == {5}


def test_a_return_with_statements_of_its_own_is_another_way_out() -> None:
    # 0 -> 6 | 1; 1 -> end 8 | 2; 2 -> 3 | 4; 3 -> 8 (returns); 4 -> 5 -> 7; 6 -> 7 -> 8
    ways = {0: [6, 1], 1: [8, 2], 2: [3, 4], 3: [8], 4: [5], 5: [7], 6: [7], 7: [8], 8: []}
    assert points(Graph(0, ways))[0] == {7, 8}  # as ptxas 13.0 has it
    # Two blocks that cross, 2 -> 3 and 1 -> 3, 0 -> 4 and 2 -> 4: the first in the text.
    ways = {0: [4, 1], 1: [3, 2], 2: [4, 3], 3: [5], 4: [5], 5: []}
    assert points(Graph(0, ways))[0] == {3, 5}


def test_a_graph_that_never_ends_has_no_point_behind_it() -> None:
    assert points(Graph(0, {0: [1, 2], 1: [0], 2: [0]})) == (set(), {0})


@pytest.mark.skipif(ptxas.path() is None, reason="needs ptxas (nvidia-cuda-nvcc)")
def test_larger_graphs_are_nearly_all_as_ptxas_has_them() -> None:
    programs = [convergence.draw(seed, 8) for seed in range(200)]
    theirs = convergence.barriers(programs)
    ours = []
    for blocks in programs:
        names = [block.name for block in blocks]
        after = {
            i: [
                *([names.index(block.target)] if block.target else []),
                *([i + 1] if block.end in ("next", "branch") else []),
            ]
            for i, block in enumerate(blocks)
        }
        ours.append({names[i] for i in points(Graph(0, after))[0]})
    equal = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
    assert equal >= 193  # docs/counters.md says how many are not


def test_the_net_finds_nothing() -> None:
    assert not convergence.run(0, 100, 8).differences
