#include <cooperative_groups.h>
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
using namespace cooperative_groups;
namespace cg = cooperative_groups;
__global__ void k(float* x) { thread_block b = this_thread_block(); cg::thread_block_tile<32> t = cg::tiled_partition<32>(b); x[b.thread_rank()] = t.shfl_down(1.f, 1); }
int main() { cudaGraph_t g; cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal); void* args[] = {nullptr}; cudaLaunchKernel((void*)k, 1, 32, args); cudaLaunchCooperativeKernel((void*)k, 1, 32, args, 0, 0); }
