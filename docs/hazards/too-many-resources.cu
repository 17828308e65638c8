// tilescope check too-many-resources.cu --grid 1 --block 1024 f32[512]=ones f32[1024] 1
__global__ void wide(const float *in, float *out, int n) { // right: __launch_bounds__(1024)
    float kept[100];
    for (int i = 0; i < 100; ++i) kept[i] = in[(threadIdx.x + 5 * i) % 512];
    for (int round = 0; round < n; ++round)
        for (int i = 0; i < 100; ++i) kept[i] = kept[i] * kept[(i + 29) % 100] + 1;
    float sum = 0;
    for (int i = 0; i < 100; ++i) sum += kept[i];
    out[threadIdx.x] = sum;
}
