// Loops that lanes go round unequally often: nested, with early ends, and with every kind of access.

__device__ unsigned thread()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

__device__ int number()
{
    return blockIdx.x * blockDim.x * blockDim.y * blockDim.z + thread();
}

extern "C" __global__ void k_nested(int* out, const int* n, unsigned char* bytes, float* f, int m)
{
    __shared__ int s[64];
    __shared__ short h[64];
    int own[8];
    unsigned t = thread(), i = number();
    if (t < 64) s[t] = h[t] = t;
    __syncthreads();
    for (int k = 0; k < 8; ++k) own[k] = k * i;
    float sum = 0;
    int count = 0;
    for (int k = 0; k < n[i % m]; ++k) {
        if ((k + i) % 3 == 0) {
            count += own[k & 7];
            own[(k + i) & 7] = count;
            continue;
        }
        for (int j = k; j < n[(i + k) % m]; j += 1 + (i & 1)) {
            sum = sum * 1.5f + f[(i * 7 + j) % m];
            if (sum > 1000) break;
            bytes[i] = (unsigned char)(bytes[i] + j);
        }
        count += s[(i + k) & 63];
        if (count & 1) s[(t * 5) & 63] = k;  // a race: several lanes at one place
        h[(t * 3) & 63] = (short)k;
        out[m + (t & 7)] = i + k;
    }
    __syncthreads();
    out[i % m] = count + own[i & 7] + s[t & 63] + h[t & 63] + (int)sum;
}

extern "C" __global__ void k_wide(int* out, const int* n, double* d, float4* v, int m)
{
    int i = number();
    if (i % 5 == 1) return;
    float4 a = {0, 0, 0, 0};
    double q = 1;
#pragma unroll 1
    for (int k = 0; k < n[i % m]; ++k) {
        float4 b = v[(i * 3 + k) % m];
        a.x += b.x, a.y = a.y * b.y + b.z, a.z -= b.w, a.w *= b.x;
        q = q * 0.5 + d[(i + k) % m];
        if (k == 5) d[i % m] = q;
    }
    v[i % m] = a;
    out[i % m] = (int)q;
}

extern "C" __global__ void k_bad(int* out, const int* n, const int* far, int m)
{
    __shared__ int s[40];
    int i = number(), sum = 0;
#pragma unroll 1
    for (int k = 0; k < n[i % m]; ++k) {
        sum += n[i + k * 7] + s[(thread() + k) % 44];  // some of them outside, and unset
        s[(thread() * k) % 43] = sum;
        if (k % 9 == 8) out[i + k * 5] = sum;
    }
    const int* p = i % 2 ? s : far;
    for (int k = 0; k < n[i % m]; ++k) sum += p[k];
    out[i % m] = sum;
}

extern "C" __global__ void k_long(int* out, const int* n, int m)
{
    int i = number(), k = 0;
    unsigned x = i + 1;
    while (k < n[i % m] * n[i % m]) {
        x = x * 1664525u + 1013904223u;
        if (x & 64) x ^= out[m + (x >> 8) % m];
        ++k;
    }
    out[i % m] = x;
    __syncthreads();
    for (k = 0; k < (x & 31); ++k) {
        if ((x >> k) & 1) out[i % m] += k;
        else if (k == 30) return;
    }
    __syncthreads();
    out[i % m] ^= 1;
}

// Who is where in the first loop does not depend on the block; its total is alike in all threads.
extern "C" __global__ void k_alike(const int* in, const int* rounds, int* out, int n)
{
    int i = number(), sum = 0, total = 0, first = blockIdx.x * 7 + 1;
#pragma unroll 1
    for (int w = 0; w < 6; ++w) {
        if (w < threadIdx.x / 16)
            sum += in[w];
        total += in[first + w];
    }
    for (int k = 0; k < rounds[i % n]; ++k) sum ^= in[k] + sum;
    out[i % n] = sum + total;
}
