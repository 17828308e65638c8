#include <cstdio>
__device__ __managed__ int counter = 0;
__global__ void k(float* x) { atomicAdd(&counter, 1); *x = 1; }
int main() { k<<<1,1>>>(0); printf("%d", counter); }
