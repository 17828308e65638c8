// launch: grid 2 block 64, i32[128]=arange i32[128]
__global__ void lambda(const int* in, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    auto keep = [&](int value) { s[t] = value; };
    auto across = [&]() {
        int other = s[63 - t];
        return other;
    };
    keep(in[i]);
    __syncthreads();
    int value = across();
    __syncthreads();
    keep(value + 1);
    __syncthreads();
    out[i] = across();
}
