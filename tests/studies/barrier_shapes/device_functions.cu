// launch: grid 2 block 64, f32[128]=arange f32[128]
__device__ void put(float* s, const float* in, int t) {
    s[t] = in[t] * 2.0f;
}
__device__ __noinline__ float take(const float* s, int t) {
    float far = s[63 - t];
    return far + s[(t + 32) % 64];
}
__global__ void device_functions(const float* in, float* out) {
    __shared__ float s[64];
    const float* mine = in + blockIdx.x * 64;
    put(s, mine, threadIdx.x);
    __syncthreads();
    float value = take(s, threadIdx.x);
    __syncthreads();
    put(s, out, threadIdx.x);
    out[blockIdx.x * 64 + threadIdx.x] = value;
}
