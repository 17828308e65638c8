__global__ void both(const float* in, float* out) {
    __shared__ float u[64], v[64];
    int t = threadIdx.x;
    u[t] = in[t];
    v[63 - t] = in[t];
    float x = u[t ^ 33] + v[t ^ 33];  // of u from another warp, of v from another lane
    out[t] = x;
}
