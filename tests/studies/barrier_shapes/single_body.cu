// launch: grid 1 block 128, i32[128]=arange i32[128]
__global__ void single_body(const int* in, int* out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    out[t] = s[0];
}
