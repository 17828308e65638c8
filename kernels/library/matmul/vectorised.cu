// 128-bit global loads and stores: a quarter of the requests for the same bytes.
//
// TILE/4 x TILE threads compute a tile of C, four neighbouring outputs each. Every thread
// fetches four neighbours of A and four of B by one float4 load each. A float4 must be
// aligned to 16 bytes, so each row has to start at such an address: N and K are multiples of
// 4. Then four neighbours lie either all inside a matrix or all outside.
template <int TILE>
__global__ void vectorised(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float4 As[TILE][TILE / 4];
    __shared__ float4 Bs[TILE][TILE / 4];
    const float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + 4 * x;
    float4 sum = zero;
    for (int start = 0; start < K; start += TILE) {
        int k = start + 4 * x;
        As[y][x] = row < M && k < K
            ? *reinterpret_cast<const float4*>(&A[row * K + k]) : zero;
        Bs[y][x] = start + y < K && col < N
            ? *reinterpret_cast<const float4*>(&B[(start + y) * N + col]) : zero;
        __syncthreads();
        for (int step = 0; step < TILE; ++step) {
            float a = (&As[y][0].x)[step];
            float4 b = Bs[step][x];
            sum.x += a * b.x;
            sum.y += a * b.y;
            sum.z += a * b.z;
            sum.w += a * b.w;
        }
        __syncthreads();
    }
    if (row < M && col < N)
        *reinterpret_cast<float4*>(&C[row * N + col]) = sum;
}
