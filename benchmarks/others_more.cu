// Kernels on which no constant of `predict` was adjusted: a third lot, of many kinds.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void tiny(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] * 2 + 1;
}

// A block goes through a whole array: what it sums up waits for the chunk before.
extern "C" __global__ void scan_one_block(const int* in, int* out, int n) {
    __shared__ int sums[32];
    __shared__ int before;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        before = 0;
    for (int start = 0; start < n; start += 1024) {
        int v = in[start + threadIdx.x];
        for (int d = 1; d < 32; d *= 2) {
            int o = __shfl_up_sync(~0u, v, d);
            if (lane >= d)
                v += o;
        }
        if (lane == 31)
            sums[warp] = v;
        __syncthreads();
        if (warp == 0) {
            int s = sums[lane];
            for (int d = 1; d < 32; d *= 2) {
                int o = __shfl_up_sync(~0u, s, d);
                if (lane >= d)
                    s += o;
            }
            sums[lane] = s;
        }
        __syncthreads();
        v += before + (warp ? sums[warp - 1] : 0);
        out[start + threadIdx.x] = v;
        __syncthreads();
        if (threadIdx.x == 1023)
            before = v;
        __syncthreads();
    }
}

extern "C" __global__ void gemv(const float4* A, const float4* x, float* y, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float s = 0;
    for (int k = lane; k < n / 4; k += 32) {
        float4 a = A[(long)row * (n / 4) + k], b = x[k];
        s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (lane == 0)
        y[row] = s;
}

extern "C" __global__ void column_sums(const float* A, float* sums, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int r = 0; r < rows; r++)
        s += A[(long)r * cols + c];
    sums[c] = s;
}

extern "C" __global__ void box_filter(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 2 || y < 2 || x >= n - 2 || y >= n - 2)
        return;
    float s = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            s += in[(y + dy) * n + x + dx];
    out[y * n + x] = s / 25;
}

extern "C" __global__ void softmax_wide(const float* in, float* out, int cols) {
    __shared__ float part[8];
    const float* row = in + (long)blockIdx.x * cols;
    float most = -1e30f, sum = 0;
    for (int c = threadIdx.x; c < cols; c += 256)
        most = fmaxf(most, row[c]);
    for (int d = 16; d; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        most = fmaxf(most, part[k]);
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += 256)
        sum += __expf(row[c] - most);
    for (int d = 16; d; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++)
        sum += part[k];
    for (int c = threadIdx.x; c < cols; c += 256)
        out[(long)blockIdx.x * cols + c] = __expf(row[c] - most) / sum;
}

extern "C" __global__ void binary_search(const int* sorted, const int* keys, int* found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, key = keys[i], low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    found[i] = low;
}

extern "C" __global__ void hash_insert(const unsigned* keys, unsigned* table, int mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned key = keys[i], slot = key * 2654435761u & mask;
    while (true) {
        unsigned there = atomicCAS(&table[slot], 0u, key);
        if (there == 0 || there == key)
            return;
        slot = (slot + 1) & mask;
    }
}

extern "C" __global__ void sum64(const double* in, double* sum, int n) {
    double s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        s += in[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, s);
}

extern "C" __global__ void monte_carlo(unsigned long long* hits, int rounds) {
    unsigned a = blockIdx.x * blockDim.x + threadIdx.x + 1, inside = 0;
    for (int k = 0; k < rounds; k++) {
        a = a * 1664525u + 1013904223u;
        float x = (a >> 8) * 0x1p-24f;
        a = a * 1664525u + 1013904223u;
        float y = (a >> 8) * 0x1p-24f;
        inside += x * x + y * y < 1;
    }
    inside = __reduce_add_sync(~0u, inside);
    if (threadIdx.x % 32 == 0)
        atomicAdd(hits, (unsigned long long)inside);
}

extern "C" __global__ void sort_blocks(const int* in, int* out) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    for (int k = t; k < 1024; k += 256)
        s[k] = in[blockIdx.x * 1024 + k];
    for (int size = 2; size <= 1024; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            __syncthreads();
            for (int k = t; k < 512; k += 256) {
                int a = 2 * k - (k & (step - 1)), b = a + step;
                int x = s[a], y = s[b];
                bool up = (a & size) == 0;
                if ((x > y) == up) {
                    s[a] = y;
                    s[b] = x;
                }
            }
        }
    __syncthreads();
    for (int k = t; k < 1024; k += 256)
        out[blockIdx.x * 1024 + k] = s[k];
}

extern "C" __global__ void half_axpy(const __half2* x, __half2* y, int n) {
    __half2 a = __float2half2_rn(1.5f);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = __hfma2(a, x[i], y[i]);
}

extern "C" __global__ void wmma_product(const __half* A, const __half* B, float* C, int n) {
    using namespace nvcuda;
    int row = (blockIdx.y * 4 + threadIdx.x / 32) * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(a, A + row * n + k, n);
        wmma::load_matrix_sync(b, B + k * n + col, n);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * n + col, c, n, wmma::mem_row_major);
}

extern "C" __global__ void early_out(const int* skip, const float* in, float* out, int rounds) {
    if (skip[blockIdx.x])
        return;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < rounds; k++)
        x = x * x - 0.5f;
    out[i] = x;
}

// Each block follows a list of its own: one thread, one load after the other.
extern "C" __global__ void lists(const int* next, int* out, int steps) {
    int at = blockIdx.x * 32;
    if (threadIdx.x == 0) {
        for (int k = 0; k < steps; k++)
            at = next[at];
        out[blockIdx.x] = at;
    }
}

extern "C" __global__ void small_frames(const int* in, int* out, int rounds) {
    int count[16] = {};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = in[i];
    for (int k = 0; k < rounds; k++) {
        h = h * 1664525u + 1013904223u;
        count[h >> 28]++;
    }
    int most = 0;
    for (int k = 0; k < 16; k++)
        most = max(most, count[k] * 16 + k);
    out[i] = most;
}

extern "C" __global__ void conflicts(float* out, int rounds) {
    __shared__ float s[32 * 64];
    int t = threadIdx.x;
    for (int k = t; k < 2048; k += 256)
        s[k] = k;
    __syncthreads();
    float v = 0;
    for (int k = 0; k < rounds; k++)
        v += s[(t * 8 + k) & 2047];
    out[blockIdx.x * 256 + t] = v;
}

extern "C" __global__ void heat_steps(const float* in, float* out, int steps) {
    __shared__ float s[2][34][34];
    int x = threadIdx.x, y = threadIdx.y, now = 0;
    for (int k = y * 32 + x; k < 34 * 34; k += 256) {
        s[0][k / 34][k % 34] = in[(blockIdx.x * 34 * 34 + k)];
        s[1][k / 34][k % 34] = s[0][k / 34][k % 34];
    }
    __syncthreads();
    for (int t = 0; t < steps; t++, now ^= 1) {
        for (int r = y + 1; r < 33; r += 8)
            s[now ^ 1][r][x + 1] = 0.25f * (s[now][r - 1][x + 1] + s[now][r + 1][x + 1] +
                                            s[now][r][x] + s[now][r][x + 2]);
        __syncthreads();
    }
    for (int r = y; r < 32; r += 8)
        out[blockIdx.x * 1024 + r * 32 + x] = s[now][r + 1][x + 1];
}

extern "C" __global__ void __cluster_dims__(8, 1, 1) cluster_sum(const float* in, float* out) {
    namespace cg = cooperative_groups;
    __shared__ float sum;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        sum = 0;
    cluster.sync();
    float v = in[blockIdx.x * 256 + threadIdx.x];
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(cluster.map_shared_rank(&sum, 0), v);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        out[blockIdx.x / 8] = sum;
}

extern "C" __global__ void nearest(const float2* points, const float2* centres, int* which, int n) {
    __shared__ float2 c[64];
    if (threadIdx.x < 64)
        c[threadIdx.x] = centres[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    if (i >= n)
        return;
    float2 p = points[i];
    float least = 1e30f;
    for (int k = 0; k < 64; k++) {
        float dx = p.x - c[k].x, dy = p.y - c[k].y, d = dx * dx + dy * dy;
        if (d < least) {
            least = d;
            best = k;
        }
    }
    which[i] = best;
}

extern "C" __global__ void swap_pairs(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; k++)
        out[i * 8 + k] = in[i * 8 + (k ^ 1)];
}
