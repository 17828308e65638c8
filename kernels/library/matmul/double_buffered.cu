// Two pairs of tiles: while one is being used, the next phase's operands are on their way.
//
// A thread fetches its two elements of the next phase into registers, works on the current
// tiles, and only then stores them into the other pair. The fetch's latency hides behind the
// multiply-adds, and one barrier a phase is enough: the tiles written in this phase were last
// read in the phase before, on the far side of a barrier.
template <int TILE>
__global__ void double_buffered(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[2][TILE][TILE];
    __shared__ float Bs[2][TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;

    As[0][y][x] = row < M && x < K ? A[row * K + x] : 0.0f;
    Bs[0][y][x] = y < K && col < N ? B[y * N + col] : 0.0f;
    __syncthreads();

    float sum = 0.0f;
    int now = 0;
    for (int next = TILE; next < K; next += TILE) {
        float a = row < M && next + x < K ? A[row * K + next + x] : 0.0f;
        float b = next + y < K && col < N ? B[(next + y) * N + col] : 0.0f;
        for (int k = 0; k < TILE; ++k)
            sum += As[now][y][k] * Bs[now][k][x];
        now = 1 - now;
        As[now][y][x] = a;
        Bs[now][y][x] = b;
        __syncthreads();
    }
    for (int k = 0; k < TILE; ++k)  // the last pair of tiles
        sum += As[now][y][k] * Bs[now][k][x];
    if (row < M && col < N)
        C[row * N + col] = sum;
}
