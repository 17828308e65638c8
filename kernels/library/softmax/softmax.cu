// out[row][j] = exp(in[row][j]) / sum over k of exp(in[row][k]), for M rows of N elements.
//
// The largest element of the row is subtracted first: that changes nothing in the quotient,
// and no exponential can overflow. One block of 128 threads a row: a thread goes through its
// columns three times, for the maximum, for the sum, and to write.

const int WIDTH = 128;
const int WARPS = WIDTH / 32;

__device__ float add(float a, float b) { return a + b; }

// Combines a value of each thread of the block; all threads get the result. Butterfly
// shuffles leave it in every lane of a warp, shared memory takes it across the warps.
template <float (*COMBINE)(float, float)>
__device__ float combine(float value) {
    __shared__ float of_warp[WARPS];
    for (int distance = 16; distance > 0; distance /= 2)
        value = COMBINE(value, __shfl_xor_sync(0xffffffff, value, distance));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
    for (int warp = 1; warp < WARPS; ++warp)
        value = COMBINE(value, of_warp[warp]);
    return value;
}

__global__ void rows(const float* in, float* out, int N) {
    const float* row = in + blockIdx.x * N;
    float largest = __int_as_float(0xff800000);  // minus infinity
    for (int j = threadIdx.x; j < N; j += WIDTH)
        largest = fmaxf(largest, row[j]);
    largest = combine<fmaxf>(largest);
    float sum = 0.0f;
    for (int j = threadIdx.x; j < N; j += WIDTH)
        sum += expf(row[j] - largest);
    sum = combine<add>(sum);
    for (int j = threadIdx.x; j < N; j += WIDTH)
        out[blockIdx.x * N + j] = expf(row[j] - largest) / sum;
}
