#include "common/vec.cuh"
#include <vector>

__device__ vec3 centre() { return vec3(1, 2, 3); }

__global__ void shift(vec3* points, float* lengths, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    points[i] = points[i] + centre();
    lengths[i] = sqrtf(dot(points[i], points[i]));
}

int main() {
    std::vector<vec3> host(10, vec3(0, 0, 0));
    for (auto& p : host) p.x = random_double();
    std::cout << host[0] << host_length(host[1]) << "\n";
    vec3* points;
    cudaMalloc(&points, sizeof(vec3) * 10);
    shift<<<1, 32>>>(points, nullptr, 10);
}
