"""Warp-synchronous instructions: whom they wait for, and masks that are wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from tests.support.launches import BUILDS, SCHEDULES, compiled
from tests.support.paths import DEFECTS

COLLECTIVES = {
    "shfl": "v += __shfl_sync(MASK, v, 0);",
    "vote": "v += __any_sync(MASK, v == 3);",
    "ballot": "v += __popc(__ballot_sync(MASK, v < 40));",
    "match": "v += __popc(__match_any_sync(MASK, v));",
    "redux": "v += __reduce_add_sync(MASK, v);",
    "syncwarp": "__syncwarp(MASK); v += 1;",
}
"""Each with lanes of the mask that may have exited."""

LEAVERS = {
    "half": "if (t % 32 >= 16) return;",
    "one": "if (t % 32 == 7) return;",
    "whole_warp": "if (t / 32 == 1) return;",
    "by_block": "if (t % 32 >= 4 * blockIdx.x + 4) return;",
    "in_a_loop": "for (int k = 0; k < 4; ++k) if (t % 32 == 20 + k) return;",
    "nested": "if (t % 2) { if (t % 3) return; out[n + i] += 1; }",
    "late": "if (t % 32 < 8) out[n + i] += 1; else if (t % 32 > 20) { out[n + i] = 2; return; }",
}


def kinds(run: simulator.Run) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(h.kind, h.severity, h.lines) for h in run.hazards]


def after_exits(leave: str, collective: str, build: str, schedule: str | int) -> np.ndarray:
    source = f"""\
__global__ void k(int* out, int n) {{
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = t;
    {LEAVERS[leave]}
    if (t % 32 < 3) out[n + i] += 5;
    for (int k = 0; k < 2; ++k) {{ {COLLECTIVES[collective]} }}
    out[i] = v;
}}
""".replace("MASK", "0xffffffffu")
    out = np.zeros(2 * 3 * 80, np.int32)
    run = simulator.launch(compiled(source, "k", build), 3, 80, [out, 240], schedule=schedule)
    assert run.hazards == [], (leave, collective, build, schedule)
    return out


@pytest.mark.slow_cases("ballot-nested", "match-late", "match-nested", "syncwarp-half")
@pytest.mark.parametrize("leave", LEAVERS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_exited_lanes_are_not_waited_for(collective: str, leave: str) -> None:
    """A mask may name them; what the others get does not depend on schedule or build."""
    found = [
        after_exits(leave, collective, build, schedule).tolist()
        for build in BUILDS
        for schedule in ("lockstep", "reverse", 1)
    ]
    assert all(f == found[0] for f in found)
    t = np.arange(240) % 80
    model = [v for v in found[0][:240] if v]
    assert len(model) > 30
    if collective == "syncwarp":
        stays = np.array(found[0][:240]) != 0
        assert (np.array(found[0][:240])[stays] == t[stays] + 2).all()


@pytest.mark.parametrize("build", BUILDS)
def test_lanes_that_exit_after_a_store_of_the_others(build: str) -> None:
    """The defect's own program: an exit, a divergent store, then a shuffle."""
    source = (
        'extern "C" __global__ void t(int* out){ int t=threadIdx.x; int v=t; if(t>=16) return;\n'
        " if(t<8) out[t+32]=t; v=__shfl_down_sync(0xffffffffu,v,1,16); out[t]=v; }"
    )
    for schedule in SCHEDULES:
        out = np.zeros(64, np.int32)
        run = simulator.launch(compiled(source, "t", build), 1, 32, [out], schedule=schedule)
        assert run.hazards == []
        assert out[:16].tolist() == [*range(1, 16), 15]


# -- a lane that its own mask leaves out ------------------------------------------------


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("entry", "line"), [("k", 3), ("shuffle", 6)])
def test_the_defects_masks(entry: str, line: int, build: str) -> None:
    source = (DEFECTS / "check" / "syncwarp_mask.cu").read_text()
    for schedule in SCHEDULES:
        args = [np.zeros(32, np.int32)]
        run = simulator.launch(compiled(source, entry, build), 1, 32, args, schedule=schedule)
        assert kinds(run) == [("bad-mask", "error", (line,))], schedule
        (part,) = run.hazards[0].involved
        assert (part.role, part.thread) == ("left out", (16, 0, 0))


MASKS = """\
__global__ void k(int* out, unsigned mask, unsigned enter) {
    int t = threadIdx.x, lane = t % 32, v = t;
    if (enter >> lane & 1) {
        COLLECTIVE
    }
    __syncwarp();
    out[t] = v;
}
"""


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(COLLECTIVES)), st.integers(0, 2**32 - 1), st.integers(1, 2**32 - 1),
    st.booleans(), st.sampled_from(BUILDS), st.sampled_from(SCHEDULES), st.sampled_from([32, 50]),
)  # fmt: skip
def test_masks_that_leave_out_or_name_too_many(
    collective: str, mask: int, enter: int, right: bool, build: str, schedule: str | int,
    threads: int,
) -> None:  # fmt: skip
    """A lane that executes must be named; a lane that is named must come (or have exited).

    Where that is so, the lane that is read must take part.
    """
    source = MASKS.replace("COLLECTIVE", COLLECTIVES[collective].replace("MASK", "mask"))
    if right:
        mask = enter
    args = [np.zeros(threads, np.int32), np.uint32(mask), np.uint32(enter)]
    kernel = compiled(source, "k", build)
    run = simulator.launch(kernel, 1, threads, args, schedule=schedule)
    faults, read = set(), False
    for warp in range(0, threads, 32):
        there = (1 << min(32, threads - warp)) - 1
        comes = enter & there
        if comes & ~mask:
            faults.add("left out")
        # Those who do not come wait at the last __syncwarp(), with the whole warp's mask.
        meet = collective == "syncwarp" and mask == 2**32 - 1
        if comes & mask and mask & there & ~comes and not meet:
            faults.add("at")
        read |= collective == "shfl" and comes > 0 and not comes & 1
    undefined = {"read"} if read and not faults else set()
    assert {part.role for h in run.hazards for part in h.involved} == faults | undefined
    kind = "uninitialised" if undefined else "bad-mask"
    assert all((h.kind, h.severity) == (kind, "error") for h in run.hazards)


@pytest.mark.parametrize("build", BUILDS)
def test_a_mask_made_by_activemask_is_right(build: str) -> None:
    source = """\
__global__ void k(const int* in, int* out) {
    int t = threadIdx.x, v = in[t];
    if (v % 3 == 0) {
        unsigned m = __activemask();
        v = __shfl_sync(m, v, __ffs(m) - 1) + __popc(__ballot_sync(m, 1));
        __syncwarp(m);
    }
    out[t] = v;
}
"""
    for schedule in SCHEDULES:
        args = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
        run = simulator.launch(compiled(source, "k", build), 1, 64, args, schedule=schedule)
        assert run.hazards == []


@pytest.mark.parametrize("build", BUILDS)
def test_warp_barriers_at_two_places_meet_while_others_spin(build: str) -> None:
    """Nobody has to stand still first: another warp waits for what comes after them."""
    source = """\
__global__ void k(int* out, int* flag) {
    __shared__ int tile[32];
    int t = threadIdx.x;
    if (t < 32) {
        if (t % 2) { tile[t] = t; __syncwarp(); }
        else { __syncwarp(); out[t] = tile[t + 1]; }
        __syncwarp();
        if (t == 0) atomicExch(flag, 1);
    } else
        while (atomicAdd(flag, 0) == 0) {}
}
"""
    for schedule in SCHEDULES:
        out, flag = np.zeros(32, np.int32), np.zeros(1, np.int32)
        run = simulator.launch(compiled(source, "k", build), 1, 64, [out, flag], schedule=schedule)
        assert run.hazards == []
        assert out[::2].tolist() == list(range(1, 33, 2))
