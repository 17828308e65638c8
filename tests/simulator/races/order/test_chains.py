"""What one warp hands to a second, and that to a third, is ordered: by whichever ways."""

import itertools

import numpy as np
import pytest

import simulator
from kernels import Kernel

WAYS = ["mbarrier", "bar.arrive", "bar.sync", "shared flag", "flag", "mbarrier by one", "counter"]
SOURCE = r"""
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void phase(void* bar) {
    int over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(bar)) : "memory");
}

__device__ void arrive(void* bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at(bar)) : "memory");
}

struct Link { unsigned long long bar; int flag; };

__device__ void give(int how, Link& link, int i, int* far, int lane) {
    if (how == 0) arrive(&link.bar);
    if (how == 1) asm volatile("bar.arrive %0, 64;" :: "r"(i + 1) : "memory");
    if (how == 2) asm volatile("bar.sync %0, 64;" :: "r"(i + 1) : "memory");
    if (how > 2) __syncwarp();
    if (how == 3 && lane == 0)
        asm volatile("st.release.cta.shared.u32 [%0], 1;" :: "r"(at(&link.flag)) : "memory");
    if (how == 4 && lane == 0) { __threadfence(); atomicExch(far + i, 1); }
    if (how == 5 && lane == 7) for (int j = 0; j < 32; ++j) arrive(&link.bar);
    if (how == 6 && lane == 3) { __threadfence_block(); atomicAdd(&link.flag, 1); }
}

__device__ void take(int how, Link& link, int i, int* far, int lane) {
    if (how == 0) phase(&link.bar);
    if (how == 1 || how == 2) asm volatile("bar.sync %0, 64;" :: "r"(i + 1) : "memory");
    if (how == 3 && lane == 0)
        for (int v = 0; !v;)
            asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                         : "=r"(v) : "r"(at(&link.flag)) : "memory");
    if (how == 4 && lane == 31) { while (!atomicAdd(far + i, 0)); __threadfence(); }
    if (how == 5 && lane == 9) phase(&link.bar);
    if (how == 6 && lane == 5) { while (!atomicAdd(&link.flag, 0)); __threadfence_block(); }
    if (how > 2) __syncwarp();
}

__global__ void chain(int* out, int* far, int first, int second, int third, int reads) {
    __shared__ int box[32];
    __shared__ Link links[3];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, got = 0;
    far += 3 * blockIdx.x;
    if (threadIdx.x < 3) {
        links[threadIdx.x].flag = 0;
        asm volatile("mbarrier.init.shared.b64 [%0], 32;"
                     :: "r"(at(&links[threadIdx.x].bar)) : "memory");
    }
    if (reads && warp == 0) box[lane] = 1;
    __syncthreads();
    int ways[] = {first, second, third}, last = third < -1 ? 2 : 3;
    if (warp > last) return;
    if (warp == 0) { if (reads) got = box[lane ^ 3]; else box[lane] = lane * 3; }
    if (warp > 0) take(ways[warp - 1], links[warp - 1], warp - 1, far, lane);
    if (warp < last) give(ways[warp], links[warp], warp, far, lane);
    if (warp == last) { if (reads) box[lane] = 5; else got = box[lane ^ 1]; }
    out[blockIdx.x * blockDim.x + threadIdx.x] = got;
}

// Two write, in no order; who reads knows of one of them, the one that came first or last.
__global__ void two_write(int* out, int known) {
    __shared__ int box[32];
    __shared__ unsigned long long bar;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(at(&bar)) : "memory");
    __syncthreads();
    if (warp < 2) box[lane] = warp;
    if (warp == known) arrive(&bar);
    if (warp == 2) { phase(&bar); out[lane] = box[lane]; }
}

// Two arrive at one barrier, each of which has seen what a warp of its own wrote.
__global__ void two_arrive(int* out, int waits) {
    __shared__ int box[2][32];
    __shared__ unsigned long long bars[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pair = warp / 2;
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared.b64 [%0], 32;"
                     :: "r"(at(bars + threadIdx.x)) : "memory");
    __syncthreads();
    if (warp == 4) {
        asm volatile("bar.sync 1, 96;" ::: "memory");
        out[lane] = box[0][lane] + box[1][lane ^ 1];
    } else if (warp % 2 == 0) {
        box[pair][lane] = lane;
        arrive(bars + pair);
    } else {
        if (pair != waits) phase(bars + pair);
        asm volatile("bar.arrive 1, 96;" ::: "memory");
    }
}
"""
KERNEL = Kernel.from_cuda(SOURCE, "chain")
TWO_WRITE = Kernel.from_cuda(SOURCE, "two_write")
TWO_ARRIVE = Kernel.from_cuda(SOURCE, "two_arrive")
NO_THIRD, NOTHING = -2, -1


def found(links: tuple[int, int, int], reads: bool, schedule: str | int) -> set[str]:
    out, far = np.zeros(256, np.int32), np.zeros(6, np.int32)
    args = [out, far, *links, int(reads)]
    run = simulator.launch(KERNEL, 2, 128, args, schedule=schedule)
    return {hazard.kind for hazard in run.hazards}


SOME = {(0, 1), (5, 1), (0, 2), (1, 0), (1, 1), (2, 5), (3, 1), (4, 0), (6, 1), (0, 3), (5, 6)}


@pytest.mark.parametrize(
    "links",
    [
        pytest.param(
            (*two, NO_THIRD), id=", ".join(WAYS[way] for way in two),
            marks=[] if two in SOME else [pytest.mark.slow],
        )
        for two in itertools.product(range(len(WAYS)), repeat=2)
    ],
)  # fmt: skip
def test_what_is_handed_on_twice(links: tuple[int, int, int]) -> None:
    for reads, schedule in ((False, "lockstep"), (True, "reverse")):
        assert found(links, reads, schedule) == set()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(WAYS)), ids=WAYS)
def test_what_is_handed_on_three_times(first: int) -> None:
    for number, more in enumerate(itertools.product(range(len(WAYS)), repeat=2)):
        assert found((first, *more), bool(number % 2), "warps") == set()


@pytest.mark.slow_cases("mbarrier by one")
@pytest.mark.parametrize("way", range(len(WAYS)), ids=WAYS)
def test_where_one_link_is_missing(way: int) -> None:
    for links in ((way, NOTHING, NO_THIRD), (NOTHING, way, NO_THIRD)):
        assert found(links, False, "lockstep") == {"raw-race"}
        assert found(links, True, "warps") == {"war-race"}


@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 5])
def test_who_knows_of_one_of_two_writes_races_with_the_other(
    known: int, schedule: str | int
) -> None:
    run = simulator.launch(TWO_WRITE, 1, 96, [np.zeros(32, np.int32), known], schedule=schedule)
    assert {hazard.kind for hazard in run.hazards} == {"waw-race", "raw-race"}
    (raw,) = [hazard for hazard in run.hazards if hazard.kind == "raw-race"]
    assert raw.count == 32


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse"])
def test_two_bring_what_they_have_seen(schedule: str) -> None:
    """And who has not waited for its own brings nothing. (The read stands first in the text.)"""
    for idle, kinds in ((-1, set()), (0, {"war-race"}), (1, {"war-race"})):
        out = np.zeros(32, np.int32)
        run = simulator.launch(TWO_ARRIVE, 1, 160, [out, idle], schedule=schedule)
        assert {hazard.kind for hazard in run.hazards} == kinds
