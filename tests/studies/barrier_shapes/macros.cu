// launch: grid 2 block 64, i32[128]=arange i32[128]
#define HERE (blockIdx.x * 64 + threadIdx.x)
#define LOAD(to, from) to[threadIdx.x] = from[HERE]
#define EACH(k, n) for (int k = 0; k < (n); ++k)
__global__ void macros(const int* in, int* out) {
    __shared__ int s[64];
    int sum = 0;
    EACH(k, 3) {
        LOAD(s, in) + k;
        __syncthreads();
        sum += s[63 - threadIdx.x];
        __syncthreads();
    }
    out[HERE] = sum;
}
