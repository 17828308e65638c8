// tilescope exec host-unset.cu
#include <cstdio>

__global__ void fill(float *a) { a[threadIdx.x] = 1; }

int main() {
    float host[64], *a;
    cudaMalloc(&a, 64 * sizeof(float));
    fill<<<1, 32>>>(a); // right: fill<<<1, 64>>>(a)
    cudaMemcpy(host, a, sizeof(host), cudaMemcpyDeviceToHost);
    printf("%g\n", host[0]);
    cudaFree(a);
}
