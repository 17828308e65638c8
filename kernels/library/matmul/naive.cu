// C = A * B with every operand fetched from global memory.
// A is M x K, B is K x N, C is M x N, all row-major. One thread computes one element of C.

// The usual mapping: x runs along a row of C. The 32 threads of a warp then read 32
// neighbours of B (coalesced) and, where they share a row, one element of A (a broadcast).
__global__ void naive(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}

// Square matrices, and a thread without an element leaves at once. That is safe here: no
// barrier follows. In a kernel with __syncthreads() it would be a trap.
__global__ void naive_square(const float* A, const float* B, float* C, int N) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= N || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < N; ++k)
        sum += A[row * N + k] * B[k * N + col];
    C[row * N + col] = sum;
}

// The mapping to avoid: x runs down a column of C. Neighbouring threads read A and write C a
// whole row apart, so that nearly every lane touches a 32-byte sector of its own.
__global__ void naive_strided(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
