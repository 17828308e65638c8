// Kernels with one defect each, and beside it their twins without it.

struct Particle {
    float x, y, z, w, vx, vy, vz, m;
};

__global__ void fields(const Particle* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].x;
}
__global__ void arrays(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

__global__ void gather(const float* in, const int* index, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[index[i]];
}

__global__ void fill(float* out, int by) {
    for (int k = 0; k < 16; k++)
        out[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x + by] = k;
}

__global__ void narrow(const unsigned char* in, unsigned char* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] ^ 255;
}
__global__ void wide(const uchar4* in, uchar4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 v = in[i];
    out[i] = make_uchar4(v.x ^ 255, v.y ^ 255, v.z ^ 255, v.w ^ 255);
}

template <int PITCH> __global__ void columns(const float* in, float* out) {
    __shared__ float tile[32][PITCH];
    int t = threadIdx.x, from = blockIdx.x * 1024;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][t] = in[from + row * 32 + t];
    __syncthreads();
    float sum = 0;
    for (int round = 0; round < 8; round++)
        for (int row = threadIdx.y; row < 32; row += 8)
            sum += tile[t][(row + round) % 32];
    out[(blockIdx.x * 8 + threadIdx.y) * 32 + t] = sum;
}

// Distances to all points: from global memory, and a tile at a time.
__global__ void all_points(const float* points, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float here = points[i], sum = 0;
    for (int k = 0; k < n; k++)
        sum += points[k] * here;
    out[i] = sum;
}
__global__ void tiled_points(const float* points, float* out, int n) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float here = points[i], sum = 0;
    for (int first = 0; first < n; first += 256) {
        __syncthreads();
        tile[threadIdx.x] = points[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; k++)
            sum += tile[k] * here;
    }
    out[i] = sum;
}

// Every block reads the whole table: for one row of results, or for four.
template <int ROWS> __global__ void table(const float4* table, float* out) {
    float sums[ROWS] = {};
    for (int k = threadIdx.x; k < 16384; k += 1024) {
        float4 v = table[k];
        for (int row = 0; row < ROWS; row++)
            sums[row] += rsqrtf(v.x + v.y + row) * rsqrtf(v.z + v.w + row);
    }
    for (int row = 0; row < ROWS; row++)
        out[(blockIdx.x * ROWS + row) * 1024 + threadIdx.x] = sums[row];
}

__global__ void in_memory(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < n; k++)
        out[i] += in[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
}
__global__ void in_register(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = out[i];
    for (int k = 0; k < n; k++)
        sum += in[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
    out[i] = sum;
}

__global__ void many_registers(const float* in, float* out) {
    float v[48];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 48; k++)
        v[k] = in[(i + k * 977) & 0xffff];
    for (int round = 0; round < 20; round++)
#pragma unroll
        for (int k = 0; k < 48; k++)
            v[k] = v[k] * v[(k + 7) % 48] + v[(k + 13) % 48];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 48; k++)
        sum += v[k];
    out[i] = sum;
}

// Each load waits for the one before: more warps have more under way.
__global__ void waits(const int* zeros, int* out, int steps) {
    int at = 0;
    for (int k = 0; k < steps; k++)
        at += zeros[at + (k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void loop(const float* in, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i] * in[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int STEP> __global__ void ways(float* out, int n) {
    float v = threadIdx.x;
    if (threadIdx.x / STEP % 2)
        for (int k = 0; k < n; k++)
            v = sinf(v) * 3 + 1;
    else
        for (int k = 0; k < n; k++)
            v = rsqrtf(v) * 5 + 2 + v * v * v;
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void count_all(const int* in, int* bins) {
    atomicAdd(bins + in[blockIdx.x * blockDim.x + threadIdx.x] % 64, 1);
}
__global__ void count_in_block(const int* in, int* bins) {
    __shared__ int mine[64];
    if (threadIdx.x < 64)
        mine[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(mine + in[blockIdx.x * blockDim.x + threadIdx.x] % 64, 1);
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}

__global__ void every_block(const float* in, float* sum, int n) {
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += in[i];
    for (int by = 16; by; by /= 2)
        mine += __shfl_down_sync(~0u, mine, by);
    if (threadIdx.x == 0)
        atomicAdd(sum, mine);
}

__global__ void shared_word(const float* in, float* out, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int k = 0; k < n; k++)
        atomicAdd(&sum, in[(blockIdx.x * n + k) * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
__global__ void warp_sums(const float* in, float* out, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int k = 0; k < n; k++) {
        float v = in[(blockIdx.x * n + k) * blockDim.x + threadIdx.x];
        for (int by = 16; by; by /= 2)
            v += __shfl_down_sync(~0u, v, by);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&sum, v);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

__global__ void no_sums(int* next, int* lock, int* out, int n) {
    __shared__ int mine, held;
    for (int k = 0; k < n; k++) {
        if (threadIdx.x == 0) {
            mine = atomicAdd(next, 1);
            while (atomicCAS(lock, 0, 1)) {
            }
            atomicExch(lock, 0);
        }
        __syncthreads();
        if (mine % 256 == threadIdx.x)
            atomicExch(&held, k);
        atomicCAS(&held, mine, k);
        __syncthreads();
    }
    out[blockIdx.x] = held;
}

template <bool WAITS> __global__ void alone(float* out, int n) {
    __shared__ volatile float mine[256];  // or it would be no shared memory without barriers
    mine[threadIdx.x] = threadIdx.x;
    for (int k = 0; k < n; k++) {
        mine[threadIdx.x] = mine[threadIdx.x] * 0.5f + k;
        if (WAITS)
            __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = mine[threadIdx.x];
}
