// tilescope exec bad-copy.cu
int main() {
    float host[32] = {}, *a;
    cudaMalloc(&a, 32); // right: 32 * sizeof(float), as sizes are bytes
    cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaFree(a);
}
