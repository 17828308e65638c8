#include <cuda_runtime.h>
#include "device_launch_parameters.h"
#include <stdio.h>
cudaError_t addWithCuda(int *c, const int *a, const int *b, unsigned int size);
__global__ void k(int *c, const int *a, const int *b)
{
    int i = threadIdx.x;
    c[i] = a[i] + b[i];
}
int main()
{
    const int arraySize = 5;
    const int a[arraySize] = { 1, 2, 3, 4, 5 };
    cudaError_t cudaStatus = addWithCuda(0, a, a, arraySize);
    if (cudaStatus != cudaSuccess) { fprintf(stderr, "failed!"); return 1; }
    return 0;
}
cudaError_t addWithCuda(int *c, const int *a, const int *b, unsigned int size)
{
    int *dev_a = 0;
    cudaError_t cudaStatus;
    cudaStatus = cudaSetDevice(0);
    if (cudaStatus != cudaSuccess) { goto Error; }
    k<<<1, size>>>(dev_a, dev_a, dev_a);
Error:
    cudaFree(dev_a);
    return cudaStatus;
}
