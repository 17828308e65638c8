// Barriers that not all threads meet.
// kernel<false> commits the fault, kernel<true> does not; "<-" marks the lines of the report.

const int WIDTH = 64;

// The second warp never comes: it waits for a flag that is set only behind the barrier.
template <bool RIGHT>
__global__ void barrier_skipped(const int* in, int* out) {
    __shared__ int flag;
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t < 32 || RIGHT) {  // <-
        __syncthreads();  // <-
        if (t == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) {}  // <-
    }
    out[i] = in[i];
}

// The two warps wait at different barriers. Hardware that only counts lets both go, others
// hang; C++ promises nothing.
template <bool RIGHT>
__global__ void barrier_elsewhere(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t < 32) {  // <-
        tile[t] = in[i];
        if (!RIGHT) __syncthreads();  // <-
    } else {
        tile[t] = -in[i];
        if (!RIGHT) __syncthreads();  // <-
    }
    if (RIGHT) __syncthreads();
    out[i] = tile[WIDTH - 1 - t];
}

// All come to the barrier in the end, but the lanes of a warp in different rounds.
template <bool RIGHT>
__global__ void barrier_rounds(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];
#pragma unroll 1
    for (int k = 0; k < 2; ++k)
        if (k == (RIGHT ? 0 : t % 2)) __syncthreads();  // <-
    out[i] = tile[WIDTH - 1 - t];
}

// Threads that have left are not waited for: this works, until somebody needs them.
template <bool RIGHT>
__global__ void barrier_after_exit(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (!RIGHT && t >= 48) return;  // <-
    if (t < 48) tile[t] = in[i];
    __syncthreads();  // <-
    if (t < 48) out[i] = tile[47 - t];
}

// A named barrier (here number 1) is met by as many threads as it says; 96 never come.
template <bool RIGHT>
__global__ void barrier_count(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];
    if (RIGHT) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 1, 96;" ::: "memory");  // <-
    out[i] = tile[WIDTH - 1 - t];
}

// Blocks of 128 threads: each pair of warps has its own barrier, of 64 threads. Told 32, a
// warp meets nobody but itself.
template <bool RIGHT>
__global__ void named_barrier(const int* in, int* out) {
    __shared__ int tile[2 * WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * WIDTH + t;
    int pair = t / WIDTH;
    tile[t] = in[i];  // <-
    asm volatile("bar.sync %0, %1;" ::"r"(pair + 1), "r"(RIGHT ? 64 : 32) : "memory");
    out[i] = tile[pair * WIDTH + WIDTH - 1 - t % WIDTH];  // <-
}

// One warp produces, the other consumes. bar.arrive counts and goes on, bar.sync waits: it is
// the consumer who must wait.
template <bool RIGHT>
__global__ void producer_consumer(const int* in, int* out) {
    __shared__ int tile[32];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t < 32) {
        tile[t] = in[i];  // <-
        if (RIGHT) asm volatile("bar.arrive 1, 64;" ::: "memory");
        else asm volatile("bar.sync 1, 64;" ::: "memory");
    } else {
        if (RIGHT) asm volatile("bar.sync 1, 64;" ::: "memory");
        else asm volatile("bar.arrive 1, 64;" ::: "memory");
        out[i] = tile[t - 32];  // <-
    }
}

// Everybody waits for a flag that nobody sets.
template <bool RIGHT>
__global__ void endless_wait(const int* in, int* out, int* flag) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (RIGHT && i == 0) atomicExch(flag, 1);
    while (atomicAdd(flag, 0) == 0) {}  // <-
    out[i] = in[i];
}

// A shuffle whose mask names all lanes, in code that only half of them enter; the others
// wait for the block.
template <bool RIGHT>
__global__ void shuffle_mask(const int* in, int* out) {
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    int value = in[i];
    if (t % 32 < 16)
        value = __shfl_sync(RIGHT ? 0x0000ffff : 0xffffffff, value, 0);  // <-
    __syncthreads();
    out[i] = value;
}

// The same with a warp barrier.
template <bool RIGHT>
__global__ void warp_sync_mask(const int* in, int* out) {
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (t % 32 < 16) {
        out[i] = in[i];
        __syncwarp(RIGHT ? 0x0000ffff : 0xffffffff);  // <-
        out[i] += 1;
    }
    __syncthreads();
}
