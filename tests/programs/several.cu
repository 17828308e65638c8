// Several kernels, conditions around them, a device function by macro.
#include <cuda_fp16.h>
#include <helper_cuda.h>
#include <helper_string.h>

#define DEVICE_INLINE static __device__ __forceinline__
#define HD __host__ __device__
#define DEFINE_OP(name, op) DEVICE_INLINE float name(float a, float b) { return a op b; }
#define KERNEL(name) extern "C" __global__ void name

DEFINE_OP(plus, +)
DEFINE_OP(times, *)

#if defined(USE_HALF)
typedef __half real;
#else
typedef float real;
#endif

#ifdef __CUDA_ARCH__
#define WHERE 1
#else
#define WHERE 0
#endif

HD inline int clampi(int v, int lo, int hi) { return v < lo ? lo : (v > hi ? hi : v); }

KERNEL(first)(real* x) { x[threadIdx.x] = plus(x[threadIdx.x], 1.0f); }
KERNEL(second)(real* x) { x[threadIdx.x] = times(x[threadIdx.x], 2.0f) + WHERE; }
__global__ void __launch_bounds__(64, 2) third(real* x, int n) {
    x[clampi(threadIdx.x - 3, 0, n - 1)] += 0;
    x[clampi(threadIdx.x, 0, n - 1)] = M_SQRT2 + ushort(3) + ulong(4);
}

void runTest(int argc, char** argv);

#ifndef NO_MAIN
int main(int argc, char** argv) {
    findCudaDevice(argc, (const char**)argv);
    runTest(argc, argv);
    checkCudaErrors(cudaDeviceReset());
    exit(EXIT_SUCCESS);
}
#endif

void runTest(int argc, char** argv) {
#ifdef TIMING
    StopWatchInterface* timer = 0;
    if (checkCmdLineFlag(argc, (const char**)argv, "x")) {
#else
    {
#endif
        real* d;
        checkCudaErrors(cudaMalloc((void**)&d, 64 * sizeof(real)));
        first<<<1, 64>>>(d);
        second<<<1, 64>>>(d);
        getLastCudaError("failed");
    }
}
