#include <mma.h>
#include <cuda_fp16.h>
#include <cuda/barrier>
using namespace nvcuda;
__global__ void k(half* a, float* c) { c[threadIdx.x] = __half2float(a[threadIdx.x]); }
int main() { half* a; k<<<1,32>>>(a, 0); }
