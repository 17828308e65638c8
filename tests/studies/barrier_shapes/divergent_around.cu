// launch: grid 2 block 96, i32[192]=arange i32[192]
__global__ void divergent_around(const int* in, int* out) {
    __shared__ int s[96];
    int t = threadIdx.x, i = blockIdx.x * 96 + t;
    if (t % 2) {
        s[t] = in[i];
    } else {
        s[t] = -in[i];
    }
    __syncthreads();
    if (t < 48) {
        if (t % 3 == 0)
            out[i] = s[95 - t];
        else
            out[i] = s[t + 48];
    }
}
