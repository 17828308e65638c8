// Sums of rows with a missing barrier: README.md finds it.
#include <cstdio>
#include <vector>

__global__ void row_sums(const float *x, float *sums, int columns) {
    __shared__ float part[128];
    int t = threadIdx.x;
    float sum = 0;
    for (int c = t; c < columns; c += 128) sum += x[blockIdx.x * columns + c];
    part[t] = sum;
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}

int main() {
    const int rows = 64, columns = 500;
    std::vector<float> host(rows * columns, 1.0f), result(rows);
    float *x, *sums;
    cudaMalloc(&x, rows * columns * sizeof(float));
    cudaMalloc(&sums, rows * sizeof(float));
    cudaMemcpy(x, host.data(), rows * columns * sizeof(float), cudaMemcpyHostToDevice);
    row_sums<<<rows, 128>>>(x, sums, columns);
    cudaMemcpy(result.data(), sums, rows * sizeof(float), cudaMemcpyDeviceToHost);
    printf("row 0: %g\n", result[0]);
    cudaFree(x);
    cudaFree(sums);
}
