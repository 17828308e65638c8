// Calls of the runtime, as often as asked: benchmarks/shim.py runs it.
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void tiny(float *x) { x[threadIdx.x] += 1.0f; }

int main(int, char **words) {
  const size_t bytes = 64 << 20;
  std::vector<char> host(bytes, 1);
  char *device;
  float *small;
  int number;
  if (cudaMalloc(&device, bytes) || cudaMalloc(&small, 128)) return 1;
  cudaMemset(small, 0, 128);
  cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice);
  for (int i = atoi(words[2]); i--;) {
    if (!strcmp(words[1], "call")) cudaGetDevice(&number);
    if (!strcmp(words[1], "launch")) tiny<<<1, 32>>>(small);
    if (!strcmp(words[1], "to")) cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice);
    if (!strcmp(words[1], "from")) cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost);
  }
  return cudaDeviceSynchronize();
}
