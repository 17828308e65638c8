// Tensor cores of sm_90a: f16 inputs, f32 sums, by wgmma, fed by copies of tensors in bulk (TMA).
//
// A block computes 128 x TILE of C, a phase takes 64 steps of k. One thread of a warp of its own
// has the tiles copied, some phases ahead; two warpgroups multiply them, 64 rows each. Two barriers
// a stage hand it to and fro: `full` counts the bytes that arrive, `empty` the warps that have
// read it. Nobody else waits, and no element passes through a register before it is multiplied.
//
// A row of a tile in shared memory is 128 bytes, of which the copy permutes the chunks of 16 by the
// row's number (swizzle 128), so that eight rows' same chunks lie in different banks; the
// descriptors that wgmma reads its tiles by say the same. A's rows run along k, B's along n: 64
// columns of B are a copy. Outside the matrices copies write zeros.
#include <cuda_fp16.h>

typedef unsigned long long Barrier;
struct alignas(64) Map { char opaque[128]; };  // what cuTensorMapEncodeTiled makes

const int ROWS = 128;   // of C, for two warpgroups
const int DEPTH = 64;   // steps of k a phase: 128 bytes
const int CHUNK = 64;   // columns of B a copy: 128 bytes
const int STAGES = 3;
const int READERS = 8;  // warps

__device__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void init(Barrier* barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(shared(barrier)), "r"(count) : "memory");
}

__device__ void arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(shared(barrier)) : "memory");
}

__device__ void expect(Barrier* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(shared(barrier)), "r"(bytes) : "memory");
}

// Until the barrier's phase of this parity is over; a new barrier has parity 1 behind it.
__device__ void wait(Barrier* barrier, int parity) {
    int over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.b32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(shared(barrier)), "r"(parity) : "memory");
}

__device__ void copy(__half* to, const Map& map, int col, int row, Barrier* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(shared(to)), "l"(&map), "r"(col), "r"(row), "r"(shared(barrier)) : "memory");
}

// A tile as wgmma finds it: its address, how far apart its chunks of 128 bytes are (where they are
// several) and its groups of eight rows, all in units of 16 bytes; at the top, swizzle 128.
__device__ unsigned long long tile(const __half* at, int chunks, int eights) {
    return shared(at) / 16 | (unsigned long long)(chunks / 16) << 16
         | (unsigned long long)(eights / 16) << 32 | 1ull << 62;
}

#define D(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define D4(i) D(i), D(i + 1), D(i + 2), D(i + 3)

// d += a b, for 64 rows, 16 steps of k; B's rows run along n. Begins, and does not wait.
__device__ void multiply(float (&d)[8][4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, %32, %33, 1, 1, 1, 0, 1;"
                 : D4(0), D4(4) : "l"(a), "l"(b));
}

__device__ void multiply(float (&d)[16][4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, 1, 1, 1, 0, 1;"
                 : D4(0), D4(4), D4(8), D4(12) : "l"(a), "l"(b));
}

template <int TILE>
struct Stage {
    __half a[ROWS][DEPTH];
    __half b[TILE / CHUNK][DEPTH][CHUNK];
};

template <int TILE>
__global__ void __launch_bounds__(32 * (READERS + 1))
wgmma(const __grid_constant__ Map A, const __grid_constant__ Map B, float* C, int M, int N, int K) {
    extern __shared__ __align__(1024) char memory[];
    Stage<TILE>* stages = reinterpret_cast<Stage<TILE>*>(memory);
    __shared__ Barrier full[STAGES], empty[STAGES];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = blockIdx.y * ROWS, first_col = blockIdx.x * TILE;
    int phases = (K + DEPTH - 1) / DEPTH;

    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; ++i) {
            init(&full[i], 1);
            init(&empty[i], READERS);
        }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // for the copies, too
    __syncthreads();

    if (warp == READERS) {
        if (lane == 0)
            for (int phase = 0; phase < phases; ++phase) {
                int i = phase % STAGES;
                Stage<TILE>& stage = stages[i];
                wait(&empty[i], phase / STAGES % 2 ^ 1);
                expect(&full[i], sizeof stage);
                copy(stage.a[0], A, phase * DEPTH, first_row, &full[i]);
                for (int j = 0; j < TILE / CHUNK; ++j)
                    copy(stage.b[j][0], B, first_col + j * CHUNK, phase * DEPTH, &full[i]);
            }
        return;
    }

    float c[TILE / 8][4] = {};
    for (int phase = 0; phase < phases; ++phase) {
        int i = phase % STAGES;
        Stage<TILE>& stage = stages[i];
        wait(&full[i], phase / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < DEPTH; k += 16)
            multiply(c, tile(&stage.a[warp / 4 * 64][k], 16, 8 * 128),
                     tile(stage.b[0][k], sizeof stage.b[0], 8 * 128));
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (lane == 0) arrive(&empty[i]);
    }
    // A warp has 16 rows; a lane two neighbours of a row, and the same of the row eight below.
    for (int j = 0; j < TILE / 8; ++j)
        for (int half = 0; half < 2; ++half) {
            int row = first_row + 16 * warp + 8 * half + lane / 4;
            int col = first_col + 8 * j + lane % 4 * 2;
            if (row < M && col < N)
                *reinterpret_cast<float2*>(&C[row * N + col]) =
                    make_float2(c[j][2 * half], c[j][2 * half + 1]);
        }
}
