// A sparse matrix times a vector, y = A x; A in compressed rows (CSR).
//
// starts[r] is where row r's numbers begin in columns and values, starts[r + 1] where they end.

// A thread a row: neighbouring threads read far apart, and a long row keeps its warp waiting.
__global__ void by_thread(const int* starts, const int* columns, const float* values,
                          const float* x, float* y, int m) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m)
        return;
    float sum = 0.0f;
    for (int i = starts[row]; i < starts[row + 1]; ++i)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// A warp a row: its lanes read neighbours, and add up by shuffles.
__global__ void by_warp(const int* starts, const int* columns, const float* values,
                        const float* x, float* y, int m) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= m)
        return;
    float sum = 0.0f;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32)
        sum += values[i] * x[columns[i]];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0)
        y[row] = sum;
}
