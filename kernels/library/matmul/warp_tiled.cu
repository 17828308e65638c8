// Tiles of a block, of a warp, of a lane: a warp computes 32 x 32 outputs, a lane 4 x 8 of them.
//
// Four warps share tiles of 64 rows of A and 64 columns of B. The lanes of a warp stand 8 down
// and 4 across, so that one step of k asks shared memory for 32 numbers of A and 32 of B, each
// once a warp, by three 128-bit loads a lane for 32 multiply-adds. A lane's eight columns are two
// groups of four, 16 apart: neighbouring lanes then read neighbouring addresses.
const int SIDE = 64;   // rows and columns of a block
const int DEPTH = 8;   // steps of k a phase
const int THREADS = 128;

__global__ void warp_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float4 As[DEPTH][SIDE / 4];  // transposed: [k][row]
    __shared__ float4 Bs[DEPTH][SIDE / 4];
    float* as = &As[0][0].x;
    float* bs = &Bs[0][0].x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = blockIdx.y * SIDE, first_col = blockIdx.x * SIDE;
    int rows = warp / 2 * 32 + lane / 4 * 4;  // of this lane's outputs, in the block
    int cols = warp % 2 * 32 + lane % 4 * 4;

    float sum[4][8] = {};
    for (int start = 0; start < K; start += DEPTH) {
        for (int i = threadIdx.x; i < SIDE * DEPTH; i += THREADS) {
            int row = first_row + i / DEPTH, k = start + i % DEPTH;
            as[i % DEPTH * SIDE + i / DEPTH] = row < M && k < K ? A[row * K + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < SIDE * DEPTH; i += THREADS) {
            int k = start + i / SIDE, col = first_col + i % SIDE;
            bs[i] = k < K && col < N ? B[k * N + col] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k) {
            float4 a = As[k][rows / 4], left = Bs[k][cols / 4], right = Bs[k][cols / 4 + 4];
            float four[4] = {a.x, a.y, a.z, a.w};
            float eight[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 8; ++j)
                    sum[i][j] += four[i] * eight[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 8; ++j) {
            int row = first_row + rows + i, col = first_col + cols + j / 4 * 16 + j % 4;
            if (row < M && col < N)
                C[row * N + col] = sum[i][j];
        }
}
