// A barrier forgotten in two kernels that everybody writes; see reduction/ and stencil/.
// kernel<false> commits the fault, kernel<true> does not; "<-" marks the lines of the report.

const int WIDTH = 64;

// The sum of a block's elements by halving: each round needs all sums of the round before.
template <bool RIGHT>
__global__ void missing_in_reduction(const int* in, int* out) {
    __shared__ int sums[2 * WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * WIDTH + t;
    sums[t] = in[i];
    __syncthreads();
    for (int half = WIDTH; half > 0; half /= 2) {
        if (t < half) sums[t] += sums[t + half];  // <-
        if (RIGHT) __syncthreads();
    }
    if (t == 0) out[i] = sums[0];
}

// Each output is the sum of three neighbours, which other warps have loaded.
template <bool RIGHT>
__global__ void missing_in_stencil(const int* in, int* out) {
    __shared__ int tile[WIDTH + 2];  // with a halo of one element on either side
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    int n = gridDim.x * WIDTH;
    tile[t + 1] = in[i];  // <-
    if (t == 0) tile[0] = i > 0 ? in[i - 1] : 0;
    if (t == WIDTH - 1) tile[WIDTH + 1] = i + 1 < n ? in[i + 1] : 0;
    if (RIGHT) __syncthreads();
    out[i] = tile[t] + tile[t + 1] + tile[t + 2];  // <-
}
