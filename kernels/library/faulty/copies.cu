// Copies that go on beside the thread, and barriers that are objects with phases: who touches the
// bytes too early. In shared memory, a block of 64 threads.

typedef unsigned long long Barrier;
const int WIDTH = 64;

#define SHARED(p) "r"((unsigned)__cvta_generic_to_shared(p))
#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: SHARED(to), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT() asm volatile("cp.async.wait_group 0;" ::: "memory")
#define COPY_OUT(to, from, bytes) \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" \
                 :: "l"(to), SHARED(from), "n"(bytes) : "memory")
#define ARRIVE(at) \
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: SHARED(at) : "memory")
#define OVER(over, at, parity) \
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;" \
                 " selp.b32 %0, 1, 0, p; }" : "=r"(over) : SHARED(at), "r"(parity) : "memory")

// Missing wait: nothing says that the copies are done, and a barrier does not ask.
template <bool RIGHT>
__global__ void missing_wait(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    COPY(&tile[t], &in[i]);  // <-
    COMMIT();
    if (RIGHT) WAIT();
    __syncthreads();
    out[i] = tile[WIDTH - 1 - t];  // <-
}

// Missing commit: the copies belong to no group yet, and the wait is for groups.
template <bool RIGHT>
__global__ void missing_commit(const int* in, int* out) {
    __shared__ int tile[WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    COPY(&tile[t], &in[i]);  // <-
    if (RIGHT) COMMIT();
    WAIT();
    __syncthreads();
    out[i] = tile[WIDTH - 1 - t];  // <-
}

// A stage used again: the next copy may land while the other warp still reads what was there.
template <bool RIGHT>
__global__ void stage_reuse(const int* in, int* out) {
    __shared__ int stage[WIDTH];
    int t = threadIdx.x;
    int sum = 0;
    for (int round = 0; round < 2; ++round) {
        COPY(&stage[t], &in[(blockIdx.x + round) % gridDim.x * WIDTH + t]);  // <-
        COMMIT();
        WAIT();
        __syncthreads();
        sum += stage[WIDTH - 1 - t];  // <-
        if (RIGHT) __syncthreads();
    }
    out[blockIdx.x * WIDTH + t] = sum;
}

// The wrong phase: a wait that does not change its parity. If it comes early, the phase before is
// over, and it lets its warp read what the other has not written; if it comes late, it never ends.
template <bool RIGHT>
__global__ void wrong_phase(const int* in, int* out) {
    __shared__ int tile[32];
    __shared__ Barrier full, empty;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: SHARED(&full) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: SHARED(&empty) : "memory");
    }
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < 2; ++round) {
        int over = 0;
        if (t < 32) {
            while (!over) OVER(over, &empty, round ^ 1);
            tile[lane] = in[blockIdx.x * WIDTH + 32 * round + lane];
            ARRIVE(&full);
        } else {
            while (!over) OVER(over, &full, RIGHT ? round : 0);  // <-
            sum += tile[lane];
            ARRIVE(&empty);
        }
    }
    out[blockIdx.x * WIDTH + t] = sum;
}

// Missing proxy fence: a copy in bulk reads shared memory by another way than threads write it,
// and a barrier alone does not bring the two together.
template <bool RIGHT>
__global__ void missing_proxy_fence(const int* in, int* out) {
    __shared__ alignas(16) int tile[WIDTH];
    int t = threadIdx.x;
    tile[WIDTH - 1 - t] = in[blockIdx.x * WIDTH + t];  // <-
    if (RIGHT) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        COPY_OUT(&out[blockIdx.x * WIDTH], tile, sizeof tile);  // <-
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
