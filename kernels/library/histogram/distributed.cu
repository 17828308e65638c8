// How often each byte occurs, in bins that the blocks of a cluster share out among themselves.

#include <cooperative_groups.h>

const int BINS = 256, BLOCKS = 4, OWN = BINS / BLOCKS;

// Each block of 256 threads has a quarter of the bins in its shared memory, and each thread
// counts where the bin is, in the memory of another block as in its own ("distributed shared
// memory"): a block needs no room for all bins.
__global__ void __cluster_dims__(BLOCKS, 1, 1)
distributed(const unsigned char* in, unsigned int* bins, int n) {
    __shared__ unsigned int own[OWN];
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x;
    if (t < OWN)
        own[t] = 0;
    cluster.sync();  // nobody counts before the bins of all blocks are zero
    for (int i = blockIdx.x * BINS + t; i < n; i += gridDim.x * BINS)
        atomicAdd(cluster.map_shared_rank(&own[in[i] % OWN], in[i] / OWN), 1u);
    cluster.sync();  // nobody hands on a bin, or leaves, before all have counted
    if (t < OWN && own[t] > 0)
        atomicAdd(&bins[cluster.block_rank() * OWN + t], own[t]);
}
