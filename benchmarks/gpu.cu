// One limit of a GPU each. Results are written so that nothing is optimised away.

extern "C" __global__ void nothing() {}

// Takes so many cycles, whatever it runs beside.
extern "C" __global__ void spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

extern "C" __global__ void cycles(long long* out, float* sink, int rounds) {
    float a = threadIdx.x, b = a + 1;
    long long begin = clock64();
    for (int i = 0; i < rounds; i++)
        a = a * b + b;
    out[0] = clock64() - begin;
    sink[0] = a;
}

// A chain of loads, each of which says where the next one goes: 0 through L1, 1 past it.
extern "C" __global__ void chase(const int* next, int steps, int past, long long* out, int* sink) {
    int at = 0;
    for (int i = 0; i < steps; i++)
        at = past ? __ldcg(next + at) : next[at];
    long long begin = clock64();
    for (int i = 0; i < steps; i++)
        at = past ? __ldcg(next + at) : next[at];
    out[0] = clock64() - begin;
    sink[0] = at;
}

extern "C" __global__ void chase_shared(const int* given, int steps, long long* out, int* sink) {
    __shared__ int next[1024];
    next[threadIdx.x] = given[threadIdx.x];
    __syncthreads();
    int at = threadIdx.x;
    long long begin = clock64();
    for (int i = 0; i < steps; i++)
        at = next[at];
    if (threadIdx.x == 0)
        out[0] = clock64() - begin;
    sink[threadIdx.x] = at;
}

extern "C" __global__ void chase_atomic(int* at, int steps, long long* out, int* sink) {
    int old = 0;
    long long begin = clock64();
    for (int i = 0; i < steps; i++)
        old = atomicAdd(at + old, 0);
    out[0] = clock64() - begin;
    sink[0] = old;
}

extern "C" __global__ void barriers(int steps, long long* out) {
    long long begin = clock64();
    for (int i = 0; i < steps; i++)
        __syncthreads();
    if (threadIdx.x == 0)
        out[0] = clock64() - begin;
}

extern "C" __global__ void copy(const float4* in, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// All threads read an array past L1, many times over; `apart`: 4 bytes in every 128.
extern "C" __global__ void read_l2(const float4* in, int n, int rounds, float* sink) {
    float sum = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
            float4 v = __ldcg(in + i);
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == 1.5f)
        sink[0] = sum;
}

extern "C" __global__ void read_apart(const float* in, int lines, int rounds, float* sink) {
    float sum = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
            sum += __ldcg(in + i * 32);
    if (sum == 1.5f)
        sink[0] = sum;
}

extern "C" __global__ void write_apart(float* out, int lines, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
            out[i * 32] = round;
}

// Each warp adds at a place of its own: a word for all lanes (each its own request), or 32 in a row.
extern "C" __global__ void add_one(int* sum, int words, int stride, int rounds) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0)
        for (int round = 0; round < rounds; round++)
            atomicAdd(sum + (warp + round) % words * stride, 1);
}

extern "C" __global__ void add_one_float(float* sum, int words, int stride, int rounds) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0)
        for (int round = 0; round < rounds; round++)
            atomicAdd(sum + (warp + round) % words * stride, 1.0f);
}

extern "C" __global__ void add_row(int* sum, int rows, int rounds) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++)
        atomicAdd(sum + (thread / 32 + round) % rows * 32 + thread % 32, 1);
}

extern "C" __global__ void add_random(int* sum, int words, int rounds) {
    unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 1;
    for (int round = 0; round < rounds; round++) {
        state = state * 1664525u + 1013904223u;
        atomicAdd(sum + (state >> 8) % words, 1);
    }
}

// Pieces of `each` float4 at places in no order, each read or written by neighbouring lanes.
__device__ long place(unsigned thread, int each, int pieces, int round) {
    unsigned piece = (thread / each + round * (gridDim.x * blockDim.x / each)) * 2654435761u;
    return (long)(piece % pieces) * each + thread % each;
}

extern "C" __global__ void read_pieces(const float4* in, int each, int pieces, int rounds,
                                       float* sink) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 4
    for (int round = 0; round < rounds; round++) {
        float4 v = __ldcg(in + place(thread, each, pieces, round));
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.5f)
        sink[0] = sum;
}

extern "C" __global__ void write_pieces(float4* out, int each, int pieces, int rounds) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++)
        out[place(thread, each, pieces, round)] = make_float4(1, 2, 3, round);
}

extern "C" __global__ void write_l2(float4* out, int n, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            out[i] = make_float4(round, 1, 2, 3);
}

// All lanes of all warps go to one word of shared memory, which the compiler does not know: `mask`
// is 0.
template <class T, bool ADDS>
__device__ void at_one_word(long long* out, int mask, int rounds) {
    __shared__ T words[32];
    words[threadIdx.x % 32] = 0;
    __syncthreads();
    T* word = words + (threadIdx.x & mask);
    long long begin = clock64();
    for (int round = 0; round < rounds; round++) {
        if (ADDS)
            atomicAdd((float*)word, 1.0f);
        else
            atomicMax((int*)word, round * 7 + threadIdx.x);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = clock64() - begin;
}

extern "C" __global__ void shared_max(long long* out, int mask, int rounds) {
    at_one_word<int, false>(out, mask, rounds);
}

extern "C" __global__ void shared_add(long long* out, int mask, int rounds) {
    at_one_word<float, true>(out, mask, rounds);
}
