// launch: grid 2 block 64, i32[128]=arange i32[128] 100
__global__ void return_before(const int* in, int* out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    if (i >= n) return;
    out[i] = s[63 - t];
}
