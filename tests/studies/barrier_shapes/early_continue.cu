// launch: grid 1 block 64, i32[64]=arange i32[64] 6
__global__ void early_continue(const int* in, int* out, int rounds) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < rounds; ++k) {
        if (k % 3 == 1)
            continue;
        s[(t + k) % 64] = in[t];
        __syncthreads();
        sum += s[63 - t];
        __syncthreads();
    }
    out[t] = sum;
}
