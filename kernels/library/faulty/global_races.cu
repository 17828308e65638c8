// Races in global memory: between the warps of a block, and between blocks.
// kernel<false> commits the fault, kernel<true> does not; "<-" marks the lines of the report.

const int WIDTH = 64;

template <bool RIGHT>
__global__ void global_raw(const int* in, int* out, int* work) {
    int t = threadIdx.x;
    int first = blockIdx.x * WIDTH;
    work[first + t] = in[first + t];  // <-
    if (RIGHT) __syncthreads();       // orders global memory, too, within the block
    out[first + t] = work[first + WIDTH - 1 - t];  // <-
}

template <bool RIGHT>
__global__ void global_war(const int* in, int* out, int* work) {
    int t = threadIdx.x;
    int first = blockIdx.x * WIDTH;
    work[first + t] = in[first + t];
    __syncthreads();
    int mirrored = work[first + WIDTH - 1 - t];  // <-
    if (RIGHT) __syncthreads();
    work[first + t] = mirrored + 1;  // <-
    out[first + t] = mirrored + 1;
}

template <bool RIGHT>
__global__ void global_waw(const int* in, int* out) {
    int t = threadIdx.x;
    int first = blockIdx.x * WIDTH;
    if (t < 32)
        out[first + t] = in[first + t];  // <-
    if (RIGHT) __syncthreads();
    if (t >= 32) {
        out[first + t] = in[first + t];
        out[first + t - 32] = in[first + t];  // <-
    }
}

// No barrier orders two blocks: what another block writes can be read in the next launch.
template <bool RIGHT>
__global__ void blocks_raw(const int* in, int* out, int* work) {
    int first = blockIdx.x * WIDTH;
    int i = first + threadIdx.x;
    int last = RIGHT ? first + WIDTH - 1 : gridDim.x * WIDTH - 1;
    int from = last - (RIGHT ? threadIdx.x : i);  // right: mirrors within the own block
    work[i] = in[i];  // <-
    __syncthreads();
    out[i] = work[from];  // <-
}

// Mirrors an array in place: another block may have replaced the element already.
template <bool RIGHT>
__global__ void blocks_war(int* out, int* work) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    int mirrored = work[gridDim.x * WIDTH - 1 - i];  // <-
    __syncthreads();
    if (RIGHT) out[i] = mirrored;
    else work[i] = mirrored;  // <-
}

template <bool RIGHT>
__global__ void blocks_waw(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    out[RIGHT ? i : threadIdx.x] = in[i];  // <-
}

template <bool RIGHT>
__global__ void blocks_same_value(const int* in, int* out) {
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (in[i] >= 0) {
        if (RIGHT) atomicExch(out, 1);
        else *out = 1;  // <-
    }
}

// The last block to finish adds up what all of them left. Without the fences, it may take the
// ticket as drawn while the other's partial sum is still on its way.
template <bool RIGHT>
__global__ void last_block(const int* in, int* out, int* work, unsigned int* tickets) {
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int k = 0; k < WIDTH; ++k)
            sum += in[blockIdx.x * WIDTH + k];
        work[blockIdx.x] = sum;  // <-
        if (RIGHT) __threadfence();
        if (atomicAdd(tickets, 1u) == gridDim.x - 1) {
            if (RIGHT) __threadfence();
            int total = 0;
            for (int b = 0; b < gridDim.x; ++b)
                total += work[b];  // <-
            *out = total;
        }
    }
}
