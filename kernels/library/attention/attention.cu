// Attention, softmax(Q K^T / sqrt(D)) V, without ever storing the scores; on tensor cores.
//
// A warp has 16 queries and meets the keys 16 at a time. A row's softmax is made as keys come
// (Milakov and Gimelshein, "Online normalizer calculation for softmax"): with each tile its largest
// score may grow, and what was summed so far is scaled down to the new one. mma's sums lie in the
// registers as mma's left operand is wanted, so that weights go from one product to the next
// without shared memory. The next keys and values are copied while these are used.
//
// A lane has the sums of rows lane / 4 and lane / 4 + 8, two neighbours out of each eight columns.
#include <cuda_fp16.h>

const int D = 32;      // numbers of a query, a key, a value
const int KEYS = 16;   // of a tile
const int WARPS = 2;

// The place of a row's chunk of eight numbers: permuted, so that ldmatrix meets no conflicts.
__device__ int place(int row, int chunk) { return row * D + (chunk ^ (row / 2 % 4)) * 8; }

__device__ unsigned shared_address(const __half* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// Start the copies of so many rows from a matrix; below its end they write zeros.
__device__ void fetch(__half* tile, const __half* matrix, int first, int count, int rows) {
    for (int i = threadIdx.x; i < count * D / 8; i += 32 * WARPS) {
        int row = i / (D / 8), chunk = i % (D / 8);
        bool inside = first + row < rows;
        const __half* from = inside ? &matrix[(first + row) * D + 8 * chunk] : matrix;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_address(&tile[place(row, chunk)])), "l"(from),
                        "r"(inside ? 16 : 0) : "memory");
    }
}

__device__ void load4(unsigned (&a)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(from)) : "memory");
}

__device__ void load2(unsigned (&b)[2], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1]) : "r"(shared_address(from)) : "memory");
}

__device__ void load2_transposed(unsigned (&b)[2], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1]) : "r"(shared_address(from)) : "memory");
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ unsigned pair(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned*>(&both);
}

__global__ void attention(const __half* Q, const __half* K, const __half* V, float* out,
                          int queries, int keys, float scale) {
    __shared__ __align__(16) __half qs[WARPS * 16 * D], ks[2][KEYS * D], vs[2][KEYS * D];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * WARPS * 16;

    fetch(qs, Q, first, WARPS * 16, queries);
    fetch(ks[0], K, 0, KEYS, keys);
    fetch(vs[0], V, 0, KEYS, keys);
    asm volatile("cp.async.commit_group;" ::: "memory");

    float sums[D / 8][4] = {}, total[2] = {0, 0}, most[2] = {-INFINITY, -INFINITY};
    for (int start = 0, now = 0; start < keys; start += KEYS, now ^= 1) {
        if (start + KEYS < keys) {
            fetch(ks[now ^ 1], K, start + KEYS, KEYS, keys);
            fetch(vs[now ^ 1], V, start + KEYS, KEYS, keys);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();

        float scores[KEYS / 8][4] = {};
        for (int d = 0; d < D; d += 16) {
            unsigned q[4], k[2];
            load4(q, &qs[place(warp * 16 + lane % 16, d / 8 + lane / 16)]);
            for (int j = 0; j < KEYS / 8; ++j) {
                load2(k, &ks[now][place(8 * j + lane % 8, d / 8 + lane / 8 % 2)]);
                multiply(scores[j], q, k);
            }
        }
        for (int half = 0; half < 2; ++half) {
            float top = most[half];
            for (int j = 0; j < KEYS / 8; ++j)
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    bool there = start + 8 * j + lane % 4 * 2 + i % 2 < keys;
                    scores[j][i] = there ? scores[j][i] * scale : -INFINITY;
                    top = fmaxf(top, scores[j][i]);
                }
            for (int offset = 1; offset < 4; offset *= 2)  // the four lanes of a row
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
            float from = top == -INFINITY ? 0.0f : top;  // no score yet that counts
            float shrink = expf(most[half] - from);
            most[half] = top;
            total[half] *= shrink;
            for (int j = 0; j < KEYS / 8; ++j)
                for (int i = 2 * half; i < 2 * half + 2; ++i)
                    total[half] += scores[j][i] = expf(scores[j][i] - from);
            for (int j = 0; j < D / 8; ++j)
                for (int i = 2 * half; i < 2 * half + 2; ++i)
                    sums[j][i] *= shrink;
        }
        unsigned weights[4] = {pair(scores[0][0], scores[0][1]), pair(scores[0][2], scores[0][3]),
                               pair(scores[1][0], scores[1][1]), pair(scores[1][2], scores[1][3])};
        for (int j = 0; j < D / 8; ++j) {
            unsigned v[2];
            load2_transposed(v, &vs[now][place(lane % 16, j)]);
            multiply(sums[j], weights, v);
        }
        __syncthreads();
    }
    for (int half = 0; half < 2; ++half) {
        for (int offset = 1; offset < 4; offset *= 2)
            total[half] += __shfl_xor_sync(0xffffffffu, total[half], offset);
        int row = first + warp * 16 + 8 * half + lane / 4;
        if (row < queries)
            for (int j = 0; j < D / 8; ++j)
                for (int i = 0; i < 2; ++i)
                    out[row * D + 8 * j + lane % 4 * 2 + i] = sums[j][2 * half + i] / total[half];
    }
}
