// Double buffering without registers in between: cp.async brings the next tiles by itself.
//
// Each thread has one element of A and one of B copied straight into shared memory; outside the
// matrices the copy writes zeros. The next phase's copies are one group, and a phase begins by
// waiting for all groups but that one. A wait is for the thread's own copies: the barrier after
// it is what makes the tiles whole for everybody, and the one at the end of a phase keeps the
// next copies out of tiles that are still being read.

__device__ void copy(float* to, const float* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
}

template <int TILE>
__global__ void async_copy(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[2][TILE][TILE];
    __shared__ float Bs[2][TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int col = blockIdx.x * TILE + x;

    auto fetch = [&](int stage, int start) {
        bool in_a = row < M && start + x < K, in_b = start + y < K && col < N;
        const float* a = in_a ? &A[row * K + start + x] : A;
        const float* b = in_b ? &B[(start + y) * N + col] : B;
        copy(&As[stage][y][x], a, in_a ? 4 : 0);
        copy(&Bs[stage][y][x], b, in_b ? 4 : 0);
    };

    fetch(0, 0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    float sum = 0.0f;
    int now = 0;
    for (int start = 0; start < K; start += TILE) {
        if (start + TILE < K)
            fetch(1 - now, start + TILE);
        // In the last phase an empty group, so that the wait is the same.
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += As[now][y][k] * Bs[now][k][x];
        __syncthreads();
        now = 1 - now;
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
