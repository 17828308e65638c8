// tilescope exec launch-error.cu
__global__ void fill(float *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

int main() {
    float *a;
    cudaMalloc(&a, 2048 * sizeof(float));
    fill<<<1, 2048>>>(a); // right: fill<<<8, 256>>>(a), as a block has 1024 threads at most
    cudaDeviceSynchronize();
    cudaFree(a);
}
