#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace linear {

class Matrix {
public:
    int rows, cols;
    float* data;

    __host__ Matrix(int r, int c) : rows(r), cols(c), data(nullptr) {
        if (cudaMallocManaged(&data, r * c * sizeof(float)) != cudaSuccess)
            throw std::runtime_error("out of memory");
    }
    void release() { cudaFree(data); data = nullptr; }
    void print(std::ostream& out) const { out << rows << "x" << cols << "\n"; }
    static std::vector<float> zeros(int n) { return std::vector<float>(n); }
    __host__ __device__ float& at(int r, int c) { return data[r * cols + c]; }
    __device__ float get(int r, int c) const { return data[r * cols + c]; }
};

class Timer {
    std::vector<double> laps;
public:
    void lap() { laps.push_back(0.0); }
};

template <int N>
__global__ void add(float* out, const float* a, const float* b, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (first + i < n) out[first + i] = a[first + i] + b[first + i];
}

__global__ void fill(Matrix m, float value) {
    int c = threadIdx.x, r = blockIdx.x;
    if (r < m.rows && c < m.cols) m.at(r, c) = value;
}

}  // namespace linear

std::ostream& operator<<(std::ostream& out, const linear::Matrix& m) { m.print(out); return out; }

int main() try {
    linear::Matrix m(4, 4);
    linear::Timer timer;
    linear::fill<<<4, 4>>>(m, 1.0f);
    timer.lap();
    std::cout << m << std::endl;
    auto owned = std::make_unique<float[]>(16);
    return 0;
} catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
