// The tiled product with the mistakes that everybody makes once; tiled.cu has it right.
//
// All of these compile, and the first two often give correct numbers: in this launch, on this
// GPU, today. Nothing but a barrier orders one warp of a block with another. Where one is
// missing, a reader can be faster than the writer it depends on, or a writer faster than the
// reader whose data it replaces. The third kernel goes wrong at ragged edges, and there alone.
// Run them under other schedules (tilescope run ... --schedule warps) to see it happen.
//
// A is M x K, B is K x N, C is M x N, all row-major.

// The barrier between loading and using is missing: a warp may read tiles that other warps
// have not yet written.
template <int TILE>
__global__ void missing_first_barrier(const float* A, const float* B, float* C,
                                      int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        As[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0.0f;
        Bs[y][x] = start + y < K && col < N ? B[(start + y) * N + col] : 0.0f;
        for (int k = 0; k < TILE; ++k)  // a barrier is missing before this line
            sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}

// The barrier between using and loading again is missing: a fast warp overwrites tiles that
// others still read.
template <int TILE>
__global__ void missing_second_barrier(const float* A, const float* B, float* C,
                                       int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        As[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0.0f;
        Bs[y][x] = start + y < K && col < N ? B[(start + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += As[y][k] * Bs[k][x];
    }  // a barrier is missing before the next round
    if (row < M && col < N)
        C[row * N + col] = sum;
}

// One guard around everything: a thread without an output does not load either, so that at
// a ragged edge its neighbours read tile elements that nobody wrote; and the barriers stand
// in code that only some threads of the block enter.
template <int TILE>
__global__ void tiled_wrong_guard(const float* A, const float* B, float* C,
                                  int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int start = 0; start < K; start += TILE) {
            As[y][x] = start + x < K ? A[row * K + start + x] : 0.0f;
            Bs[y][x] = start + y < K ? B[(start + y) * N + col] : 0.0f;
            __syncthreads();
            for (int k = 0; k < TILE; ++k)
                sum += As[y][k] * Bs[k][x];
            __syncthreads();
        }
        C[row * N + col] = sum;
    }
}
