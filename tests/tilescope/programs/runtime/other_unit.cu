// The other one, with a race that is found at its line.
#include <cstdio>

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ int area() const override;
};
__device__ int Square::area() const { return side * side; }

__device__ int shared_value = 20;
__constant__ int factor = 2;
static __device__ int mine = 7;
static __device__ int local(int x) { return x * mine; }
__device__ int twice(int x) { return factor * x; }

__global__ void next(int *out) {
  if (threadIdx.x % 32 == 0) out[0] = local(2) + shared_value + threadIdx.x;  // two warps
}

void second(int *out) { next<<<1, 64>>>(out); }
