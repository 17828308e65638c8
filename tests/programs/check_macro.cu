#include <cstdio>
#include <cstdlib>
#include <chrono>
#include <vector>

#define CHECK(call)                                                     \
    {                                                                   \
        const cudaError_t error = call;                                 \
        if (error != cudaSuccess) {                                     \
            fprintf(stderr, "Error: %s:%d\n", __FILE__, __LINE__);      \
            exit(1);                                                    \
        }                                                               \
    }
#define IDX(r, c, n) ((r) * (n) + (c))

const int TILE = 8;

__global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE + 1];
    int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
    if (r < n && c < n) tile[threadIdx.y][threadIdx.x] = in[IDX(r, c, n)];
    __syncthreads();
    c = blockIdx.y * TILE + threadIdx.x, r = blockIdx.x * TILE + threadIdx.y;
    if (r < n && c < n) out[IDX(r, c, n)] = tile[threadIdx.x][threadIdx.y];
}

static double seconds() {
    using clock = std::chrono::high_resolution_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

bool verify(const std::vector<float> &a, const std::vector<float> &b, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (a[IDX(i, j, n)] != b[IDX(j, i, n)]) return false;
    return true;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1024;
    std::vector<float> h(n * n), g(n * n);
    float *in, *out;
    CHECK(cudaMalloc(&in, n * n * sizeof(float)));
    CHECK(cudaMalloc((void **)&out, n * n * sizeof(float)))
    double start = seconds();
    dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), block(TILE, TILE);
    transpose<<<grid, block>>>(in, out, n);
    CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    printf("%s in %g s\n", verify(h, g, n) ? "ok" : "wrong", seconds() - start);
    return EXIT_SUCCESS;
}
