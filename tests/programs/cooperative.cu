#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <vector>
namespace cg = cooperative_groups;

__device__ int sum_of(cg::thread_group g, int* temp, int value) {
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        temp[lane] = value;
        g.sync();
        if (lane < i) value += temp[lane + i];
        g.sync();
    }
    return value;
}

__global__ void total(int* sum, int* input, int n) {
    __shared__ int temp[64];
    auto g = cg::this_thread_block();
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += input[i];
    int block_sum = sum_of(g, temp, mine);
    if (g.thread_rank() == 0) atomicAdd(sum, block_sum);
}

int main() {
    std::vector<int> data(1000, 1);
    int *sum, *input;
    cudaMallocManaged(&sum, sizeof(int));
    cudaMallocManaged(&input, data.size() * sizeof(int));
    total<<<2, 64>>>(sum, input, 1000);
    cudaDeviceSynchronize();
}
