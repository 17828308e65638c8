#pragma once
struct Ring {
    int values[64];
};
__device__ inline int turned(Ring& ring, int value, int by) {
    ring.values[threadIdx.x] = value;
    __syncthreads();
    int other = ring.values[(threadIdx.x + by) % 64];
    __syncthreads();
    return other;
}
