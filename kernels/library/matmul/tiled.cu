// C = A * B by tiles held in shared memory.
// A is M x K, B is K x N, C is M x N, all row-major. A block of TILE x TILE threads computes
// one tile of C, walking along K in phases. In each phase every thread fetches one element
// of A and one of B; the whole block then reads each of them TILE times from shared memory.

// Any M, N and K: what lies outside a matrix is loaded as zero, which adds nothing to a sum.
// Every thread loads and meets every barrier, also one whose own output lies outside C.
template <int TILE>
__global__ void tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        As[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0.0f;
        Bs[y][x] = start + y < K && col < N ? B[(start + y) * N + col] : 0.0f;
        __syncthreads();  // nobody reads the tiles before all of them is written
        for (int k = 0; k < TILE; ++k)
            sum += As[y][k] * Bs[k][x];
        __syncthreads();  // nobody overwrites them before all have read
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}

// Square matrices whose width is a multiple of the tile: no check is needed anywhere.
const int WIDTH_UNIT = 16;

__global__ void tiled_exact(const float* A, const float* B, float* C, int width) {
    __shared__ float As[WIDTH_UNIT][WIDTH_UNIT];
    __shared__ float Bs[WIDTH_UNIT][WIDTH_UNIT];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * WIDTH_UNIT + y;
    int col = blockIdx.x * WIDTH_UNIT + x;
    float sum = 0.0f;
    for (int phase = 0; phase < width / WIDTH_UNIT; ++phase) {
        As[y][x] = A[row * width + phase * WIDTH_UNIT + x];
        Bs[y][x] = B[(phase * WIDTH_UNIT + y) * width + col];
        __syncthreads();
        for (int k = 0; k < WIDTH_UNIT; ++k)
            sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    C[row * width + col] = sum;
}
