// Bank conflicts, and how a padding column removes them.
//
// The tile of B is kept transposed, Bs[column][k], as a kernel does that wants to read along
// k. A warp of TILE = 32 then stores, and reads, 32 elements that lie a row of Bs apart.
// Shared memory has 32 banks, one 32-bit word wide each: with rows of 32 words all 32
// elements fall in one bank, and the access takes 32 passes (wavefronts) instead of one.
// A row of 33 words (PAD = 1) moves each element on by one bank: one pass again.
template <int TILE, int PAD>
__global__ void transposed(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE + PAD];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        As[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0.0f;
        Bs[x][y] = start + y < K && col < N ? B[(start + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += As[y][k] * Bs[x][k];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
