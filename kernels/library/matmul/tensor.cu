// Tensor cores: f16 inputs, f32 sums, by mma.sync.m16n8k16 behind a pipeline of three stages.
//
// Four warps compute a tile of C, each a quarter. A phase takes 64 steps of k, with tiles of 64,
// whose phases are short, 128. cp.async brings the tiles of two phases ahead, 16 bytes a copy, into
// the stage that was read a phase ago; so one barrier a phase is enough. N and K are multiples of 8:
// eight neighbours then lie either all inside a matrix or all outside, where the copy writes zeros.
//
// ldmatrix fetches 8 x 8 matrices, a row of 16 bytes from each lane's address. Rows of a tile are
// as far apart as the tile is wide, so eight of them would meet in the same banks; a row's chunks
// of 16 bytes are therefore permuted by the row's number.
#include <cuda_fp16.h>

const int STAGES = 3;
const int THREADS = 128;

// The place of a chunk of eight elements in a tile of WIDTH columns.
template <int WIDTH>
__device__ int place(int row, int chunk) {
    return row * WIDTH + (WIDTH == 32 ? chunk ^ (row / 2 % 4) : chunk ^ (row % 8)) * 8;
}

__device__ void copy(__half* to, const __half* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
}

// Start the copies of a tile of ROWS x WIDTH from a matrix of rows x cols.
template <int ROWS, int WIDTH>
__device__ void fetch(__half* tile, const __half* matrix, int row, int col, int rows, int cols) {
    for (int i = threadIdx.x; i < ROWS * WIDTH / 8; i += THREADS) {
        int r = i / (WIDTH / 8), chunk = i % (WIDTH / 8);
        bool inside = row + r < rows && col + 8 * chunk < cols;
        const __half* from = inside ? &matrix[(row + r) * cols + col + 8 * chunk] : matrix;
        copy(&tile[place<WIDTH>(r, chunk)], from, inside ? 16 : 0);
    }
}

__device__ void load_a(unsigned (&a)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory");
}

__device__ void load_b(unsigned (&b)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory");
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int TILE>
struct Stage {
    static const int DEPTH = TILE == 64 ? 128 : 64;  // steps of k a phase
    __half a[TILE * DEPTH], b[DEPTH * TILE];
};

template <int TILE>
__global__ void __launch_bounds__(THREADS)
tensor(const __half* A, const __half* B, float* C, int M, int N, int K) {
    const int DEPTH = Stage<TILE>::DEPTH;
    const int SIDE = TILE / 2;  // of a warp's quarter
    const bool MANY = TILE > 64;  // products, behind which the copies may come first
    extern __shared__ __align__(16) char memory[];
    Stage<TILE>* stages = reinterpret_cast<Stage<TILE>*>(memory);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = blockIdx.y * TILE, first_col = blockIdx.x * TILE;
    int row = warp / 2 * SIDE, col = warp % 2 * SIDE;
    int phases = (K + DEPTH - 1) / DEPTH;

    auto start = [&](int phase) {
        if (phase < phases) {
            Stage<TILE>& stage = stages[phase % STAGES];
            fetch<TILE, DEPTH>(stage.a, A, first_row, phase * DEPTH, M, K);
            fetch<DEPTH, TILE>(stage.b, B, phase * DEPTH, first_col, K, N);
        }
        // Past the end an empty group, so that the wait is the same.
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float c[SIDE / 16][SIDE / 8][4] = {};
    for (int phase = 0; phase < STAGES - 1; ++phase)
        start(phase);
    for (int phase = 0; phase < phases; ++phase) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
        if (MANY) start(phase + STAGES - 1);
        const Stage<TILE>& stage = stages[phase % STAGES];
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned a[SIDE / 16][4], b[SIDE / 16][4];  // of B two matrices of 8 columns
            for (int i = 0; i < SIDE / 16; ++i)
                load_a(a[i], &stage.a[place<DEPTH>(row + 16 * i + lane % 16, k / 8 + lane / 16)]);
            for (int j = 0; j < SIDE / 16; ++j)
                load_b(b[j], &stage.b[place<TILE>(k + lane % 16, col / 8 + 2 * j + lane / 16)]);
            for (int i = 0; i < SIDE / 16; ++i)
                for (int j = 0; j < SIDE / 8; ++j)
                    multiply(c[i][j], a[i], &b[j / 2][j % 2 * 2]);
            if (!MANY && k == 0) start(phase + STAGES - 1);
        }
    }
    // A lane has two neighbours of a row, and the same of the row eight below.
    for (int i = 0; i < SIDE / 16; ++i)
        for (int j = 0; j < SIDE / 8; ++j)
            for (int half = 0; half < 2; ++half) {
                int r = first_row + row + 16 * i + 8 * half + lane / 4;
                int at = first_col + col + 8 * j + lane % 4 * 2;
                if (r < M && at < N)
                    *reinterpret_cast<float2*>(&C[r * N + at]) =
                        make_float2(c[i][j][2 * half], c[i][j][2 * half + 1]);
            }
}
