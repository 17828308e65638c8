"""What arrays hold steers a kernel, or not: whichever way it gets from them to a branch."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from tests.support.hazard_texts import without_values

BUILDS = ("device", "source")
TEST = "if (x > 3) out[t] = 1;"
WAYS = {
    "a register": "int x = in[t];",
    "shared memory": "s[t] = in[t]; __syncthreads(); int x = s[t ^ 1];",
    "half of a wide store": "wide[3] = in[0]; __syncthreads(); int x = ((int*)wide)[6];",
    "cp.async": """
        __pipeline_memcpy_async(&s[t], &in[t], 4); __pipeline_commit(); __pipeline_wait_prior(0);
        __syncthreads();
        int x = s[t ^ 1];""",
    "an atomic that returns nothing": """
        if (t == 0) s[5] = 0;
        __syncthreads();
        atomicMax(&s[5], in[t]);
        __syncthreads();
        int x = s[5];""",
    "what an atomic returns": "int x = atomicAdd(&out[60], 1);",
    "a function": "int x = plain(in + t);",
    "a struct that a function returns": "Row row = returned(in + t / 2); int x = row.v[t % 5];",
    "a struct that a function takes": """
        Row row;
        for (int i = 0; i < 5; i++) row.v[i] = in[t / 2];
        int x = taken(row);""",
    "a function's pointer": "int (*f)(const int*) = in == out ? other : plain; int x = f(in);",
    "local memory": """
        int v[5];
        for (int i = 0; i < 5; i++) v[i] = in[i];
        int x = v[t % 5];""",
    "a copy in bulk": "BULK int x = s[t ^ 1];",
    "what a copy in bulk adds": "BULK ADD int x = s[33];",
    "a shuffle": "int x = __shfl_xor_sync(~0u, in[t], 1);",
    "a constant or what is loaded": "const int* p = n > 70 ? fixed : in; int x = p[t % 2];",
    "a vote": "int x = __popc(__ballot_sync(~0u, in[t] > 3));",
    "a barrier's count": "int x = __syncthreads_count(in[t] > 3);",
    "a warp's sum": "int x = __reduce_add_sync(~0u, in[t]);",
    # Not to a branch, but to what is found: its verdict is another with other contents.
    "writes that are equal": "int x = t; s[0] = in[0]; __syncthreads(); out[t] = s[0];",
    "the lane of a shuffle": "int x = t; if (t < 16) out[t] = __shfl_sync(0xffff, t, in[t] & 15);",
    "a shuffle of nobody": "int x = t; if (t < 9) out[t] = __shfl_sync(511, t, 20) & in[0];",
    "the lanes of a vote": "int x = t; out[t] = __popc(__ballot_sync(in[0] - 1, t > 3));",
    "what hides that nothing wrote it": """
        if (t < 32) s[t] = t;
        __syncthreads();
        int x = t;
        out[t] = s[t] & (in[t] >> 8);""",
    "how much cp.async copies": """
        unsigned size = in[5] & 4;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
            :: "r"((unsigned)__cvta_generic_to_shared(&s[t])), "l"(in + t), "r"(size));
        __pipeline_commit(); __pipeline_wait_prior(0);
        int x = t;
        out[t] = s[t];""",
    "how much is copied in bulk": "SIZED int x = t; out[t] = s[t ^ 1];",
    "how many arrive": "COUNTED int x = t; out[t] = s[t ^ 1];",
    "an atomic that changes something, or nothing": """
        if (t == 0) s[0] = 0;
        __syncthreads();
        int x = t;
        if (t < 32) out[t] = s[0];
        else atomicAdd(&s[0], in[t]);""",
    "where what an absent lane has goes": """
        int x = t, k = t;
        if (t < 9) k = __shfl_down_sync(511, t, 1);
        if (t < 32) s[t] = 0;
        __syncwarp();
        if (t < 9) atomicMax(&s[k & 31], in[t]);""",
    "what hides an absent lane's": """
        int x = t;
        if (t < 9) out[t] = max(__shfl_down_sync(511, t, 1), in[t]);""",
    "a vote beside uninitialised memory": """
        if (t < 32) s[t] = t;
        __syncthreads();
        int x = t;
        out[t] = __any_sync(~0u, (t < 40 ? s[t] : in[t]) > 3);""",
    "a comparison with uninitialised memory": """
        if (t < 32) s[t] = t;
        __syncthreads();
        int x = t;
        out[t] = s[t] < in[t];""",
    "a sum of floats with uninitialised memory": """
        if (t < 32) s[t] = t;
        __syncthreads();
        int x = t;
        out[t] = __float_as_int(__int_as_float(s[t]) + __int_as_float(in[t]));""",
    "which threads meet": """
        asm volatile("bar.sync 1, %0;" :: "r"(64 + (in[0] & 1024)));
        int x = t;""",
    "how much is allocated": """
        int* p = (int*)malloc(64 + in[0]);
        p[1] = n;
        int x = t;
        out[t] = p[1];
        free(p);""",
}
NOWHERE = {
    "a thread's number": "int x = t; out[t] = in[t];",
    "a sum of what is loaded": "int x = n; for (int i = 0; i < n; i++) out[t] += in[i];",
    "equal writes of what is known": "int x = t; s[0] = n; __syncthreads(); out[t] = s[0] + in[t];",
    "uninitialised memory that is not used": """
        if (t < 32) s[t] = in[t];
        __syncthreads();
        int x = s[t] & (t < 32 ? ~0 : 0);
        out[t] = x;
        x = t;""",
    "another variable": """
        s[t] = in[t];
        if (t < 8) wide[t] = t;
        __syncthreads();
        int x = (int)wide[t % 8];
        out[t] = s[t ^ 1];""",
    "a cp.async that only data passes": """
        __pipeline_memcpy_async(&s[t], &in[t], 4); __pipeline_commit(); __pipeline_wait_prior(0);
        __syncthreads();
        int x = t;
        out[t] = s[t ^ 1];""",
    "a function": "int x = n; out[t] = plain(in + t);",
    "a sum with uninitialised memory": """
        if (t < 32) s[t] = t;
        __syncthreads();
        int x = t;
        out[t] = s[t] + in[t];""",
    "what a barrier counts": "int x = n; out[t] = __syncthreads_count(in[t] > 3);",
    "an atomic that changes something in any case": """
        if (t == 0) s[0] = 0;
        __syncthreads();
        int x = t;
        if (t < 32) out[t] = s[0] + in[t];
        else atomicAdd(&s[0], 1);""",
    "a constant": "int x = fixed[t % 2]; out[t] = in[t];",
}
ASYNCHRONOUS = "a copy in bulk that is waited for", "BULK int x = t; out[t] = s[t ^ 1];"
BULK = """
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, in, 256, &bar);
        ptx::mbarrier_arrive_expect_tx(
            ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 256);
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
"""
ADD = """
    asm volatile("fence.proxy.async;");
    __syncthreads();
    if (t == 0) {
        ptx::mbarrier_arrive_expect_tx(
            ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 128);
        ptx::cp_reduce_async_bulk(
            ptx::space_cluster, ptx::space_shared, ptx::op_add, s + 32, s, 128, &bar);
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 1)) {}
"""
COPIES = {
    "SIZED": BULK.replace("256", "256 + (in[5] & 16)"),
    "COUNTED": BULK.replace("&bar, 1)", "&bar, in[1])"),
    "BULK": BULK,
    "ADD": ADD,
}
HEADERS = {
    "__pipeline": "#include <cuda_pipeline.h>\n",
    "ptx::": "#include <cuda/ptx>\nnamespace ptx = cuda::ptx;\n",
}
KERNEL = """
__constant__ int fixed[2] = {1, 9};
struct Row { int v[5]; };
__device__ __noinline__ int plain(const int* p) { return *p; }
__device__ __noinline__ int other(const int* p) { return 7; }
__device__ __noinline__ Row returned(const int* p) {
    Row row;
    for (int i = 0; i < 5; i++) row.v[i] = p[i % 2];
    return row;
}
__device__ __noinline__ int taken(Row row) { return row.v[threadIdx.x % 5]; }
__global__ void steer(const int* in, int* out, int n) {
    __shared__ alignas(16) int s[64];
    __shared__ long long wide[8];
    __shared__ unsigned long long bar;
    int t = threadIdx.x;
    WAY
    TEST
}
"""


def steered(way: str, build: str) -> bool:
    for name, text in COPIES.items():
        way = way.replace(name, text)
    source = KERNEL.replace("WAY", way).replace("TEST", TEST)
    source = "".join(text for word, text in HEADERS.items() if word in way) + source
    kernel = Kernel.from_cuda(source, "steer", build=build, arch="sm_90")
    args = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32), 8]
    result = simulator.launch(kernel, 1, 64, args)
    return result.data_dependence is not None


@pytest.mark.slow_cases(
    "a copy in bulk", "cp.async", "how many arrive", "how much is copied in bulk",
    "what a copy in bulk adds",
)  # fmt: skip
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_loaded_is_found_behind_a_branch(way: str, build: str) -> None:
    assert steered(WAYS[way], build)


@pytest.mark.slow_cases("a cp.async that...")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("way", NOWHERE)
def test_what_does_not_get_to_a_branch_does_not_steer(way: str, build: str) -> None:
    assert not steered(NOWHERE[way], build)


def test_who_waits_for_a_copy_is_steered_by_time_alone() -> None:
    assert not steered(ASYNCHRONOUS[1], "device")


def other(args: list[Any]) -> list[Any]:
    """Arguments with other contents of the arrays: any bits."""
    rng, found = np.random.default_rng(5), list[Any]()
    for arg in args:
        if isinstance(arg, np.ndarray):
            written = arg.flags.writeable
            arg = np.frombuffer(rng.bytes(arg.nbytes), arg.dtype).reshape(arg.shape).copy()
            arg.setflags(write=written)
        found.append(arg)
    return found


def holds(name: str) -> bool:
    """Whether a launch's verdict is for every content; then it is another's, too."""
    entry = library.get(name)
    launch = entry.launch(tuple(min(n, 64) for n in entry.default_size))
    shape = entry.kernel(build="device"), launch.grid, launch.block
    args = other(launch.args)  # before the first launch writes its results
    first = simulator.launch(*shape, launch.args, launch.shared_bytes)
    if first.data_dependence is None:
        second = simulator.launch(*shape, args, launch.shared_bytes)
        assert second.counters == first.counters, name
        assert without_values(second.hazards) == without_values(first.hazards), name
    return first.data_dependence is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_what_holds_for_every_content_holds_for_another(part: int) -> None:
    names = library.names()[part::4]
    assert sum(map(holds, names)) > len(names) // 2
