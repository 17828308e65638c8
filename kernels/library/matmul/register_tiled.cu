// TM x TN outputs a thread: once the operands sit in registers, each is used TM or TN times.
//
// 16 x 16 threads compute a tile of 16*TM rows and 16*TN columns of C. Per step of k a thread
// reads TM + TN numbers from shared memory for TM * TN multiply-adds, where the tiled kernel
// reads two for one. The tile of A is kept transposed, As[k][row], so that the TM numbers lie
// side by side and arrive by 128-bit loads. TM and TN are multiples of 4.
const int THREADS = 16;  // along x and along y
const int DEPTH = 16;    // steps of k a phase

template <int TM, int TN>
__global__ void register_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    const int ROWS = THREADS * TM, COLS = THREADS * TN;
    __shared__ float4 As[DEPTH][ROWS / 4];
    __shared__ float4 Bs[DEPTH][COLS / 4];
    float* as = &As[0][0].x;
    float* bs = &Bs[0][0].x;
    int thread = threadIdx.y * THREADS + threadIdx.x;
    int first_row = blockIdx.y * ROWS, first_col = blockIdx.x * COLS;

    float sum[TM][TN] = {};
    for (int start = 0; start < K; start += DEPTH) {
        // The block's 256 threads fetch both tiles together, neighbours in memory by
        // neighbouring threads; outside the matrices they write zeros. Storing A transposed
        // costs bank conflicts, once a phase; reading it back has none.
        for (int i = thread; i < ROWS * DEPTH; i += THREADS * THREADS) {
            int row = first_row + i / DEPTH, k = start + i % DEPTH;
            as[i % DEPTH * ROWS + i / DEPTH] = row < M && k < K ? A[row * K + k] : 0.0f;
        }
        for (int i = thread; i < COLS * DEPTH; i += THREADS * THREADS) {
            int k = start + i / COLS, col = first_col + i % COLS;
            bs[i] = k < K && col < N ? B[k * N + col] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k) {
            float a[TM], b[TN];
            for (int i = 0; i < TM; i += 4) {
                float4 four = As[k][(threadIdx.y * TM + i) / 4];
                a[i] = four.x, a[i + 1] = four.y, a[i + 2] = four.z, a[i + 3] = four.w;
            }
            for (int j = 0; j < TN; j += 4) {
                float4 four = Bs[k][(threadIdx.x * TN + j) / 4];
                b[j] = four.x, b[j + 1] = four.y, b[j + 2] = four.z, b[j + 3] = four.w;
            }
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int row = first_row + threadIdx.y * TM + i, col = first_col + threadIdx.x * TN + j;
            if (row < M && col < N)
                C[row * N + col] = sum[i][j];
        }
}
