#pragma once
#include <stdio.h>
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
   if (code != cudaSuccess) 
   {
      fprintf(stderr,"GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
      if (abort) exit(code);
   }
}
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x+b.x, a.y+b.y, a.z+b.z, a.w+b.w); }
std::ostream &operator<<(std::ostream &o, float4 f) { return o << f.x; }
__global__ void k(float4* x) { x[0] = x[0] + x[1]; printf("hi %d\n", threadIdx.x); }
int main() { gpuErrchk( cudaPeekAtLastError() ); k<<<1,1>>>(0); }
