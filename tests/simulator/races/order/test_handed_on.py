"""A flag without fences: the race on the data is named by who hands to whom, not by the lines."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define K(name) __global__ void name(const int* in, int* data, volatile int* flag, int* out)
#define WAIT(i) while (flag[i] == 0) ;
K(above) {
    if (blockIdx.x == 1) { WAIT(0) out[0] = data[0]; }
    else if (blockIdx.x == 0) { data[0] = in[0]; flag[0] = 1; }
}
K(below) {
    if (blockIdx.x == 0) { data[0] = in[0]; flag[0] = 1; }
    else if (blockIdx.x == 1) { WAIT(0) out[0] = data[0]; }
}
K(freed_above) {
    if (blockIdx.x == 1) { WAIT(0) data[0] = in[0]; }
    else if (blockIdx.x == 0) { out[0] = data[0]; flag[0] = 1; }
}
K(freed_below) {
    if (blockIdx.x == 0) { out[0] = data[0]; flag[0] = 1; }
    else if (blockIdx.x == 1) { WAIT(0) data[0] = in[0]; }
}
K(looked_at) {
    if (blockIdx.x == 0) { if (flag[0] >= 0) out[0] = data[0]; }
    else if (blockIdx.x == 1) { data[0] = in[0]; flag[0] = 1; }
}
K(chain) {
    int b = blockIdx.x, s = 0;
    if (b > 0) { WAIT(b - 1) s = data[b - 1]; }
    data[b] = s + in[b];
    flag[b] = 1;
}
K(chain_by_atomics) {
    int b = blockIdx.x, s = 0;
    if (b > 0) { while (atomicAdd((int*)flag + b - 1, 0) == 0) ; s = data[b - 1]; }
    data[b] = s + in[b];
    atomicExch((int*)flag + b, 1);
}
__device__ void leave(volatile int* tickets) { atomicAdd((int*)tickets + 1, 1); }
K(tickets) {
    for (int mine = atomicAdd((int*)flag, 1); flag[1] != mine;) ;
    data[0] += blockIdx.x;
    leave(flag);
}
K(both_sides) {
    int b = blockIdx.x, s = 0;
    if (b > 0) { WAIT(b - 1) s = data[b - 1]; }
    if (b < 3)
        s += data[b + 1];
    data[b] = s + in[b];
    flag[b] = 1;
}
K(in_turn) {
    for (int i = 1; i < 4; i++)
        if (blockIdx.x == 1) { while (flag[1] != i) ; out[i] = data[0]; flag[0] = i; }
        else if (blockIdx.x == 0) { while (flag[0] != i - 1) ; data[0] = in[i]; flag[1] = i; }
}
K(rows) {
    int t = threadIdx.x, s = 0;
    if (t > 2) { WAIT((t - 3) * 5 % 8) s = data[t - 3]; }
    data[t] = s + 1;
    flag[t * 5 % 8] = 1;
}
K(phases) {
    int b = blockIdx.x;
    for (int i = 0; i < 2; i++) {
        atomicAdd((int*)flag, 1);
        while (flag[0] < 4 * i + 4) ;
        __threadfence();
        int s = data[(b + 1) & 3];
        data[b] = s + in[b];
        __threadfence();
        atomicAdd((int*)flag + 1, 1);
        while (flag[1] < 4 * i + 4) ;
    }
}
"""


@pytest.mark.slow_cases("both_sides-kinds8", "chain-kinds5", "in_turn-kinds9", "tickets-kinds7")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "kinds"),
    [
        ("above", ["raw"]), ("below", ["raw"]), ("freed_above", ["war"]), ("freed_below", ["war"]),
        ("looked_at", ["raw"]), ("chain", ["raw"]), ("chain_by_atomics", ["raw"]),
        ("tickets", ["raw", "waw"]), ("both_sides", ["raw", "war"]),
        ("in_turn", ["raw"]),
    ],
)  # fmt: skip
def test_who_hands_on_is_named_first(entry: str, kinds: list[str], build: str) -> None:
    kernel = Kernel.from_cuda(SOURCE, entry, build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        run = simulator.launch(
            kernel, 4, 1, [np.zeros(4, np.int32) for _ in range(4)], schedule=schedule
        )
        found = [h for h in run.hazards if h.variable == "data"]
        assert [h.kind for h in found] == [f"{kind}-race" for kind in kinds], schedule


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
def test_lanes_and_warps_hand_on_too(build: str) -> None:
    """Each waits for another one of its block, whose lines come behind its own."""
    kernel = Kernel.from_cuda(SOURCE.replace("% 8", "% 64"), "rows", build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(64, np.int32) for _ in range(4)]
        run = simulator.launch(kernel, 1, 64, args, schedule=schedule)
        assert (args[1] == np.arange(64) // 3 + 1).all()
        found = [(h.kind, h.reach) for h in run.hazards if h.variable == "data"]
        assert sorted(found) == [("raw-race", "lane"), ("raw-race", "warp")], schedule
        assert all("__threadfence_block()" in h.notes[-1] for h in run.hazards if h.reach == "lane")


AT_MBARRIER = """
__device__ void wait(unsigned long long* bar, int parity) {
    int done = 0;
    unsigned at = __cvta_generic_to_shared(bar);
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
            " selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
}
__global__ void k(const int* in, int* out, int turns) {
    __shared__ unsigned long long bar;
    __shared__ int one[64];
    int t = threadIdx.x, sum = 0;
    unsigned at = __cvta_generic_to_shared(&bar);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at));
    __syncthreads();
    for (int i = 0; i < turns; ++i) {
        FIRST
        one[t] = in[i * 64 + t];
        SECOND
        sum += one[63 - t];
    }
    out[t] = sum;
}
"""
ARRIVE = """asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory"); """
WAIT = """for (int done = 0; !done;)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
                " selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(i & 1) : "memory");"""


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("missing", ["FIRST", "SECOND"])
def test_what_an_mbarrier_orders_in_a_loop_is_not_what_races(missing: str, build: str) -> None:
    """Where threads meet between the write and the read, the next turn's write comes too early."""
    meet = ARRIVE + {"FIRST": "wait(&bar, i & 1);", "SECOND": WAIT}[missing]
    source = AT_MBARRIER.replace(missing, "").replace("FIRST", meet).replace("SECOND", meet)
    kernel = Kernel.from_cuda(source, "k", build=build)
    kind = {"FIRST": "war-race", "SECOND": "raw-race"}[missing]
    for schedule in ("lockstep", "warps", "reverse"):
        args = [np.zeros(256, np.int32), np.zeros(64, np.int32), 4]
        run = simulator.launch(kernel, 1, 64, args, schedule=schedule)
        assert [(h.kind, h.reach) for h in run.hazards] == [(kind, "warp")], schedule


def test_a_barrier_of_ones_own_hands_nothing_from_block_to_block() -> None:
    """Between two of them no block waits for another: the text tells, whoever came first."""
    told = set()
    for schedule in ("lockstep", "warps", "reverse", 1, 2):
        kernel = Kernel.from_cuda(SOURCE, "phases")
        args = [np.zeros(4, np.int32) for _ in range(4)]
        run = simulator.launch(kernel, 4, 1, args, schedule=schedule)
        told |= {(h.kind, h.lines) for h in run.hazards if h.variable == "data"}
    assert len(told) == 1
