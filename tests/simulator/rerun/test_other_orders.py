"""Order by chance: locks, tickets and sequence numbers that came out well in one run."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define ONE_THREAD if (threadIdx.x) return
#define UNTIL(what) while (!(what))
__device__ int word, count, ready;
template <int KIND> __global__ void readers(int* data, int* out) {  // taken by compare-and-swap
    enum { GOOD, LEAVES_EARLY, LEAVES_UNFENCED };
    ONE_THREAD;
    if (blockIdx.x == 1) {
        UNTIL(atomicCAS(&word, 0, -1) == 0);
        __threadfence();
        data[0] = 5;
        __threadfence();
        atomicExch(&word, 0);
        return;
    }
    for (int v;;) {
        v = atomicAdd(&word, 0);
        if (v >= 0 && atomicCAS(&word, v, v + 1) == v) break;
    }
    __threadfence();
    int found = KIND == LEAVES_EARLY ? 0 : data[0];
    if (KIND != LEAVES_UNFENCED) __threadfence();
    atomicSub(&word, 1);
    if (KIND == LEAVES_EARLY) found = data[0];
    out[blockIdx.x] = found;
}
template <int KIND> __global__ void counted_readers(int* data, int* out) {  // by a sum
    ONE_THREAD;
    if (blockIdx.x == 1) {
        UNTIL(atomicCAS(&word, 0, 1000) == 0);
        __threadfence();
        data[0] = 5;
        __threadfence();
        atomicSub(&word, 1000);
        return;
    }
    UNTIL(atomicAdd(&word, 1) < 1000) atomicSub(&word, 1);
    __threadfence();
    int found = KIND ? 0 : data[0];
    __threadfence();
    atomicSub(&word, 1);
    out[blockIdx.x] = KIND ? data[0] : found;
}
template <int KIND> __global__ void sequence(int* data, int* out) {
    enum { GOOD, ANY_EVEN, LOOKS_ONCE };
    ONE_THREAD;
    if (blockIdx.x == 1) {
        atomicAdd(&word, 1);
        __threadfence();
        data[0] = 7;
        __threadfence();
        atomicAdd(&word, 1);
        return;
    }
    int before, found;
    do {
        before = atomicAdd(&word, 0);
        __threadfence();
        found = KIND == GOOD && before != 2 ? 0 : data[0];
        __threadfence();
    } while (KIND == GOOD ? before != 2 : KIND == ANY_EVEN ? atomicAdd(&word, 0) & 1 : before & 1);
    out[blockIdx.x] = found;
}
template <int KIND> __global__ void tickets(int* data, int* out) {
    enum { LAST_OF_ALL, AWAITED, SECOND, UNAWAITED };
    ONE_THREAD;
    if (KIND == LAST_OF_ALL || KIND == SECOND) { data[blockIdx.x] = 1; __threadfence(); }
    int ticket = atomicAdd(&count, 1);
    __threadfence();
    if (KIND == LAST_OF_ALL && ticket == gridDim.x - 1)
        for (int i = 0; i < gridDim.x; ++i) out[0] += data[i];
    if (KIND == SECOND && ticket == 1) out[0] = data[0];
    if (KIND == AWAITED || KIND == UNAWAITED) {
        if (ticket == 0) { data[0] = 5; __threadfence(); atomicExch(&ready, 1); }
        if (ticket == 1 && KIND == AWAITED) { UNTIL(atomicAdd(&ready, 0)); __threadfence(); }
        if (ticket == 1) out[0] = data[0];
    }
}
template <int KIND> __global__ void in_line(int* data, int* out) {  // a ticket lock
    ONE_THREAD;
    int ticket = atomicAdd(&count, 1);
    UNTIL(atomicAdd(&word, 0) == ticket);
    __threadfence();
    data[0] = data[0] + 1;
    int found = KIND ? 0 : data[0];
    __threadfence();
    atomicAdd(&word, 1);
    out[blockIdx.x] = KIND ? data[0] : found;
}
template <int KIND> __global__ void drawn_work(int* data, int* out) {
    ONE_THREAD;
    for (int i; (i = atomicAdd(&count, 1)) < 5;) {
        __threadfence();
        if (KIND == 0 && i > 0) { UNTIL(atomicAdd(&out[i - 1], 0)); __threadfence(); }
        data[i] = (i > 0 ? data[i - 1] : 0) + 1;
        __threadfence();
        atomicExch(&out[i], 1);
    }
}
template <int KIND> __global__ void in_a_block(int* data, int* out) {  // readers of shared memory
    __shared__ int lock, value;
    if (threadIdx.x == 0) lock = value = 0;
    __syncthreads();
    if (threadIdx.x % 32) return;
    if (threadIdx.x == 32) {
        UNTIL(atomicCAS(&lock, 0, -1) == 0);
        __threadfence_block();
        value = 3;
        __threadfence_block();
        atomicExch(&lock, 0);
        return;
    }
    for (int v;;) {
        v = atomicAdd(&lock, 0);
        if (v >= 0 && atomicCAS(&lock, v, v + 1) == v) break;
    }
    __threadfence_block();
    int found = KIND ? 0 : value;
    __threadfence_block();
    atomicSub(&lock, 1);
    out[blockIdx.x * 3 + threadIdx.x / 32] = KIND ? value : found;
}
"""
RIGHT = ("readers<0>", "counted_readers<0>", "sequence<0>", "tickets<0>", "tickets<1>",
         "in_line<0>", "drawn_work<0>", "in_a_block<0>")  # fmt: skip
BY_CHANCE = (
    "readers<1>", "readers<2>", "counted_readers<1>", "sequence<1>", "sequence<2>", "tickets<2>",
    "tickets<3>", "in_line<1>", "drawn_work<1>", "in_a_block<1>",
)  # fmt: skip


def races(entry: str, build: str, schedule: str | int) -> set[str]:
    """The severities of races on what the lock, say, is to keep."""
    kernel = Kernel.from_cuda(SOURCE, entry, build=build)
    args = [np.zeros(8, np.int32), np.zeros(9, np.int32)]
    run = simulator.launch(kernel, 3, 96, args, schedule=schedule)
    return {h.severity for h in run.hazards}


@pytest.mark.parametrize("entry", RIGHT)
def test_order_that_is_forced(entry: str) -> None:
    for build, schedule in (("device", "lockstep"), ("source", "reverse"), ("device", 1)):
        assert races(entry, build, schedule) == set(), (build, schedule)


@pytest.mark.parametrize("entry", BY_CHANCE)
def test_order_by_chance_is_reported_under_every_schedule(entry: str) -> None:
    for build, schedule in (("device", "lockstep"), ("source", "reverse"), ("device", 1)):
        assert races(entry, build, schedule) == {"error"}, (build, schedule)


def test_a_seed_varies_the_order_of_blocks() -> None:
    kernel = Kernel.from_cuda(
        "__global__ void draw(int* count, int* out) { out[blockIdx.x] = atomicAdd(count, 1); }",
        "draw",
    )

    def drawn(schedule: str | int) -> list[int]:
        args = [np.zeros(1, np.int32), np.zeros(8, np.int32)]
        simulator.launch(kernel, 8, 1, args, schedule=schedule)
        return [int(ticket) for ticket in args[1]]

    assert drawn("lockstep") == list(range(8))
    assert all(sorted(drawn(seed)) == list(range(8)) for seed in range(4))
    assert len({tuple(drawn(seed)) for seed in range(4)}) > 1
    assert drawn(3) == drawn(3)


@pytest.mark.parametrize(
    ("blocks", "line", "reason"),
    [
        (2, "", ""),
        (2, "__pipeline_memcpy_async(here, in, 4); __pipeline_commit();", "asynchronous copies"),
        (40_000, "", "too long"),
    ],
)
def test_a_run_says_why_no_other_order_was_tried(blocks: int, line: str, reason: str) -> None:
    text = f"""
    #include <cuda_pipeline.h>
    __global__ void last(int* count, int* in, int* out) {{
        __shared__ int here[1];
        {line}
        if (atomicAdd(count, 1) == gridDim.x - 1) out[0] = 1;
    }}"""
    args = [np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)]
    run = simulator.launch(Kernel.from_cuda(text, "last"), blocks, 1, args)
    assert reason in run.one_order
    assert bool(reason) == bool(run.one_order)
    assert run.to_dict()["one_order"] == (run.one_order or None)
    plain = Kernel.from_cuda("__global__ void plain(int* out) { out[threadIdx.x] = 1; }", "plain")
    assert simulator.launch(plain, 1, 8, [args[0].repeat(8)]).one_order == ""
