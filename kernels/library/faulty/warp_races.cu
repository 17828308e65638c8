// Races between the lanes of one warp: "warp-synchronous" code, which took it for granted that
// the lanes of a warp go in step. Since Volta they need not; __syncwarp() orders them.
// kernel<false> commits the fault, kernel<true> does not; "<-" marks the lines of the report.

const int LANES = 32;

template <bool RIGHT>
__global__ void lanes_raw(const int* in, int* out) {
    __shared__ int tile[LANES];
    int t = threadIdx.x;
    int i = blockIdx.x * LANES + t;
    tile[t] = in[i];  // <-
    if (RIGHT) __syncwarp();
    out[i] = tile[LANES - 1 - t];  // <-
}

template <bool RIGHT>
__global__ void lanes_war(const int* in, int* out) {
    __shared__ int tile[LANES];
    int t = threadIdx.x;
    int i = blockIdx.x * LANES + t;
    tile[t] = in[i];
    __syncwarp();
    int mirrored = tile[LANES - 1 - t];  // <-
    if (RIGHT) __syncwarp();
    tile[t] = mirrored + 1;  // <-
    __syncwarp();
    out[i] = tile[t];
}

// Two lanes of one instruction write one word.
template <bool RIGHT>
__global__ void lanes_waw(const int* in, int* out) {
    __shared__ int tile[LANES / 2];
    int t = threadIdx.x;
    int i = blockIdx.x * LANES + t;
    if (!RIGHT || t % 2 == 1)
        tile[t / 2] = in[i];  // <-
    __syncwarp();
    out[i] = tile[t / 2];
}

// A warp barrier with a mask orders its members only: each half by itself is not enough.
template <bool RIGHT>
__global__ void half_warp_sync(const int* in, int* out) {
    __shared__ int tile[LANES];
    int t = threadIdx.x;
    int i = blockIdx.x * LANES + t;
    unsigned int half = t < 16 ? 0x0000ffff : 0xffff0000;
    tile[t] = in[i];  // <-
    __syncwarp(RIGHT ? 0xffffffff : half);
    out[i] = tile[LANES - 1 - t];  // <-
}

// A warp barrier does not order two warps (blocks of 64 threads).
template <bool RIGHT>
__global__ void warp_sync_for_block(const int* in, int* out) {
    __shared__ int tile[2 * LANES];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * LANES + t;
    tile[t] = in[i];  // <-
    __syncwarp();
    int other = RIGHT ? t ^ 31 : 2 * LANES - 1 - t;
    out[i] = tile[other];  // <-
}
