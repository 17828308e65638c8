// tilescope exec use-after-free.cu
__global__ void fill(float *a) { a[threadIdx.x] = 1; }

int main() {
    float *a;
    cudaMalloc(&a, 32 * sizeof(float));
    cudaFree(a); // right: after the launch
    fill<<<1, 32>>>(a);
    cudaDeviceSynchronize();
}
