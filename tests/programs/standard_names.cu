#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
using std::uint32_t;

__global__ void clamp_all(float* x, std::size_t n, float top) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = std::numeric_limits<float>::lowest();
    best = std::max(best, x[i]);
    x[i] = std::min(std::sqrt(std::fabs(best)), top);
}

int main() {
    float values[3] = {3, 1, 2};
    std::sort(values, values + 3);
    std::swap(values[0], values[1]);
    clamp_all<<<1, 3>>>(values, 3, 1.0f);
}
