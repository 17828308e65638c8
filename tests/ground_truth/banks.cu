#define K(T,NAME) \
extern "C" __global__ void ld_##NAME(const int* idx, T* out) { __shared__ T s[512]; int t = threadIdx.x; \
  for (int j = t; j < 512; j += 32) s[j] = out[j & 31]; __syncthreads(); int i = idx[t]; T v; if (i >= 0) { v = s[i]; out[t] = v; } } \
extern "C" __global__ void st_##NAME(const int* idx, T* out) { __shared__ T s[512]; int t = threadIdx.x; int i = idx[t]; T v = out[t]; \
  if (i >= 0) s[i] = v; __syncthreads(); if (i == 1000) out[t] = s[idx[0]]; }
K(float4, f4)
K(float2, f2)
K(float, f1)
K(short, s1)
