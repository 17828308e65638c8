// Shared memory of the other block of a cluster of two: who reads there too early, or too late.

#include <cooperative_groups.h>

// Missing cluster barrier: the block's own does not wait for the other block.
template <bool RIGHT>
__cluster_dims__(2, 1, 1)
__global__ void missing_cluster_barrier(const int* in, int* out) {
    __shared__ int s[64];
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];  // <-
    if constexpr (RIGHT)
        cluster.sync();
    else
        __syncthreads();
    out[i] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[63 - t];  // <-
    cluster.sync();
}

// Missing last cluster barrier: a block that leaves takes its shared memory with it.
template <bool RIGHT>
__cluster_dims__(2, 1, 1)
__global__ void missing_last_cluster_barrier(const int* in, int* out) {
    __shared__ int s[64];
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    cluster.sync();
    out[i] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[63 - t];  // <-
    if constexpr (RIGHT)
        cluster.sync();
}
