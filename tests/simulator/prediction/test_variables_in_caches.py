"""Caches and predictions do not ask how an array came to be: an argument, or the module's own."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.caches.keys import packed, unpacked
from simulator.memory.storage.layout import MODULE_VARIABLES, array_address

SOURCE = """
__device__ float own_table[64] = {1, 2, 3};
__device__ unsigned own_total[64];
extern "C" __global__ void read_own(const int* a, float* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (a[i] % 300 >= 150) o[i] = own_table[i & 63];
}
extern "C" __global__ void read(const int* a, float* o, const float* table) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (a[i] % 300 >= 150) o[i] = table[i & 63];
}
extern "C" __global__ void add_own(const int* a, float*) {
    atomicAdd(&own_total[a[blockIdx.x * blockDim.x + threadIdx.x] & 63], 1u);
}
extern "C" __global__ void add(const int* a, float*, unsigned* total) {
    atomicAdd(&total[a[blockIdx.x * blockDim.x + threadIdx.x] & 63], 1u);
}
extern "C" __global__ void slow_sine(const int* a, float* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    o[i] = a[i] % 3 ? sinf(a[i] * 1e6f) : 0;
}
"""


@pytest.mark.slow_cases("add-uint32")
@pytest.mark.parametrize(("what", "dtype"), [("read", np.float32), ("add", np.uint32)])
def test_a_variable_is_as_an_argument(what: str, dtype: type) -> None:
    inputs = np.arange(64 * 256, dtype=np.int32) * 7
    args = [inputs, np.zeros(64 * 256, np.float32)]
    more = [*args, np.zeros(64, dtype)]
    own = simulator.launch(Kernel.from_cuda(SOURCE, f"{what}_own"), 64, 256, args, gpu="h200")
    given = simulator.launch(Kernel.from_cuda(SOURCE, what), 64, 256, more, gpu="h200")
    for counter in ("global_load", "global_store", "global_atomic", "l1", "l2", "dram"):
        assert getattr(own.counters, counter) == getattr(given.counters, counter)
    ours = simulator.predict(Kernel.from_cuda(SOURCE, f"{what}_own"), 64, 256, args, gpu="h200")
    theirs = simulator.predict(Kernel.from_cuda(SOURCE, what), 64, 256, more, gpu="h200")
    assert ours.time_ms == theirs.time_ms


def test_a_table_of_the_library_is_read_by_some_lanes() -> None:
    args = [np.arange(64 * 256, dtype=np.int32), np.zeros(64 * 256, np.float32)]
    run = simulator.launch(Kernel.from_cuda(SOURCE, "slow_sine"), 64, 256, args, gpu="h200")
    assert run.counters.dram is not None
    assert run.counters.dram.read_bytes >= 64 * 256 * 4


def test_what_is_packed_is_unpacked() -> None:
    numbers = [0, 1, 2_046, 2_047, 5_000, MODULE_VARIABLES, 16_000]
    offsets = [0, 31, 32, 127, (1 << 37) - 1]
    addresses = [array_address(number) + offset for number in numbers for offset in offsets]
    sectors = np.array(addresses, np.int64) >> 5
    for who in (0, 1, (1 << 17) - 1):
        keys = packed(np.full(len(sectors), who, np.int64), sectors)
        assert (keys >= 0).all()
        owners, same = unpacked(keys)
        assert (owners == who).all()
        assert (same == sectors).all()
        lines = keys >> 2  # neighbours stay neighbours
        assert len(np.unique(lines)) == len(np.unique(sectors >> 2))
