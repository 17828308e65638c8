// Kernels of few lanes, or of lanes that part: python -m benchmarks.engines
extern "C" __global__ void few(float* a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    int k = i;
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        x = x * 0.999f + (float)(k & 7);
        k = k * 3 + (int)x;
        if (k & 1)
            x -= 1.0f;
        a[i] = x;
        x = a[i] + 0.5f;
    }
    a[i] = x + k;
}

extern "C" __global__ void mandelbrot(int* out, int width, int height, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width * height)
        return;
    float cx = (i % width) * 3.0f / width - 2.0f, cy = (i / width) * 2.0f / height - 1.0f;
    float x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < rounds && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        n++;
    }
    out[i] = n;
}

// One level of a breadth-first search of a graph in CSR form; who finds a vertex says so.
extern "C" __global__ void bfs_level(
    const int* starts, const int* edges, const int* level, int* found, int vertices, int at)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vertices || level[v] >= 0)
        return;
    for (int e = starts[v]; e < starts[v + 1]; e++)
        if (level[edges[e]] == at) {
            found[v] = at + 1;
            break;
        }
}

// Open addressing, by one warp: what compare-and-swap finds decides.
extern "C" __global__ void hash_insert(unsigned* table, const unsigned* keys, int count, int mask)
{
    for (int i = threadIdx.x; i < count; i += 32) {
        unsigned key = keys[i], at = (key * 2654435769u) & mask;
        for (int n = 0; n <= mask; n++, at = (at + 1) & mask) {
            unsigned old = atomicCAS(&table[at], 0u, key);
            if (old == 0u || old == key)
                break;
        }
    }
}

extern "C" __global__ void queens(int* solutions, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = (1 << n) - 1;
    if (i >= n * n)
        return;
    int one = 1 << i % n, other = 1 << i / n;
    if ((one == other) || (one << 1 == other) || (one >> 1 == other))
        return;
    int columns[16], lefts[16], rights[16], frees[16], depth = 2, count = 0;
    columns[2] = one | other;
    lefts[2] = ((one << 1) | other) << 1;
    rights[2] = ((one >> 1) | other) >> 1;
    frees[2] = all & ~(columns[2] | lefts[2] | rights[2]);
    while (depth >= 2) {
        int free = frees[depth];
        if (!free) {
            depth--;
            continue;
        }
        int bit = free & -free;
        frees[depth] = free ^ bit;
        if (depth == n - 1) {
            count++;
            continue;
        }
        columns[depth + 1] = columns[depth] | bit;
        lefts[depth + 1] = (lefts[depth] | bit) << 1;
        rights[depth + 1] = (rights[depth] | bit) >> 1;
        depth++;
        frees[depth] = all & ~(columns[depth] | lefts[depth] | rights[depth]);
    }
    atomicAdd(solutions, count);
}

extern "C" __global__ void spmv(
    const int* starts, const int* columns, const float* values, const float* x, float* y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int e = starts[row]; e < starts[row + 1]; e++)
        sum += values[e] * x[columns[e]];
    y[row] = sum;
}

extern "C" __global__ void bitonic(int* a)
{
    __shared__ int s[1024];
    int t = threadIdx.x, n = blockDim.x;
    s[t] = a[blockIdx.x * n + t];
    __syncthreads();
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t && (s[t] > s[other]) == !(t & k)) {
                int held = s[t];
                s[t] = s[other];
                s[other] = held;
            }
            __syncthreads();
        }
    a[blockIdx.x * n + t] = s[t];
}

extern "C" __global__ void insertion(int* a, int each)
{
    int* own = a + (blockIdx.x * blockDim.x + threadIdx.x) * each;
    for (int i = 1; i < each; i++) {
        int value = own[i], j = i;
        for (; j > 0 && own[j - 1] > value; j--)
            own[j] = own[j - 1];
        own[j] = value;
    }
}

extern "C" __global__ void collatz(unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long k = i + 1;
    unsigned steps = 0;
    while (k != 1) {
        k = k & 1 ? 3 * k + 1 : k / 2;
        steps++;
    }
    out[i] = steps;
}

// Appends in the order of an atomic's old values.
extern "C" __global__ void append(const int* a, int* list, int* count, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = a[i];
    for (int r = 0; r < rounds; r++)
        x = x & 1 ? x * 3 + 1 : x / 2 + r;
    if (x & 1)
        list[atomicAdd(count, 1)] = i;
}

extern "C" __global__ void float_sums(const float* a, float* sums, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    for (int r = 0; r < rounds + (i & 15); r++)
        x = x * 0.99f + 1.0f / (r + 1);
    atomicAdd(&sums[i & 31], x);
}
