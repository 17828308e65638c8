// Kernels that are none of the library's, and hard for a machine that runs lanes in lockstep:
// divergent, scattered, with all of their lanes at one address, or with arrays of their own.

extern "C" __global__ void saxpy(float a, const float* x, float* y)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}

extern "C" __global__ void matmul_in_place(const float* a, const float* b, float* c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    for (int k = 0; k < n; ++k) c[y * n + x] += a[y * n + k] * b[k * n + x];
}

extern "C" __global__ void bfs_level(
    const int* begin, const int* edges, const int* level, int* next, int now)
{
    unsigned node = blockIdx.x * blockDim.x + threadIdx.x;
    if (level[node] != now) return;
    for (int e = begin[node]; e < begin[node + 1]; ++e)
        if (level[edges[e]] < 0) atomicMax(next + edges[e], now + 1);
}

extern "C" __global__ void mandelbrot(int* rounds, int n, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float re = x * 3.0f / n - 2.25f, im = y * 3.0f / n - 1.5f, u = 0, v = 0;
    int round = 0;
    while (round < most && u * u + v * v < 4) {
        float next = u * u - v * v + re;
        v = 2 * u * v + im;
        u = next;
        ++round;
    }
    rounds[y * n + x] = round;
}

extern "C" __global__ void n_body(const float4* bodies, float4* pulls, int n)
{
    __shared__ float4 tile[128];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i], sum = make_float4(0, 0, 0, 0);
    for (int from = 0; from < n; from += 128) {
        tile[threadIdx.x] = bodies[from + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; ++j) {
            float x = tile[j].x - me.x, y = tile[j].y - me.y, z = tile[j].z - me.z;
            float near = rsqrtf(x * x + y * y + z * z + 0.01f);
            float pull = tile[j].w * near * near * near;
            sum.x += x * pull, sum.y += y * pull, sum.z += z * pull;
        }
        __syncthreads();
    }
    pulls[i] = sum;
}

extern "C" __global__ void count_up(unsigned* count)
{
    atomicAdd(count, 1);
}

extern "C" __global__ void sort_own(int* data)
{
    int own[16];
    int* mine = data + (blockIdx.x * blockDim.x + threadIdx.x) * 16;
    for (int i = 0; i < 16; ++i) {
        int value = mine[i], at = i;
        for (; at > 0 && own[at - 1] > value; --at) own[at] = own[at - 1];
        own[at] = value;
    }
    for (int i = 0; i < 16; ++i) mine[i] = own[i];
}
