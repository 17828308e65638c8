// The kernels of simulators.cu in OpenCL C.
__kernel void few(__global float* a, int rounds)
{
    int i = get_global_id(0), k = i;
    float x = a[i];
    for (int r = 0; r < rounds; r++) {
        k = (k * 3 + r) & 1023;
        x = x * 0.999f + (float)(k & 7);
        if (k & 1)
            x -= 1.0f;
        a[i] = x;
    }
}

__kernel void mandelbrot(__global int* out, int width, int height, int rounds)
{
    int i = get_global_id(0), n = 0;
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

__kernel void hash(__global unsigned* table, __global const unsigned* keys, int count, int mask)
{
    for (int i = get_local_id(0); i < count; i += get_local_size(0)) {
        unsigned key = keys[i], at = (key * 2654435769u) & mask;
        for (int n = 0; n <= mask; n++, at = (at + 1) & mask) {
            unsigned old = atomic_cmpxchg((volatile __global unsigned*)&table[at], 0u, key);
            if (old == 0u || old == key)
                break;
        }
    }
}

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, int n)
{
    __local float s[16][16], t[16][16];
    int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];
        t[y][x] = b[(k + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 16; j++)
            sum += s[y][j] * t[j][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void reduction(__global const float* a, __global float* sums)
{
    __local float s[256];
    int t = get_local_id(0);
    s[t] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int h = get_local_size(0) / 2; h > 0; h /= 2) {
        if (t < h)
            s[t] += s[t + h];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        sums[get_group_id(0)] = s[0];
}
