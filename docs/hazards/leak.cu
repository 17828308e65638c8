// tilescope exec leak.cu
__global__ void fill(float *a) { a[threadIdx.x] = 1; }

int main() {
    float *a;
    cudaMalloc(&a, 32 * sizeof(float));
    fill<<<1, 32>>>(a);
    cudaDeviceSynchronize(); // right: and cudaFree(a)
}
