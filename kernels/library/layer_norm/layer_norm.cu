// Layer normalisation: (x - mean) / sqrt(variance + epsilon) * gamma + beta, along rows.
//
// A block takes a row: its mean first, then the variance around it, then the results. Taking both
// sums in one pass (of x and of x * x) would save a read of the row and lose the variance's digits
// where the mean is large.
const int WIDTH = 128;

// The sum over the block, for every thread: by shuffles in a warp, then over the warps' sums.
__device__ float block_sum(float value, float* warps) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    __syncthreads();  // the last sum has been read
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int i = 0; i < WIDTH / 32; ++i)
        value += warps[i];
    return value;
}

__global__ void layer_norm(const float* in, const float* gamma, const float* beta, float* out,
                           int n, float epsilon) {
    __shared__ float warps[WIDTH / 32];
    const float* row = in + blockIdx.x * n;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += WIDTH)
        sum += row[i];
    float mean = block_sum(sum, warps) / n;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += WIDTH)
        squares += (row[i] - mean) * (row[i] - mean);
    float deviation = sqrtf(block_sum(squares, warps) / n + epsilon);
    for (int i = threadIdx.x; i < n; i += WIDTH)
        out[blockIdx.x * n + i] = (row[i] - mean) / deviation * gamma[i] + beta[i];
}
