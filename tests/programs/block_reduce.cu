#include <cub/cub.cuh>
#include <cstdio>
#include <vector>

template <int THREADS>
__global__ void block_sum(const int* in, int* out) {
    using Reduce = cub::BlockReduce<int, THREADS>;
    __shared__ typename Reduce::TempStorage storage;
    int total = Reduce(storage).Sum(in[blockIdx.x * THREADS + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

int device_sum(const std::vector<int>& values) {
    void* storage = nullptr;
    size_t bytes = 0;
    int *in, *out;
    cub::DeviceReduce::Sum(storage, bytes, in, out, values.size());
    return 0;
}

int main() {
    block_sum<64><<<2, 64>>>(nullptr, nullptr);
    printf("%d\n", device_sum({1, 2, 3}));
}
