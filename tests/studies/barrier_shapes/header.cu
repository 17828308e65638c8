// launch: grid 2 block 64, i32[128]=arange i32[128]
#include "tile.cuh"
__global__ void header(const int* in, int* out) {
    __shared__ Ring ring;
    int i = blockIdx.x * 64 + threadIdx.x;
    int value = turned(ring, in[i], 33);
    out[i] = value + turned(ring, value, 31);
}
