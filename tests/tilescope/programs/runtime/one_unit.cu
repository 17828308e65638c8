// One of two files of relocatable device code: symbols of the other, and names of its own.
#include <cstdio>

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int n) : side(n) {}
  __device__ int area() const override;
};

extern __device__ int shared_value;
extern __constant__ int factor;
extern __device__ int twice(int);
static __device__ int mine = 5;
static __device__ int local(int x) { return x + mine; }

__global__ void first(int *out) {
  Square square(3);
  const Shape *shape = &square;
  *out = twice(shared_value) + local(factor) + shape->area();
  printf("first %d\n", *out);
}

void second(int *out);

int main() {
  int *out, result, four = 4;
  cudaMalloc(&out, 4);
  cudaMemcpyToSymbol(factor, &four, 4);
  first<<<1, 1>>>(out);
  cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost);
  std::printf("%d\n", result);
  second(out);
  cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost);
  std::printf("%d\n", result);
  cudaFree(out);
}
