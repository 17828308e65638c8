"""Tensor maps in structures, in tables and in module variables."""

import numpy as np

import simulator
from kernels import Kernel, TensorMap
from tests.simulator.memory.test_tensor_maps import box_of

INSIDE = r"""
struct alignas(64) Map { char bytes[128]; };
struct Two { float scale; Map map; };
struct Args { float* out; Two two; };
__constant__ Map kept;
__device__ void box(const void* map, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ unsigned long long full;
    unsigned to = __cvta_generic_to_shared(tile), bar = __cvta_generic_to_shared(&full), over = 0;
    asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {4, 1}], [%2];" :: "r"(to), "l"(map), "r"(bar) : "memory");
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(bar) : "memory");
    for (int i = 0; i < 32; ++i) out[i] = tile[i];
}
extern "C" __global__ void inside(const __grid_constant__ Args args) {
    box(&args.two.map, args.out);
}
extern "C" __global__ void table(const Map* maps, float* out) { box(maps + 1, out); }
extern "C" __global__ void constant(float* out) { box(&kept, out); }
"""


def test_maps_lie_in_structures_tables_and_variables() -> None:
    array = np.arange(48, dtype=np.float32).reshape(6, 8)
    map_ = TensorMap(array, (8, 4))
    for entry, given, options in (
        ("inside", lambda out: [(out, (1.5, map_))], {}),
        ("table", lambda out: [[TensorMap(array, (2, 4)), map_], out], {}),
        ("constant", lambda out: [out], {"symbols": {"kept": map_}}),
    ):
        out, kernel = np.zeros(32, np.float32), Kernel.from_cuda(INSIDE, entry)
        run = simulator.launch(kernel, 1, 1, given(out), **options)
        assert run.hazards == [], entry
        assert out.tolist() == box_of(map_, [1, 4]).reshape(-1).tolist(), entry
    plain = Kernel.from_ptx(Kernel.from_cuda(INSIDE, "inside").ptx, "inside")
    out = np.zeros(32, np.float32)
    simulator.launch(plain, 1, 1, [(out, (np.float32(1), map_))])
    assert out.any()
