__global__ void block_sum(const float* x, float* sums, int n) {
    __shared__ float part[128];
    int t = threadIdx.x;
    int i = blockIdx.x * 128 + t;
    part[t] = i < n ? x[i] : 0.0f;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (t < half)
            part[t] += part[t + half];
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
