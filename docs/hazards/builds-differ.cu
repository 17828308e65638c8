// tilescope check builds-differ.cu --grid 1 --block 32 i32[32]=2147483647 i32[32]
__global__ void is_less(const int *in, int *out) {
    int x = in[threadIdx.x];
    out[threadIdx.x] = x + 1 > x; // right: compare in unsigned or in long long
}
