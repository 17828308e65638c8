// Races in shared memory between the two warps of a block of 64 threads.
//
// Every kernel of this folder is made twice: kernel<false> commits a fault, kernel<true> does
// not, and they differ in nothing else. The lines that a report names are marked "<-".

const int WIDTH = 64;

// Read after write: a warp may read the mirror half before the other warp has written it.
template <bool RIGHT>
__global__ void shared_raw(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];  // <-
    if (RIGHT) __syncthreads();
    out[i] = tile[WIDTH - 1 - t];  // <-
}

// Write after read: a warp may replace what the other has not read yet.
template <bool RIGHT>
__global__ void shared_war(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];
    __syncthreads();
    int mirrored = tile[WIDTH - 1 - t];  // <-
    if (RIGHT) __syncthreads();
    tile[t] = mirrored + 1;  // <-
    __syncthreads();
    out[i] = tile[t];
}

// Write after write: both warps write the same 32 words; which one is last is not defined.
template <bool RIGHT>
__global__ void shared_waw(const int* in, int* out) {
    __shared__ int tile[32];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t < 32)
        tile[t] = in[i];  // <-
    if (RIGHT) __syncthreads();
    if (t >= 32)
        tile[t - 32] = in[i];  // <-
    __syncthreads();
    out[i] = tile[t % 32];
}

// All write the same value: harmless on today's GPUs, but not promised.
template <bool RIGHT>
__global__ void shared_same_value(const int* in, int* out) {
    __shared__ int any;
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t == 0) any = 0;
    __syncthreads();
    if (in[i] >= 0) {
        if (RIGHT) atomicExch(&any, 1);
        else any = 1;  // <-
    }
    __syncthreads();
    out[i] = any;
}
