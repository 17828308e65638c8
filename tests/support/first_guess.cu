// What a compare-and-swap expects, read before without order; and what only looks like it.
__device__ float add(float* a, float x) {
  int* p = (int*)a; int old = *p, seen;
  do { seen = old; old = atomicCAS(p, seen, __float_as_int(x + __int_as_float(seen))); }
  while (seen != old); return __int_as_float(old); }
extern "C" __global__ void sum(float* a) { add(a, 1.0f); }
extern "C" __global__ void most(int* a) {
  int x = threadIdx.x, old = *a;
  while (old < x) { int seen = old; old = atomicCAS(a, seen, x); if (old == seen) break; } }
extern "C" __global__ void shared_sum(float* o) { __shared__ float s;
  if (threadIdx.x == 0) s = 0; __syncthreads();
  add(&s, 1.0f);
  __syncthreads(); if (threadIdx.x == 0) *o = s; }
extern "C" __global__ void first(int* a) {
  if (*a == 0) atomicCAS(a, 0, 1 + threadIdx.x); }
extern "C" __global__ void elsewhere(int* a, int* b) {
  int seen = *a;
  atomicCAS(b, seen, 1); atomicAdd(a, 1); }
