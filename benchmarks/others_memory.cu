// Kernels on which no constant of `predict` was adjusted: those that mostly move data.
#include <cooperative_groups.h>

extern "C" __global__ void contention(float* sums, int places, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < rounds; k++)
        atomicAdd(sums + (i * 7 + k) % places, 1.0f);
}

extern "C" __global__ void cas_max(unsigned long long* best, const float* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMax(best + (i & 15), (unsigned long long)(in[i] * 1e9f));
}

extern "C" __global__ void shared_hot(const int* in, int* out, int rounds) {
    __shared__ int s[64];
    if (threadIdx.x < 64)
        s[threadIdx.x] = 0;
    __syncthreads();
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int k = 0; k < rounds; k++) {
        atomicAdd(&s[v & 63], v);
        v = v * 5 + 1;
    }
    __syncthreads();
    if (threadIdx.x < 64)
        out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void strided(const float* in, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[(long)i * step];
}

extern "C" __global__ void gather_l2(const int* index, const float* table, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = table[index[i]];
}

extern "C" __global__ void resident(const float4* in, float* out, int n, int rounds) {
    float s = 0;
    for (int r = 0; r < rounds; r++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
            float4 v = in[i];
            s += v.x + v.y + v.z + v.w;
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

extern "C" __global__ void pipelined(const float4* in, float4* out, int each) {
    __shared__ float4 s[4][256];
    int t = threadIdx.x;
    long base = (long)blockIdx.x * each * 256 + t;
    for (int k = 0; k < 3; k++) {
        unsigned at = __cvta_generic_to_shared(&s[k][t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;" ::"r"(at),
                     "l"(in + base + k * 256)
                     : "memory");
    }
    for (int k = 0; k < each; k++) {
        if (k + 3 < each) {
            unsigned at = __cvta_generic_to_shared(&s[(k + 3) & 3][t]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                         "l"(in + base + (k + 3) * 256)
                         : "memory");
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 3;" ::: "memory");
        float4 v = s[k & 3][t];
        v.x += 1;
        out[base + k * 256] = v;
    }
}

extern "C" __global__ void __cluster_dims__(4, 1, 1)
    neighbours(const float* in, float* out, int rounds) {
    namespace cg = cooperative_groups;
    __shared__ float s[256];
    cg::cluster_group c = cg::this_cluster();
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    c.sync();
    float* other = c.map_shared_rank(s, (c.block_rank() + 1) & 3);
    float v = 0;
    for (int k = 0; k < rounds; k++)
        v += other[(t + k) & 255];
    c.sync();
    out[blockIdx.x * 256 + t] = v;
}

extern "C" __global__ void local_array(const int* in, float* out, int rounds) {
    float a[96];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 96; k++)
        a[k] = k * 0.5f + i;
    int at = in[i];
    for (int r = 0; r < rounds; r++) {
        a[at % 96] += a[(at * 7 + r) % 96];
        at = at * 13 + 5 & 1023;
    }
    float s = 0;
    for (int k = 0; k < 96; k++)
        s += a[k];
    out[i] = s;
}

extern "C" __global__ void many_chases(const int* next, int* out, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i * 977 & ((1 << 25) - 1);
    for (int k = 0; k < steps; k++)
        at = next[at];
    out[i] = at;
}

extern "C" __global__ void bytes(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 255 - in[i];
}

extern "C" __global__ void few_blocks(const float* in, float* out, int n) {
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        s += in[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

extern "C" __global__ void fill(float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = make_float4(1, 2, 3, 4);
}

extern "C" __global__ void triad(const float* a, const float* b, const float* c, float* out,
                                 int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] * b[i] + c[i];
}

extern "C" __global__ void stencil3d(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1)
        return;
    long i = ((long)z * n + y) * n + x;
    out[i] = 0.4f * in[i] +
             0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n]);
}

extern "C" __global__ void strided_sum(const float4* in, float* out, int n) {
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        s += v.x + v.y + v.z + v.w;
    }
    __shared__ float part[8];
    for (int d = 16; d; d /= 2)
        s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0;
        for (int k = 0; k < 8; k++)
            t += part[k];
        out[blockIdx.x] = t;
    }
}

extern "C" __global__ void histo(const unsigned* in, unsigned* bins, int n) {
    __shared__ unsigned h[256];
    h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned v = in[i];
        atomicAdd(&h[v & 255], 1);
        atomicAdd(&h[v >> 8 & 255], 1);
        atomicAdd(&h[v >> 16 & 255], 1);
        atomicAdd(&h[v >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], h[threadIdx.x]);
}

extern "C" __global__ void transpose_double(const double* in, double* out, int n) {
    __shared__ double t[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        t[threadIdx.y + k][threadIdx.x] = in[(long)(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        out[(long)(y + k) * n + x] = t[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void gather_rows(const float* in, const int* index, float* out) {
    int row = blockIdx.x * 8 + threadIdx.y;
    for (int c = threadIdx.x; c < 64; c += 32)
        out[row * 64 + c] = in[(long)index[row] * 64 + c];
}

extern "C" __global__ void scatter_add(const int* where, float* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sums + where[i], 1.0f);
}
