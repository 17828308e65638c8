// Convolution of an image with a filter of 5 x 5, zeros around the image.
//
// A block of 16 x 16 threads computes as many outputs. It loads their inputs and two neighbours on
// each side into shared memory, 20 x 20, so that each is fetched once a block and used 25 times.
const int TILE = 16, REACH = 2;
const int SIDE = TILE + 2 * REACH, WIDTH = 2 * REACH + 1;

__global__ void filter(const float* in, const float* weights, float* out, int m, int n) {
    __shared__ float tile[SIDE][SIDE];
    __shared__ float w[WIDTH * WIDTH];
    int thread = threadIdx.y * TILE + threadIdx.x;
    int first_row = blockIdx.y * TILE, first_col = blockIdx.x * TILE;
    if (thread < WIDTH * WIDTH)
        w[thread] = weights[thread];
    for (int i = thread; i < SIDE * SIDE; i += TILE * TILE) {
        int row = first_row + i / SIDE - REACH, col = first_col + i % SIDE - REACH;
        bool inside = row >= 0 && row < m && col >= 0 && col < n;
        tile[i / SIDE][i % SIDE] = inside ? in[row * n + col] : 0.0f;
    }
    __syncthreads();
    int row = first_row + threadIdx.y, col = first_col + threadIdx.x;
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < WIDTH; ++i)
        for (int j = 0; j < WIDTH; ++j)
            sum += w[i * WIDTH + j] * tile[threadIdx.y + i][threadIdx.x + j];
    out[row * n + col] = sum;
}
