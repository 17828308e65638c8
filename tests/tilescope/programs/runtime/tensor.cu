// A tensor map that the driver's function makes, found through the runtime.
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

constexpr int WIDTH = 16, HEIGHT = 4;

__global__ void corner(const __grid_constant__ CUtensorMap map, float *out) {
  __shared__ alignas(128) float tile[HEIGHT][WIDTH];
  __shared__ alignas(8) uint64_t barrier;
  uint32_t where = __cvta_generic_to_shared(&barrier), into = __cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(where));
    asm volatile("fence.proxy.async;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(where), "n"(sizeof tile));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(into), "l"(&map), "r"(24), "r"(6), "r"(where) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
               ::"r"(where) : "memory");
  for (int y = 0; y < HEIGHT; ++y) out[y * WIDTH + threadIdx.x] = tile[y][threadIdx.x];
}

int main() {
  float host[8 * 32], back[HEIGHT * WIDTH], *image, *out;
  for (int i = 0; i < 8 * 32; ++i) host[i] = i;
  cudaMalloc(&image, sizeof host);
  cudaMalloc(&out, sizeof back);
  cudaMemcpy(image, host, sizeof host, cudaMemcpyHostToDevice);
  void *found = nullptr;
  cudaDriverEntryPointQueryResult status;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
#ifdef LINKED
  auto encode = cuTensorMapEncodeTiled;
#else
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
#endif
  CUtensorMap map;
  cuuint64_t extents[] = {32, 8}, strides[] = {128};
  cuuint32_t box[] = {WIDTH, HEIGHT}, steps[] = {1, 1};
  std::printf("%d %d\n", status, encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, image, extents, strides, box, steps,
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  corner<<<1, WIDTH>>>(map, out);
  cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  std::printf("%g %g %g %g\n", back[0], back[7], back[8], back[WIDTH + 1]);
  strides[0] = 100;
  std::printf("%d\n", encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, image, extents, strides, box, steps,
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  cudaFree(image);
  cudaFree(out);
}
