// Kernels of python -m benchmarks.simulators; simulators.cl has the same in OpenCL C.
extern "C" __global__ void few(float* a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i;
    float x = a[i];
    for (int r = 0; r < rounds; r++) {
        k = (k * 3 + r) & 1023;
        x = x * 0.999f + (float)(k & 7);
        if (k & 1)
            x -= 1.0f;
        a[i] = x;
    }
}

extern "C" __global__ void mandelbrot(int* out, int width, int height, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = 0;
    float cx = (i % width) * 3.0f / width - 2.0f, cy = (i / width) * 2.0f / height - 1.0f;
    float x = 0.0f, y = 0.0f;
    while (n < rounds && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        n++;
    }
    out[i] = n;
}

extern "C" __global__ void hash(unsigned* table, const unsigned* keys, int count, int mask)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        unsigned key = keys[i], at = (key * 2654435769u) & mask;
        for (int n = 0; n <= mask; n++, at = (at + 1) & mask) {
            unsigned old = atomicCAS(&table[at], 0u, key);
            if (old == 0u || old == key)
                break;
        }
    }
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n)
{
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];
        t[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int j = 0; j < 16; j++)
            sum += s[y][j] * t[j][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void reduction(const float* a, float* sums)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h /= 2) {
        if (t < h)
            s[t] += s[t + h];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = s[0];
}
