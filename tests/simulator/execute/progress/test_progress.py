"""Schedules are fair: what can come to its end does, and only what cannot is endless."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import BUILDS, ONE_FIRST, SCHEDULES, compiled, drawn_later, entry, ints
from tests.support.paths import DEFECTS
from tests.support.waiting_programs import HEAD, Program


def stopped(run: simulator.Run) -> list[tuple[str, str, tuple[int, ...]]]:
    """What was said of threads that do not come to their end."""
    kinds = ("deadlock", "livelock", "barrier-divergence", "bad-mask")
    return [(h.kind, h.severity, h.lines) for h in run.hazards if h.kind in kinds]


# -- the defects ------------------------------------------------------------------------


@pytest.mark.slow_cases("...32-args1-last1")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize(
    ("file", "entry", "grid", "block", "args", "last"),
    [
        ("random/false_deadlock_seed.cu", "k", 2, 32, [1, 1, 1], [1]),
        ("random/false_deadlock_seed.cu", "spin", 6, 32, [1], [6]),
        ("order/spin_false_deadlock.cu", "kmain", 2, 1, [1], [1]),
    ],
)
def test_the_defects_end(
    file: str, entry: str, grid: int, block: int, args: list[int], last: list[int], build: str
) -> None:
    kernel = compiled((DEFECTS / file).read_text(), entry, build)
    for schedule in (*SCHEDULES, 2, 3):
        given = ints(*args)
        run = simulator.launch(kernel, grid, block, given, schedule=schedule)
        assert stopped(run) == [], schedule
        assert given[-1].tolist() == last, schedule


@pytest.mark.parametrize("build", ONE_FIRST)
def test_a_flag_that_is_set_late(build: str) -> None:
    kernel = compiled((DEFECTS / "random/false_deadlock_slow_setter.cu").read_text(), "k", build)
    for schedule in SCHEDULES:
        out = np.zeros(192, np.int32)
        run = simulator.launch(kernel, 1, 96, [out, 1000], schedule=schedule)
        assert run.hazards == [], schedule
        assert out[:96].tolist() == [t // 32 for t in range(96)]


# -- small programs of locks, flags and messages ------------------------------------------


@pytest.mark.slow_but("3")
@pytest.mark.parametrize("seed", [*range(6), *drawn_later(range(6, 20))])
def test_programs_that_wait_for_each_other_end(seed: int) -> None:
    program = Program(seed)
    for build in BUILDS:
        kernel = compiled(program.source, "k", build)
        for schedule in SCHEDULES:
            count, room = ints(1, 16)
            shape = program.blocks, program.threads
            run = simulator.launch(kernel, *shape, [count, room, 1], schedule=schedule)
            assert stopped(run) == [], (seed, build, schedule, program.source)
            assert count[0] == program.expected, (seed, build, schedule, program.source)


HANDED = """
__device__ __noinline__ int found(int* room) { return atomicAdd(room, 0); }
__device__ void hand(int* count, int* room, int next) {
    *(volatile int*)count += 1;
    __threadfence();
    *(volatile int*)room = next;
}
__global__ void k(int* count, int* room, int rounds) {
    int t = threadIdx.x + 64 * blockIdx.x;
    if (t == 0)
        for (int k = 0; k < rounds; ++k) {
            while (found(room) != 2 * k) {}
            hand(count, room, 2 * k + 1);
        }
    else if (t == 7)
        for (int k = 0; k < rounds; ++k) {
            while (*(volatile int*)room != 2 * k + 1) {}
            hand(count, room, 2 * k + 2);
        }
}
"""


@pytest.mark.parametrize("build", BUILDS)
def test_lanes_that_wait_for_each_other_in_a_function(build: str) -> None:
    """The number of steps is linear in the number of waits: patience does not double at each."""
    kernel = compiled(HANDED, "k", build)
    count, room = ints(1, 1)
    run = simulator.launch(kernel, 2, 64, [count, room, 5], step_limit=20_000, checks={"barriers"})
    assert stopped(run) == []
    assert count[0] == 10


# -- programs without an end ---------------------------------------------------------------

LIVELOCKS = {
    "nobody_sets": ("    if (t == 3)\n        while (atomicAdd(room, 0) == 0) {}\n", 2),
    "never_freed": ("    while (atomicCAS(room, 0, 1) != 0) {}\n", 1),
    "crosswise": (
        "    int* mine = room + w % 2; int* other = room + (w + 1) % 2;\n"
        "    if (t % 32 == 0) {\n"
        "        while (atomicAdd(mine, 0) == 0) {}\n"
        "        atomicExch(other, 1);\n"
        "    }\n",
        3,
    ),
    "volatile": ("    if (b)\n        while (*(volatile int*)room == 0) {}\n", 2),
    "with_a_warp_barrier": (
        "    int seen_too = 0;\n"
        "    while (!seen_too) {\n"
        "        seen_too = __any_sync(0xffffffffu, atomicAdd(room, 0));\n"
        "        __syncwarp();\n"
        "    }\n",
        3,
    ),
    "with_a_barrier": (
        "    while (!__syncthreads_or(t == 0 && atomicAdd(room, 0)))\n        ;\n", 1,
    ),
}  # fmt: skip


@pytest.mark.slow_cases("with_a_barrier", "with_a_warp_barrier")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("name", LIVELOCKS)
def test_what_no_schedule_can_end(name: str, build: str) -> None:
    body, line = LIVELOCKS[name]
    kernel = compiled(HEAD + body + "}\n", "k", build)
    found = []
    for schedule in SCHEDULES:
        args = [*ints(1, 16), 1]
        run = simulator.launch(kernel, 2, 64, args, schedule=schedule, step_limit=100_000)
        assert stopped(run) == [("livelock", "error", (HEAD.count("\n") + line,))], schedule
        found += [[str(h) for h in run.hazards if h.kind == "livelock"]]
    if name != "never_freed":  # who has the lock is the schedule's choice
        assert all(f == found[0] for f in found)


NAN = """
ld.param.u64 %d0, [out];
mov.f64 %fd1, 0d7FF8000000000000;
mov.u32 %r2, %tid.x;
LOOP:
add.f64 %fd1, %fd1, %fd1;
mov.u32 %r3, %r2;
atom.global.add.u32 %r1, [%d0], 0;
setp.eq.u32 %p, %r1, 0;
@%p bra LOOP;
st.global.f64 [%d0], %fd1;
"""


def test_a_nan_that_stays_is_no_progress() -> None:
    """Which is equal to nothing by its value."""
    run = simulator.launch(entry(NAN), 1, 32, [np.zeros(2), 1], step_limit=50_000)
    assert ["nothing changes any more" in str(hazard) for hazard in run.hazards] == [True]


SPINS = """\
    if (t < 32)
        while (!__any_sync(0xffffffffu, atomicAdd(room, 0))) {}
    __syncthreads();
"""


@pytest.mark.slow
@pytest.mark.parametrize("build", ONE_FIRST)
def test_an_endless_loop_is_found_while_others_wait(build: str) -> None:
    """Who is held at a barrier does nothing, and need not come back to where it was."""
    kernel = compiled(HEAD + SPINS + "}\n", "k", build)
    for schedule in SCHEDULES:
        args = [*ints(1, 16), 1]
        run = simulator.launch(kernel, 2, 64, args, schedule=schedule, step_limit=100_000)
        assert len(run.hazards) == 2
        assert "nothing changes any more" in str(run.hazards[0]), schedule


LONG = """(unsigned *out, unsigned n) {
    unsigned x = threadIdx.x, left = n + threadIdx.x % 3;
    while (left) {
        left -= 1 + (x >> 31 & x >> 30 & x & 1 & (left > 1));
        x = x * 1664525u + 1013904223u;
    }
    out[threadIdx.x] = x;
}"""


def test_what_only_computes_for_long_is_progress() -> None:
    """Its registers are all that changes."""
    kernel = compiled(LONG)
    out, expected = np.zeros(32, np.uint32), []
    run = simulator.launch(kernel, 1, 32, [out, 6000])
    for x in range(32):
        left = 6000 + x % 3
        while left > 0:
            left -= 1 + (x >> 31 & x >> 30 & x & 1 & (left > 1))
            x = (x * 1664525 + 1013904223) % 2**32
        expected.append(x)
    assert not run.hazards
    assert out.tolist() == expected


@pytest.mark.parametrize("build", ONE_FIRST)
def test_who_writes_what_is_there_changes_nothing(build: str) -> None:
    """Nor do those that are off, and would write something else to where they look."""
    source = (
        "__global__ void k(volatile int* a, int* flag) {\n"
        "    while (atomicAdd(flag, 0) == 0)\n"
        "        if (threadIdx.x < 4) a[threadIdx.x] = 5;\n"
        "}\n"
    )
    for schedule in ("lockstep", "warps"):
        run = simulator.launch(
            compiled(source, "k", build), 1, 8, ints(8, 1), schedule=schedule,
            step_limit=20_000, checks="barriers",
        )  # fmt: skip
        assert stopped(run) == [("livelock", "error", (2,))], schedule


UNDONE = """\
__global__ void k(int* a, int* out) {
    int t = threadIdx.x;
    if (t == 0)
        while (atomicAdd(a + 1, 0) == 0) { atomicExch(a, 1); atomicExch(a, 0); }
    else if (t == 32) {
        while (atomicAdd(a, 0) == 0) {}
        *out = 7;
        __threadfence();
        atomicExch(a + 1, 1);
    }
}
"""


UNDONE_AT_ONCE = """
extern "C" __global__ void k(int* room, int* out) {
    if (threadIdx.x < 2) while (atomicAdd(room + 1, 0) == 0) atomicExch(room, 1 - threadIdx.x);
    else if (threadIdx.x == 32) { while (atomicAdd(room, 0) == 0); atomicExch(room + 1, 1); }
}
"""


@pytest.mark.slow
def test_a_change_that_another_lane_undoes_may_be_seen_too() -> None:
    kernel = compiled(UNDONE_AT_ONCE, "k", "device")
    for schedule in SCHEDULES:
        run = simulator.launch(kernel, 1, 64, ints(2, 1), schedule=schedule, step_limit=4000)
        assert "livelock" not in [hazard.kind for hazard in run.hazards], schedule


@pytest.mark.slow
@pytest.mark.parametrize("build", ONE_FIRST)
def test_a_change_that_is_undone_may_be_seen_by_another_schedule(build: str) -> None:
    """One thread raises a flag and lowers it again until another has seen it.

    In the device build both stand in one basic block, which is run as one: given up.
    """
    for schedule in SCHEDULES:
        args = ints(2, 1)
        kernel, limit = compiled(UNDONE, "k", build), 200_000 if build == "source" else 4000
        run = simulator.launch(
            kernel, 1, 64, args, schedule=schedule, step_limit=limit, checks="barriers"
        )
        assert "livelock" not in [hazard.kind for hazard in run.hazards], schedule
        if build == "source":
            assert stopped(run) == [], schedule
            assert args[1][0] == 7


@pytest.mark.slow
def test_what_changes_for_ever_is_given_up_and_called_that() -> None:
    source = HEAD + "    while (atomicAdd(room + 1, 0) == 0) atomicAdd(room, 1);\n}\n"
    for schedule in SCHEDULES:
        args = [*ints(1, 16), 1]
        kernel = compiled(source, "k", "device")
        run = simulator.launch(kernel, 1, 32, args, schedule=schedule, step_limit=2000)
        (found,) = [h for h in run.hazards if h.kind in ("deadlock", "livelock")]
        assert found.kind == "deadlock"
        assert found.message.startswith("gave up after 2,000 steps")
        assert found.lines == (HEAD.count("\n") + 1,)


@pytest.mark.parametrize("build", ONE_FIRST)
def test_a_wait_with_a_clock_ends_by_the_clock(build: str) -> None:
    source = """__global__ void k(int* flag, int* out) {
        long long start = clock64();
        while (atomicAdd(flag, 0) == 0 && clock64() - start < 200000000) {}
        out[threadIdx.x] = 5;
    }"""
    out = np.zeros(32, np.int32)
    run = simulator.launch(compiled(source, "k", build), 1, 32, [*ints(1), out], checks="none")
    assert stopped(run) == []
    assert (out == 5).all()


def test_blocks_that_wait_for_later_ones_run_together() -> None:
    """More blocks than one batch takes, each of which waits for the next."""
    source = """__global__ void k(int* flag, int* out) {
        int b = blockIdx.x;
        if (threadIdx.x == 0) {
            if (b + 1 < gridDim.x) while (atomicAdd(flag + b + 1, 0) == 0) {}
            out[b] = b;
            atomicExch(flag + b, 1);
        }
    }"""
    flag, out = np.zeros(70, np.int32), np.full(70, -1, np.int32)
    kernel = compiled(source, "k", "device")
    run = simulator.launch(kernel, 70, 1024, [flag, out], checks="none")
    assert stopped(run) == []
    assert out.tolist() == list(range(70))


@pytest.mark.slow_cases("...1, PTX line")
@pytest.mark.parametrize(
    ("source", "block", "message"),
    [
        ("while (!*(volatile int*)flag);", 32, "threads loop for ever, kernel.cu:1, PTX line"),
        ("if (threadIdx.x < 32) asm volatile(\"bar.sync 1, 96;\");", 64, "wait at a barrier for"),
    ],
)  # fmt: skip
def test_what_never_ends_has_no_time(source: str, block: int, message: str) -> None:
    kernel = Kernel.from_cuda(f"__global__ void k(int* flag) {{ {source} }}", "k")
    with pytest.raises(simulator.LaunchError, match=f"k never ends, .*{message}"):
        simulator.predict(kernel, 200, block, [np.zeros(1, np.int32)])
