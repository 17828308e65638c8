// launch: templates<float,64> grid 2 block 64, f32[128]=arange f32[128]
template <typename T, int N>
struct Tile {
    T values[N];
    __device__ void store(int t, T value) { values[t] = value; }
    __device__ T mirrored(int t) const { return values[N - 1 - t]; }
};
template <typename T, int N>
__global__ void templates(const T* in, T* out) {
    __shared__ Tile<T, N> tile;
    int t = threadIdx.x, i = blockIdx.x * N + t;
    tile.store(t, in[i]);
    __syncthreads();
    T value = tile.mirrored(t);
    if constexpr (N > 32) {
        __syncthreads();
        tile.store((t + 1) % N, value);
        __syncthreads();
        value += tile.mirrored(t);
    }
    out[i] = value;
}
