// launch: grid 1 block 64, i32[64]=arange i32[64]
__global__ void one_line(const int* in, int* out) {
    __shared__ int s[64]; int t = threadIdx.x; s[t] = in[t]; __syncthreads(); int other = s[63 - t];
    __syncthreads(); s[(t + 5) % 64] = other; __syncthreads(); out[t] = s[t] + s[63 - t];
}
