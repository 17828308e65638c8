// tilescope exec host-order.cu
__global__ void fill(float *a) { a[threadIdx.x] = 1; }
__global__ void twice(float *a) { a[threadIdx.x] *= 2; }

int main() {
    float *a;
    cudaStream_t first, second;
    cudaMalloc(&a, 32 * sizeof(float));
    cudaStreamCreate(&first);
    cudaStreamCreate(&second);
    fill<<<1, 32, 0, first>>>(a);
    twice<<<1, 32, 0, second>>>(a); // right: in first, or behind cudaStreamWaitEvent
    cudaDeviceSynchronize();
    cudaFree(a);
}
