// One of two files with variables of their own.
#include <cstdio>

__constant__ int weights[3];
__device__ int sum;

void second(int **address);
int second_value();

__global__ void add() { if (threadIdx.x == 1) sum += weights[1]; }
__global__ void store(int *other) { *other = 70 + weights[2]; }

int main() {
  int mine[3] = {1, 2, 3}, total = 0, *theirs;
  cudaMemcpyToSymbol(weights, mine, sizeof mine);
  second(&theirs);  // fills its own constants, after these
  add<<<1, 3>>>();
  cudaMemcpyFromSymbol(&total, sum, 4);
  store<<<1, 1>>>(theirs);
  std::printf("%d %d\n", total, second_value());
}
