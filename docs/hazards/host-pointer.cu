// tilescope exec host-pointer.cu
#include <cstdlib>

__global__ void fill(float *a) { a[threadIdx.x] = 1; }

int main() {
    float *a = (float *)malloc(32 * sizeof(float)); // right: cudaMalloc(&a, ...), cudaMallocManaged
    fill<<<1, 32>>>(a);
    cudaDeviceSynchronize();
    free(a);
}
