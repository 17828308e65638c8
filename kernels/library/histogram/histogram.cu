// How often each byte occurs: bins[v] += 1 for every element v.

const int BINS = 256;

// Every element is an atomic addition in global memory: elements of equal value, wherever
// they are, wait for each other.
__global__ void global_atomics(const unsigned char* in, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[in[i]], 1u);
}

// Each block of 256 threads counts in a copy of its own in shared memory, and adds that to
// the result at the end: as many global additions as there are bins, not elements. A block
// takes more elements than it has threads, walking through the input by the grid's width.
__global__ void privatised(const unsigned char* in, unsigned int* bins, int n) {
    __shared__ unsigned int own[BINS];
    int t = threadIdx.x;
    own[t] = 0;
    __syncthreads();  // nobody counts before all bins are zero
    for (int i = blockIdx.x * BINS + t; i < n; i += gridDim.x * BINS)
        atomicAdd(&own[in[i]], 1u);
    __syncthreads();  // nobody hands on a bin before all have counted
    if (own[t] > 0)
        atomicAdd(&bins[t], own[t]);
}
