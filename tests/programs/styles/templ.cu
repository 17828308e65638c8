#include <cstdlib>
template <typename T, int BLOCK> __global__ void k(T* x) { __shared__ T s[BLOCK]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[BLOCK - 1 - threadIdx.x]; }
template <typename T> void test(int n) { T* d; cudaMalloc(&d, n * sizeof(T)); switch (n) { case 32: k<T, 32><<<1, 32>>>(d); break; default: exit(1); } }
int main(int argc, char** argv) { test<float>(32); test<double>(atoi(argv[1])); }
