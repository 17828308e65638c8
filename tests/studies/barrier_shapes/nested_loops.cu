// launch: grid 2 block 64, i32[128]=arange i32[128] 3
__global__ void nested_loops(const int* in, int* out, int rounds) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    int sum = 0;
    for (int outer = 0; outer < rounds; ++outer) {
        for (int inner = 0; inner < 2; ++inner) {
            s[t] = in[i] + outer * inner;
            __syncthreads();
            for (int k = 0; k < 4; ++k)
                sum += s[(t + 17 * k + 33) % 64];
            __syncthreads();
        }
        sum += outer;
    }
    out[i] = sum;
}
