// Sums of floats. A block of 256 threads adds up 256 elements; what lies behind the end of
// the input counts as zero.

const int WIDTH = 256;

// Each block leaves its sum in sums[blockIdx.x]. A tree in shared memory: in every round the
// lower half of the threads adds the upper half's elements to its own.
__global__ void shared_tree(const float* in, float* sums, int n) {
    __shared__ float partial[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    partial[t] = i < n ? in[i] : 0.0f;
    for (int half = WIDTH / 2; half > 0; half /= 2) {
        __syncthreads();  // the round before (at first: the loads) is complete
        if (t < half)
            partial[t] += partial[t + half];
    }
    if (t == 0)
        sums[blockIdx.x] = partial[0];
}

// The sum over a warp, in lane 0: each round fetches from a lane half as far away. The
// registers of a warp need no shared memory and no barrier.
__device__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffff, value, distance);
    return value;
}

// Warps by shuffles, then the first warp adds up the eight warps' sums.
__device__ float block_sum(float value) {
    __shared__ float of_warp[WIDTH / 32];
    int t = threadIdx.x;
    value = warp_sum(value);
    if (t % 32 == 0)
        of_warp[t / 32] = value;
    __syncthreads();  // all warps have left their sum
    if (t < 32)
        value = warp_sum(t < WIDTH / 32 ? of_warp[t] : 0.0f);
    return value;
}

__global__ void shuffle(const float* in, float* sums, int n) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    float sum = block_sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// One sum of everything: blocks add to it in any order, so the last bits may differ from run
// to run on a GPU.
__global__ void atomics(const float* in, float* sum, int n) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    float value = block_sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0)
        atomicAdd(sum, value);
}
