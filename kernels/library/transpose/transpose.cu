// B = A transposed. A is M x N, B is N x M, both row-major.
//
// Reading along rows of A means writing along columns of B: one of the two is not coalesced,
// unless a tile is turned round in shared memory on the way.

// Reads of a warp are neighbours; its 32 writes lie M elements apart, a sector each.
__global__ void naive(const float* A, float* B, int M, int N) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N)
        B[col * M + row] = A[row * N + col];
}

// A block of 32 x 8 threads turns a tile of 32 x 32, four rows a thread. Both global accesses
// go along rows. Reading the tile along a column takes 32 words that are 32 + PAD apart: all
// in one bank without padding, in 32 different ones with a column of padding.
const int TILE = 32;
const int ROWS = 8;

template <int PAD>
__global__ void tiled(const float* A, float* B, int M, int N) {
    __shared__ float tile[TILE][TILE + PAD];
    int x = threadIdx.x;
    int col = blockIdx.x * TILE + x;
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < M && col < N)
            tile[y][x] = A[row * N + col];
    }
    __syncthreads();  // the column that a thread writes out was loaded by others
    int out_col = blockIdx.y * TILE + x;
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        int out_row = blockIdx.x * TILE + y;
        if (out_row < N && out_col < M)
            B[out_row * M + out_col] = tile[x][y];
    }
}
