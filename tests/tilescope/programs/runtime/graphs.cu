// Streams, graphs and queries, a case a word.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>

namespace cg = cooperative_groups;

__global__ void scale(int *a, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= by;
}

__global__ void add(const int *a, const int *b, int *sum) { sum[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

__global__ void __launch_bounds__(256) hungry(int *a) {
  extern __shared__ int more[];
  __shared__ int some[64];
  some[threadIdx.x % 64] = more[0] = 1;
  __syncthreads();
  a[threadIdx.x] = some[threadIdx.x % 64];
}

__global__ void neighbours(int *out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = 10 * cluster.block_rank();
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
}

__global__ void together(int *count, int *out) {
  if (threadIdx.x == 0) atomicAdd(count, 1);
  cg::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *count;
}

__global__ void speak(int n) { printf("device %d\n", n); }

static void show(const char *what, const int *a, int n) {
  std::printf("%s", what);
  for (int i = 0; i < n; ++i) std::printf(" %d", a[i]);
  std::printf("\n");
}

static const char *name(cudaError_t code) { return cudaGetErrorName(code); }
static void finished(void *word) { std::printf("host %s\n", static_cast<const char *>(word)); }
static void called(cudaStream_t, cudaError_t status, void *word) { std::printf("called %d %s\n", status, static_cast<char *>(word)); }

int main(int, char **argv) {
  const char *word = argv[1];
  auto is = [&](const char *one) { return !std::strcmp(word, one); };
  int *a, *b, *c, host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8];
  static char hello[] = "hello";
  for (int **one : {&a, &b, &c}) {
    cudaMalloc(one, sizeof host);
    cudaMemset(*one, 0, sizeof host);
  }
  cudaDeviceSynchronize();
  cudaStream_t s, t;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, -1);
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  if (is("capture")) {
    cudaEvent_t fork, join;
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(a, host, sizeof host, cudaMemcpyHostToDevice, s);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork, 0);
    cudaMemcpyAsync(b, a, sizeof host, cudaMemcpyDeviceToDevice, t);
    scale<<<1, 8, 0, t>>>(b, 8, 10);
    scale<<<1, 8, 0, s>>>(c, 8, 1);
    cudaEventRecord(join, t);
    cudaStreamWaitEvent(s, join, 0);
    add<<<1, 8, 0, s>>>(a, b, c);
    cudaStreamCaptureStatus first, second;
    cudaStreamIsCapturing(t, &first);
    cudaLaunchHostFunc(s, finished, hello);
    std::printf("%s", name(cudaStreamEndCapture(s, &graph)));
    cudaStreamIsCapturing(t, &second);
    size_t nodes, roots;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    cudaGraphGetRootNodes(graph, nullptr, &roots);
    std::printf(" %d %d %zu %zu\n", first, second, nodes, roots);
    cudaGraphInstantiate(&ready, graph, 0);
    for (int i = 0; i < 2; ++i) {
      host[0] = 50 + i;
      cudaGraphLaunch(ready, s);
      cudaStreamSynchronize(s);
    }
    cudaMemcpy(got, c, sizeof got, cudaMemcpyDeviceToHost);
    show("sum", got, 8);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  } else if (is("race")) {  // nothing orders the two kernels of the graph
    int eight = 8, two = 2, *first = a;
    void *args[] = {&first, &eight, &two};
    cudaKernelNodeParams k = {};
    k.func = reinterpret_cast<void *>(scale);
    k.gridDim = 1;
    k.blockDim = 8;
    k.kernelParams = args;
    cudaGraphCreate(&graph, 0);
    cudaGraphNode_t node;
    for (int i = 0; i < 2; ++i) cudaGraphAddKernelNode(&node, graph, nullptr, 0, &k);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphLaunch(ready, s);
    cudaStreamSynchronize(s);
  } else if (is("nodes")) {
    cudaGraphCreate(&graph, 0);
    cudaGraphNode_t set, in, run, out, call, child, end;
    cudaMemsetParams m = {};
    m.dst = b;
    m.elementSize = 4;
    m.value = 7;
    m.width = 8;
    m.height = 1;
    cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &m);
    cudaGraphAddMemcpyNode1D(&in, graph, nullptr, 0, a, host, sizeof host, cudaMemcpyHostToDevice);
    void *args[] = {&a, &b, &c};
    cudaKernelNodeParams k = {};
    k.func = reinterpret_cast<void *>(add);
    k.gridDim = 1;
    k.blockDim = 8;
    k.kernelParams = args;
    cudaGraphNode_t both[] = {set, in};
    cudaGraphAddKernelNode(&run, graph, both, 2, &k);
    cudaGraphAddMemcpyNode1D(&out, graph, &run, 1, got, c, sizeof got, cudaMemcpyDeviceToHost);
    cudaHostNodeParams h = {finished, hello};
    cudaGraphAddHostNode(&call, graph, &out, 1, &h);
    cudaGraph_t inner;
    cudaGraphCreate(&inner, 0);
    cudaGraphAddHostNode(&end, inner, nullptr, 0, &h);
    cudaGraphAddChildGraphNode(&child, graph, &call, 1, inner);
    cudaGraphAddEmptyNode(&end, graph, &child, 1);
    cudaGraphNodeType type;
    cudaGraphNodeGetType(run, &type);
    size_t before = 0;
    cudaGraphNodeGetDependencies(run, nullptr, nullptr, &before);
    std::printf("%d %zu\n", type, before);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphLaunch(ready, s);
    cudaStreamSynchronize(s);
    show("nodes", got, 8);
    args[0] = &b;  // twice what is in b
    std::printf("%s\n", name(cudaGraphExecKernelNodeSetParams(ready, run, &k)));
    m.value = 9;
    cudaGraphExecMemsetNodeSetParams(ready, set, &m);
    cudaGraphNodeSetEnabled(ready, in, 0);
    cudaGraphLaunch(ready, s);
    cudaStreamSynchronize(s);
    show("changed", got, 8);
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t clone;
    cudaGraphClone(&clone, graph);
    std::printf("%s", name(cudaGraphExecUpdate(ready, clone, &info)));
    std::printf(" %s", name(cudaGraphExecUpdate(ready, inner, &info)));
    std::printf(" %d\n", info.result);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  } else if (is("mistakes")) {
    cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
    scale<<<1, 8, 0, s>>>(a, 8, 2);
    std::printf("%s", name(cudaStreamSynchronize(s)));
    std::printf(" %s", name(cudaStreamEndCapture(s, &graph)));
    std::printf(" %d %s\n", graph == nullptr, name(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal)));
    cudaGetLastError();
    cudaEvent_t fork;
    cudaEventCreate(&fork);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork, 0);
    scale<<<1, 8, 0, t>>>(a, 8, 2);
    std::printf("%s", name(cudaEventQuery(fork)));
    std::printf(" %s\n", name(cudaStreamEndCapture(s, &graph)));
    cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork, 0);
    scale<<<1, 8, 0, t>>>(a, 8, 2);
    std::printf("%s", name(cudaStreamEndCapture(t, &graph)));
    std::printf(" %s\n", name(cudaStreamEndCapture(s, &graph)));
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    int *more;
    std::printf("%s", name(cudaMalloc(&more, 4)));
    std::printf(" %s\n", name(cudaStreamEndCapture(s, &graph)));
    cudaGetLastError();
  } else if (is("memory")) {  // a graph that allocates
    int *own;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&own, sizeof host, s);
    cudaMemcpyAsync(own, host, sizeof host, cudaMemcpyHostToDevice, s);
    scale<<<1, 8, 0, s>>>(own, 8, 3);
    cudaMemcpyAsync(got, own, sizeof host, cudaMemcpyDeviceToHost, s);
    cudaFreeAsync(own, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    for (int i = 0; i < 2; ++i) cudaGraphLaunch(ready, s);
    cudaStreamSynchronize(s);
    show("own", got, 8);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  } else if (is("outside")) {  // memory of a graph, freed outside of it between its launches
    int *own;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&own, sizeof host, s);
    cudaMemcpyAsync(own, host, sizeof host, cudaMemcpyHostToDevice, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    for (int i = 0; i < 3; ++i) {
      std::printf("%s ", name(cudaGraphLaunch(ready, s)));
      scale<<<1, 8, 0, s>>>(own, 8, 3);
      cudaStreamSynchronize(s);
      std::printf("%s ", name(i % 2 ? cudaFreeAsync(own, s) : cudaFree(own)));
    }
    std::printf("\n");
    if (argv[2]) cudaMemcpy(got, own, 4, cudaMemcpyDeviceToHost);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  } else if (is("launch")) {
    cudaLaunchConfig_t config = {};
    config.gridDim = 4;
    config.blockDim = 32;
    config.stream = s;
    cudaLaunchAttribute how[1];
    how[0].id = cudaLaunchAttributeClusterDimension;
    how[0].val.clusterDim.x = 2;
    how[0].val.clusterDim.y = how[0].val.clusterDim.z = 1;
    config.attrs = how;
    config.numAttrs = 1;
    std::printf("%s\n", name(cudaLaunchKernelEx(&config, neighbours, a)));
    void *args[] = {&b, &c};
    cudaLaunchCooperativeKernel(together, 3, 64, args, 0, s);
    cudaStreamSynchronize(s);
    cudaMemcpy(got, a, 16, cudaMemcpyDeviceToHost);
    cudaMemcpy(got + 4, c, 12, cudaMemcpyDeviceToHost);
    show("launch", got, 7);
    std::printf("%s\n", name(cudaLaunchCooperativeKernel(together, 100000, 1024, args, 0, s)));
    cudaGetLastError();
  } else if (is("queries")) {
    cudaFuncAttributes about;
    cudaFuncGetAttributes(&about, hungry);
    std::printf("%zu %d %d %d\n", about.sharedSizeBytes, about.maxThreadsPerBlock, about.maxDynamicSharedSizeBytes, about.numRegs > 0);
    int blocks = 0, grid = 0, block = 0, least, greatest, flags, priority, peer = 5;
    size_t free_shared = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, hungry, 256, 40000);
    std::printf("%d", blocks);
    std::printf(" %s", name(cudaFuncSetAttribute(hungry, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000)));
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, hungry, 256, 100000);
    cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 0);
    std::printf(" %d %d %d", blocks, grid, block);
    std::printf(" %s\n", name(cudaFuncSetAttribute(hungry, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000)));
    cudaOccupancyAvailableDynamicSMemPerBlock(&free_shared, scale, 2, 256);
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    cudaStreamGetPriority(t, &priority);
    cudaStreamGetFlags(s, reinterpret_cast<unsigned *>(&flags));
    std::printf("%zu %d %d %d %d\n", free_shared, least, greatest, priority, flags);
    std::printf("%s", name(cudaDeviceCanAccessPeer(&peer, 0, 0)));
    std::printf(" %s", name(cudaDeviceEnablePeerAccess(0, 0)));
    std::printf(" %s", name(cudaDeviceDisablePeerAccess(0)));
    std::printf(" %s %d\n", name(cudaDeviceCanAccessPeer(&peer, 0, 1000)), cudaStreamQuery(s));
    cudaGetLastError();
  } else if (is("events")) {
    cudaEvent_t start, stop, plain;
    float ms = 5;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventCreateWithFlags(&plain, cudaEventDisableTiming);
    cudaEventRecord(start, s);
    scale<<<1, 8, 0, s>>>(a, 8, 2);
    cudaEventRecord(stop, s);
    cudaEventRecord(plain, s);
    cudaEventSynchronize(stop);
    std::printf("%d %s", cudaEventQuery(stop), name(cudaEventElapsedTime(&ms, start, stop)));
    std::printf(" %s\n", name(cudaEventElapsedTime(&ms, start, plain)));
    cudaEventDestroy(start);
    cudaGetLastError();
  } else if (is("printed")) {
    speak<<<1, 1>>>(1);
    std::printf("before\n");
    cudaDeviceSynchronize();
    std::printf("after\n");
    speak<<<1, 1, 0, s>>>(2);
    cudaStreamAddCallback(s, called, hello, 0);
    cudaStreamSynchronize(s);
    speak<<<1, 1>>>(3);
    cudaDeviceReset();
    return 0;
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  for (int *one : {a, b, c}) cudaFree(one);
}
