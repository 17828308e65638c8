// launch: grid 1 block 64, i32[64]=arange i32[64]
__global__ void while_flag(const int* in, int* out) {
    __shared__ int changed, s[64];
    int t = threadIdx.x;
    s[t] = in[t] % 7;
    bool again = true;
    while (again) {
        __syncthreads();
        if (t == 0) changed = 0;
        int mine = s[t], other = s[(t + 40) % 64];
        __syncthreads();
        if (other > mine) {
            s[t] = other;
            atomicExch(&changed, 1);
        }
        __syncthreads();
        again = changed != 0;
    }
    out[t] = s[t];
}
