// Two kernels on the same arrays: examples/pipeline.toml says how they are launched.

struct Signal {
    const float *samples;
    float *out;
    int size;
};

__constant__ float taps[3];

__global__ void filter(Signal s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < s.size - 1)
        s.out[i] = taps[0] * s.samples[i - 1] + taps[1] * s.samples[i] + taps[2] * s.samples[i + 1];
    else if (i < s.size)
        s.out[i] = s.samples[i];
}

__global__ void energy(const float *samples, float *sums, int size) {
    __shared__ float part[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < size ? samples[i] * samples[i] : 0;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
