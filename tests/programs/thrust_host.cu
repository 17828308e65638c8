#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <algorithm>
#include <iostream>
#include <numeric>
using namespace std;

struct square_op {
    __host__ __device__ float operator()(float x) const { return x * x; }
};

template <typename Op>
__global__ void apply(float* data, int n, Op op) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = op(data[i]);
}

template __global__ void apply<square_op>(float*, int, square_op);

int main() {
    thrust::host_vector<float> h(1000);
    iota(h.begin(), h.end(), 0.f);
    thrust::device_vector<float> d = h;
    apply<<<4, 128>>>(thrust::raw_pointer_cast(d.data()), 1000, square_op());
    cout << thrust::reduce(d.begin(), d.end()) << endl;
    auto biggest = *max_element(h.begin(), h.end());
    return biggest > 0 ? 0 : 1;
}
