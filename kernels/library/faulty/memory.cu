// Accesses to memory that is not there, not aligned, not writable, or not written yet.
// kernel<false> commits the fault, kernel<true> does not; "<-" marks the lines of the report.

const int WIDTH = 64;

// The last block has threads to spare; without the guard they write behind the array.
template <bool RIGHT>
__global__ void no_guard(const int* in, int* out, int n) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (!RIGHT && i >= n)
        out[i] = 0;  // <-
    if (i < n)
        out[i] = in[i];
}

// Reads one element in front of the array: on a GPU perhaps the end of its neighbour.
template <bool RIGHT>
__global__ void neighbour(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int before = RIGHT && i == 0 ? i : i - 1;
    out[i] = in[i] - in[before];  // <-
}

template <bool RIGHT>
__global__ void past_shared(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];
    __syncthreads();
    out[i] = tile[RIGHT ? (t + 1) % WIDTH : t + 1];  // <-
}

// An access of 8 bytes must stand at a multiple of 8.
template <bool RIGHT>
__global__ void misaligned(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int n = gridDim.x * WIDTH;
    int first = RIGHT ? i / 2 * 2 : i;
    if (first + 1 >= n) first = n - 2;
    long long both = *reinterpret_cast<const long long*>(in + first);  // <-
    out[i] = static_cast<int>(both) + static_cast<int>(both >> 32);
}

// A cast does not make a constant array writable.
template <bool RIGHT>
__global__ void read_only(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int value = in[i];
    if (RIGHT) out[i] = value;
    else const_cast<int*>(in)[i] = value + 1;  // <-
}

// The caller may pass no second array.
template <bool RIGHT>
__global__ void null_pointer(const int* in, int* out, const int* maybe) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int value = in[i];
    if (!RIGHT || maybe)
        value += maybe[i];  // <-
    out[i] = value;
}

// An address of shared memory, used as one of global memory.
template <bool RIGHT>
__global__ void wrong_space(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t] = in[i];
    const int* place = RIGHT ? in + i : tile + t;
    int value;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(place));  // <-
    out[i] = value;
}

// Half of the tile is read before anybody wrote to it.
template <bool RIGHT>
__global__ void uninitialised_shared(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    if (RIGHT || t < 32)
        tile[t] = in[i];
    __syncthreads();
    out[i] = tile[WIDTH - 1 - t];  // <-
}

// One element of a thread's own array is written, another one read.
template <bool RIGHT>
__global__ void uninitialised_local(const int* in, int* out) {
    int own[4];
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (RIGHT)
        for (int k = 0; k < 4; ++k)
            own[(k + i) % 4] = 0;
    own[in[i] % 4] = in[i];
    out[i] = own[(in[i] + 1) % 4];  // <-
}

template <bool RIGHT>
__global__ void assertion(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    assert(in[i] >= (RIGHT ? 0 : 1 << 30));  // <-
    out[i] = in[i];
}

template <bool RIGHT>
__global__ void trap(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (in[i] < (RIGHT ? 0 : 1 << 30))
        __trap();  // <-
    out[i] = in[i];
}

// Nobody copies numbers into the first table, so it holds zeros.
__constant__ int UNSET[2];
__constant__ int FILLED[2] = {3, 5};

template <bool RIGHT>
__global__ void unset_constant(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    out[i] = in[i] + (RIGHT ? FILLED : UNSET)[i % 2];  // <-
}

// The read-only path is not coherent within a launch: no barrier makes the store visible to it.
template <bool RIGHT>
__global__ void read_only_load(const int* in, int* out, int* work) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int other = blockIdx.x * WIDTH + WIDTH - 1 - threadIdx.x;
    work[i] = in[i];  // <-
    __syncthreads();
    out[i] = RIGHT ? work[other] : __ldg(work + other);  // <-
}
