#include <cuda_runtime.h>
#include <functional>
#include <tuple>

template <typename F>
__global__ void for_each(int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

struct Scale {
    float* x;
    float by;
    __device__ void operator()(int i) const {
        auto twice = [=](float v) { return v * by; };
        x[i] = twice(x[i]);
    }
};

template <typename F>
void run(int n, F f) { for_each<<<(n + 31) / 32, 32>>>(n, f); }

std::tuple<int, float> settings() { return {3, 2.f}; }

int main() {
    float* x = nullptr;
    run(10, [=] __device__(int i) { x[i] += 1; });
    auto [n, by] = settings();
    run(n, Scale{x, by});
    return 0;
}
