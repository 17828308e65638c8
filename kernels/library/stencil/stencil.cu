// Stencils: every output is made of an input and its neighbours. A tile in shared memory
// loads each input once for all the outputs that need it; its rim, the halo, belongs to the
// neighbouring blocks' tiles. What lies outside the input counts as zero.

// out[i] = in[i - RADIUS] + ... + in[i + RADIUS]
const int WIDTH = 128;

template <int RADIUS>
__global__ void line(const float* in, float* out, int n) {
    __shared__ float tile[WIDTH + 2 * RADIUS];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    tile[t + RADIUS] = i < n ? in[i] : 0.0f;
    if (t < RADIUS) {  // the halo, left and right
        int left = i - RADIUS, right = i + WIDTH;
        tile[t] = left >= 0 ? in[left] : 0.0f;
        tile[t + RADIUS + WIDTH] = right < n ? in[right] : 0.0f;
    }
    __syncthreads();  // neighbours' elements and the halo are there
    float sum = 0.0f;
    for (int k = 0; k <= 2 * RADIUS; ++k)
        sum += tile[t + k];
    if (i < n)
        out[i] = sum;
}

// The mean of the four neighbours, a step of Jacobi's method; in and out are M x N.
const int SIDE = 16;

__global__ void five_point(const float* in, float* out, int M, int N) {
    __shared__ float tile[SIDE + 2][SIDE + 2];  // the corners are not used
    int x = threadIdx.x + 1;
    int y = threadIdx.y + 1;
    int col = blockIdx.x * SIDE + threadIdx.x;
    int row = blockIdx.y * SIDE + threadIdx.y;
    bool inside = row < M && col < N;
    tile[y][x] = inside ? in[row * N + col] : 0.0f;
    if (x == 1)
        tile[y][0] = row < M && col > 0 ? in[row * N + col - 1] : 0.0f;
    if (x == SIDE)
        tile[y][SIDE + 1] = row < M && col + 1 < N ? in[row * N + col + 1] : 0.0f;
    if (y == 1)
        tile[0][x] = row > 0 && col < N ? in[(row - 1) * N + col] : 0.0f;
    if (y == SIDE)
        tile[SIDE + 1][x] = row + 1 < M && col < N ? in[(row + 1) * N + col] : 0.0f;
    __syncthreads();
    if (inside)
        out[row * N + col] =
            0.25f * (tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1]);
}
