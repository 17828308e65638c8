// launch: grid 1 block 128, i32[128]=arange i32[128]
__global__ void do_while(const int* in, int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, distance = 64;
    s[t] = in[t];
    __syncthreads();
    do {
        int other = s[(t + distance) % 128];
        __syncthreads();
        s[t] += other;
        __syncthreads();
        distance /= 2;
    } while (distance > 0);
    out[t] = s[127 - t];
}
