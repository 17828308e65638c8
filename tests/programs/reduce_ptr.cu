#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <sys/time.h>
#include <unistd.h>

unsigned long long seed = 88172645463325252ULL;
#define N (1 << 10)
#define min_of(a, b) ((a) < (b) ? (a) : (b))

double cpuSecond() {
    struct timeval tp;
    gettimeofday(&tp, NULL);
    return ((double)tp.tv_sec + (double)tp.tv_usec * 1.e-6);
}

int recursiveReduce(int *data, int const size) {
    if (size == 1) return data[0];
    int const stride = size / 2;
    for (int i = 0; i < stride; i++) data[i] += data[i + stride];
    return recursiveReduce(data, stride);
}

__global__ void reduceNeighbored(int *g_idata, int *g_odata, unsigned int n) {
    unsigned int tid = threadIdx.x;
    unsigned int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int *idata = g_idata + blockIdx.x * blockDim.x;
    if (idx >= n) return;
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if ((tid % (2 * stride)) == 0) idata[tid] += idata[tid + stride];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = idata[0];
}

int main(int argc, char **argv) {
    cudaDeviceProp deviceProp;
    cudaGetDeviceProperties(&deviceProp, 0);
    printf("%s starting at device %s\n", argv[0], deviceProp.name);
    int *h = (int *)malloc(N * sizeof(int));
    for (int i = 0; i < N; i++) h[i] = (int)(rand() & 0xFF);
    double start = cpuSecond();
    reduceNeighbored<<<2, 64>>>(h, h, N);
    printf("%d %f\n", recursiveReduce(h, N), cpuSecond() - start);
    return min_of(0, 1);
}
