#include <cuda_runtime.h>
#include <cassert>
#include <cmath>
#include <fstream>
#include <string>

#define RADIUS 2
#ifndef SCALE
#define SCALE 1.0f
#endif

typedef unsigned char byte;
typedef struct { int width, height; } Size;

__constant__ float kernel_weights[2 * RADIUS + 1] = {1, 2, 3, 2, 1};
__device__ int calls = 0;

static const char *usage = "usage: filter { file }";
std::string output_name;
int host_counter = 0;
cudaStream_t streams[2];

extern "C" __global__ void blur(const byte *in, byte *out, Size size) {
    extern __shared__ float row[];
    const uint x = threadIdx.x, y = blockIdx.x;
    assert(size.width <= blockDim.x);
    row[x] = in[y * size.width + x];
    __syncthreads();
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; ++k) {
        int at = min(max((int)x + k, 0), size.width - 1);
        sum += row[at] * kernel_weights[k + RADIUS];
    }
    out[y * size.width + x] = (byte)(SCALE * sum / 9.0f);
    if (x == 0) atomicAdd(&calls, 1);
}

std::ifstream open_input(const std::string &name) { return std::ifstream(name, std::ios::binary); }

int main(int argc, char *argv[]) {
    if (argc < 2) { puts(usage); return 1; }
    std::ifstream file = open_input(argv[1]);
    float w[5] = {1, 2, 3, 2, 1};
    cudaMemcpyToSymbol(kernel_weights, w, sizeof w);
    Size size{64, 64};
    byte *in = nullptr, *out = nullptr;
    blur<<<size.height, size.width, size.width * sizeof(float), streams[0]>>>(in, out, size);
    return host_counter;
}
