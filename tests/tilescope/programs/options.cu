// Launches of two kernels, for the options of exec; the second is racy, the third takes registers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

__constant__ float factor;

__global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}

__global__ void turn(float *x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void heavy(float *x) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; i++) a[i] = x[i * 1024 + threadIdx.x];
#pragma unroll
  for (int i = 0; i < 3 * 96; i++) a[i % 96] = a[i % 96] * a[(i + 7) % 96] + a[i * 3 % 96];
#pragma unroll
  for (int i = 0; i < 96; i++) x[i * 1024 + threadIdx.x] = a[i];
}

__global__ void spin(volatile int *go) { while (*go == 0) go[1]++; }

template <int threads>
void launch(float *x) {
  scale<<<1, threads>>>(x, threads);  // in a template
}

/* Threads of a launch, behind another launch. */
int warps(float *x) {
  scale<<<2, 96>>>(x, 32);  // inside
  return 64;
}

/* Milliseconds between two events, with so many launches and perhaps other work between them. */
void timed(const char *what, float *x, int launches, bool copy, cudaStream_t other = nullptr,
           bool racy = false) {
  cudaEvent_t begin, end;
  float ms;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaEventRecord(begin);
  for (int i = 0; i < launches; i++) scale<<<8, 128>>>(x, 1024);
  if (copy) cudaMemset(x, 0, 4);
  if (racy) turn<<<1, 64>>>(x);
  if (other) scale<<<8, 128, 0, other>>>(x, 1024);
  cudaEventRecord(end);
  cudaEventElapsedTime(&ms, begin, end);
  std::printf("%s %.9g\n", what, ms);
}

int main(int count, char **words) {
  float *x, f = 2;
  cudaMalloc(&x, 1024 * 96 * 4);
  cudaMemset(x, 0, 1024 * 96 * 4);
  cudaMemcpyToSymbol(factor, &f, 4);
  for (int i = 0; i < 3; i++) scale<<<8, 128>>>(x, 1024);
  for (int i = 1; i < count; i++) {
    if (!std::strcmp(words[i], "turn")) turn<<<1, 64>>>(x);
    if (!std::strcmp(words[i], "template")) launch<32>(x);
    if (!std::strcmp(words[i], "nested")) scale<<<3, warps(x)>>>(x, 64);  // outside
    if (!std::strcmp(words[i], "events")) {
      cudaStream_t other;
      cudaStreamCreate(&other);
      timed("one", x, 1, false);
      timed("three", x, 3, false);
      timed("none", x, 0, false);
      timed("copy", x, 1, true);
      timed("streams", x, 1, false, other);
      timed("race", x, 1, false, nullptr, true);
    }
    if (!std::strcmp(words[i], "heavy")) heavy<<<1, 1024>>>(x);
    if (!std::strcmp(words[i], "spin")) {
      std::puts("waits");
      std::fflush(stdout);
      spin<<<1, 1>>>(reinterpret_cast<int *>(x));
    }
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(x);
}
