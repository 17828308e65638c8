// Kernels on which no constant of `predict` was adjusted: those that mostly compute.
#include <cuda_fp16.h>

extern "C" __global__ void one_warp(float* out, int n) {
    float a = threadIdx.x * 0.1f;
    for (int i = 0; i < n; i++)
        a = sqrtf(a * 1.01f + 0.5f);
    out[threadIdx.x] = a;
}

extern "C" __global__ void one_block(float* out, int rounds) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        for (int d = 512; d; d /= 2) {
            if (t < d)
                s[t] += s[t + d];
            __syncthreads();
        }
        s[t] = s[0] * 1e-3f + t;
        __syncthreads();
    }
    out[t] = s[t];
}

extern "C" __global__ void poly64(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = in[i], v = 1;
#pragma unroll 16
    for (int k = 0; k < n; k++)
        v = v * x + 0.5;
    out[i] = v;
}

extern "C" __global__ void transcendental(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    out[i] = sinf(x) * expf(-x) + logf(x + 1.5f) * powf(x + 0.5f, 1.7f) + atan2f(x, 0.3f);
}

extern "C" __global__ void fast_math(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < n; k++)
        x = __sinf(x) + __expf(-x) + __frsqrt_rn(x * x + 1.0f);
    out[i] = x;
}

extern "C" __global__ void divergent(const int* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i;
    int n = in[i];
    for (int k = 0; k < n; k++) {
        switch ((threadIdx.x + k) & 3) {
            case 0:
                x = x * 1.01f + 1;
                break;
            case 1:
                x = sqrtf(x + 2);
                break;
            case 2:
                x = x / 3.0f;
                break;
            default:
                x = fabsf(x - 5) + 0.25f;
        }
    }
    out[i] = x;
}

extern "C" __global__ void tensor(const unsigned* in, float* out, int n) {
    unsigned a[4], b[2];
    float c[8] = {};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 4; k++)
        a[k] = in[(i * 4 + k) & 4095];
    b[0] = in[i & 4095];
    b[1] = in[i * 3 & 4095];
    for (int k = 0; k < n; k++)
        for (int h = 0; h < 8; h += 4)
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                : "+f"(c[h]), "+f"(c[h + 1]), "+f"(c[h + 2]), "+f"(c[h + 3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float s = 0;
    for (int k = 0; k < 8; k++)
        s += c[k];
    out[i] = s;
}

extern "C" __global__ void divide(const int* in, int* out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    long long w = v;
    for (int r = 1; r <= rounds; r++) {
        v = (v ^ r) / (r + (v & 7)) + v % 13 + 100000;
        w = w * v + (w >> 3);
    }
    out[i] = v + (int)w;
}

extern "C" __global__ void shuffles(const float* in, float* out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    for (int r = 0; r < rounds; r++)
        for (int d = 16; d; d /= 2)
            v = v * 0.5f + __shfl_xor_sync(~0u, v, d);
    out[i] = v;
}

extern "C" __global__ void halves(const __half2* in, __half2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 x = in[i], v = x, w = x;
    for (int k = 0; k < n; k++) {
        v = __hfma2(v, x, w);
        w = __hfma2(w, x, v);
    }
    out[i] = __hadd2(v, w);
}

extern "C" __global__ void nbody(const float4* p, float4* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = p[i];
    float x = 0, y = 0, z = 0;
    for (int k = 0; k < n; k++) {
        float4 o = p[k];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), w = o.w * r * r * r;
        x += dx * w;
        y += dy * w;
        z += dz * w;
    }
    f[i] = make_float4(x, y, z, 0);
}

extern "C" __global__ void __launch_bounds__(1024) huge(const float* in, float* out, int rounds) {
    __shared__ float s[33 * 32];
    int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    float v = in[blockIdx.x * 1024 + threadIdx.x];
    for (int r = 0; r < rounds; r++) {
        s[y * 33 + x] = v;
        __syncthreads();
        v = s[x * 33 + y] * 0.5f + v;
        __syncthreads();
    }
    out[blockIdx.x * 1024 + threadIdx.x] = v;
}

extern "C" __global__ void registers(const float* in, float* out, int n) {
    float a[100];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 100; k++)
        a[k] = in[i] + k;
    for (int r = 0; r < n; r++) {
#pragma unroll
        for (int k = 0; k < 100; k++)
            a[k] = a[k] * a[(k + 37) % 100] + 0.5f;
    }
    float s = 0;
#pragma unroll
    for (int k = 0; k < 100; k++)
        s += a[k];
    out[i] = s;
}

extern "C" __global__ void batched(const float* A, const float* B, float* C) {
    __shared__ float a[16][16], b[16][16];
    int r = threadIdx.y, c = threadIdx.x;
    long o = (long)blockIdx.x * 256 + r * 16 + c;
    a[r][c] = A[o];
    b[r][c] = B[o];
    __syncthreads();
    float s = 0;
    for (int k = 0; k < 16; k++)
        s += a[r][k] * b[k][c];
    C[o] = s;
}

extern "C" __global__ void scan_rows(const float* in, float* out) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32;
    long i = (long)blockIdx.x * 1024 + threadIdx.x;
    float v = in[i];
    for (int d = 1; d < 32; d *= 2) {
        float o = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += o;
    }
    if (lane == 31)
        part[w] = v;
    __syncthreads();
    if (w == 0) {
        float p = part[lane];
        for (int d = 1; d < 32; d *= 2) {
            float o = __shfl_up_sync(~0u, p, d);
            if (lane >= d)
                p += o;
        }
        part[lane] = p;
    }
    __syncthreads();
    out[i] = v + (w ? part[w - 1] : 0);
}

__constant__ float taps[31];
extern "C" __global__ void conv1d(const float* in, float* out, int n) {
    __shared__ float s[256 + 30];
    int i = blockIdx.x * 256 + threadIdx.x;
    for (int k = threadIdx.x; k < 286; k += 256) {
        int g = blockIdx.x * 256 + k - 15;
        s[k] = g >= 0 && g < n ? in[g] : 0;
    }
    __syncthreads();
    float v = 0;
#pragma unroll
    for (int k = 0; k < 31; k++)
        v += s[threadIdx.x + k] * taps[k];
    out[i] = v;
}

extern "C" __global__ void layernorm(const float* in, float* out, int cols) {
    __shared__ float part[2][8];
    const float* row = in + (long)blockIdx.x * cols;
    float s = 0, q = 0;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = row[c];
        s += v;
        q += v * v;
    }
    for (int d = 16; d; d /= 2) {
        s += __shfl_xor_sync(~0u, s, d);
        q += __shfl_xor_sync(~0u, q, d);
    }
    if (threadIdx.x % 32 == 0) {
        part[0][threadIdx.x / 32] = s;
        part[1][threadIdx.x / 32] = q;
    }
    __syncthreads();
    s = q = 0;
    for (int k = 0; k < 8; k++) {
        s += part[0][k];
        q += part[1][k];
    }
    float mean = s / cols, inv = rsqrtf(q / cols - mean * mean + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 256)
        out[(long)blockIdx.x * cols + c] = (row[c] - mean) * inv;
}

extern "C" __global__ void nbody64(const double4* p, double4* f, int n) {
    __shared__ double4 t[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    double4 me = p[i];
    double ax = 0, ay = 0, az = 0;
    for (int b = 0; b < n; b += 128) {
        t[threadIdx.x] = p[b + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; k++) {
            double dx = t[k].x - me.x, dy = t[k].y - me.y, dz = t[k].z - me.z,
                   r = dx * dx + dy * dy + dz * dz + 1e-3;
            double w = t[k].w * r;
            ax += dx * w;
            ay += dy * w;
            az += dz * w;
        }
        __syncthreads();
    }
    f[i] = make_double4(ax, ay, az, 0);
}

extern "C" __global__ void hash(const unsigned* in, unsigned* out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = in[i];
    for (int k = 0; k < rounds; k++) {
        h ^= h << 13;
        h ^= h >> 17;
        h ^= h << 5;
        h += k;
    }
    out[i] = h;
}

extern "C" __global__ void mandel(int* out, int n, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cr = -2 + 3.0f * x / n, ci = -1.5f + 3.0f * y / n, zr = 0, zi = 0;
    int k = 0;
    while (k < most && zr * zr + zi * zi < 4) {
        float t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        k++;
    }
    out[y * n + x] = k;
}
