// One warp: (const int* index, int* data, int n): each lane accesses data[index[lane]] (or shared)
#define K extern "C" __global__ void
#define SH __shared__ unsigned long long s8[1024]; unsigned* s = (unsigned*)s8; int t = threadIdx.x; for (int k = t; k < 2048; k += 32) s[k] = 0; __syncthreads(); int i = index[t]; if (i < 0) return;
K sh_add(const int* index, unsigned* data, int n) { SH data[t] = atomicAdd(&s[i], 1u); }
K sh_red(const int* index, unsigned* data, int n) { SH atomicAdd(&s[i], 1u); }
K sh_cas(const int* index, unsigned* data, int n) { SH data[t] = atomicCAS(&s[i], 0u, 5u); }
K sh_exch(const int* index, unsigned* data, int n) { SH data[t] = atomicExch(&s[i], 5u); }
K sh_min(const int* index, unsigned* data, int n) { SH data[t] = atomicMin(&s[i], 3u); }
K sh_fadd(const int* index, unsigned* data, int n) { SH data[t] = __float_as_uint(atomicAdd((float*)&s[i], 1.f)); }
K sh_add64(const int* index, unsigned* data, int n) { SH data[t] = (unsigned)atomicAdd(&s8[i], 1ull); }
#define GL int t = threadIdx.x; int i = index[t]; if (i < 0) return;
K gl_add(const int* index, unsigned* data, int n) { GL data[4096 + t] = atomicAdd(&data[i], 1u); }
K gl_red(const int* index, unsigned* data, int n) { GL atomicAdd(&data[i], 1u); }
K gl_cas(const int* index, unsigned* data, int n) { GL data[4096 + t] = atomicCAS(&data[i], 0u, 5u); }
K gl_exch(const int* index, unsigned* data, int n) { GL data[4096 + t] = atomicExch(&data[i], 5u); }
K gl_fadd(const int* index, unsigned* data, int n) { GL data[4096 + t] = __float_as_uint(atomicAdd((float*)&data[i], 1.f)); }
K gl_add64(const int* index, unsigned* data, int n) { GL data[4096 + t] = (unsigned)atomicAdd((unsigned long long*)data + i, 1ull); }
K lo_f1(const int* index, unsigned* data, int n) { GL volatile unsigned v[8]; for (int k = 0; k < 8; ++k) v[k] = k + t; data[t] = v[i & 7]; }
K lo_f2(const int* index, unsigned* data, int n) { GL uint2 v[8]; for (int k = 0; k < 8; ++k) v[k] = make_uint2(k, t); for (int k = 0; k < n; ++k) v[(i + k) & 7].x += k; uint2 w = v[i & 7]; data[t] = w.x + w.y; }
K lo_f4(const int* index, unsigned* data, int n) { GL uint4 v[8]; for (int k = 0; k < 8; ++k) v[k] = make_uint4(k, t, i, k); for (int k = 0; k < n; ++k) v[(i + k) & 7] = make_uint4(k, n, i, t); uint4 w = v[i & 7]; data[t] = w.x + w.y + w.z + w.w; }
K lo_c(const int* index, unsigned* data, int n) { GL unsigned char v[32]; for (int k = 0; k < 32; ++k) v[k] = k + t; for (int k = 0; k < n; ++k) v[(i + k) & 31] += k; data[t] = v[i & 31]; }
K lo_d(const int* index, unsigned* data, int n) { GL double v[8]; for (int k = 0; k < 8; ++k) v[k] = k + t; for (int k = 0; k < n; ++k) v[(i + k) & 7] += k; data[t] = (unsigned)v[i & 7]; }
