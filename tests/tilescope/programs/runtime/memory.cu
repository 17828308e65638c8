// Kinds of memory that the runtime gives, a case a word.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

__global__ void scale(int *a, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= by;
}

__global__ void rows(char *at, size_t pitch, size_t slice) {
  int *row = reinterpret_cast<int *>(at + blockIdx.x * slice + blockIdx.y * pitch);
  row[threadIdx.x] = 100 * blockIdx.x + 10 * blockIdx.y + threadIdx.x;
}

__global__ void sample(cudaTextureObject_t t, float *out, float by) {
  float x = (threadIdx.x + 0.5f) * by, y = (threadIdx.y + 0.5f) * by;
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(t, x, y);
}

__global__ void fetch(cudaTextureObject_t t, int *out) { out[threadIdx.x] = tex1Dfetch<int>(t, threadIdx.x); }

__global__ void volume(cudaTextureObject_t t, float4 *out) {
  out[threadIdx.x] = tex3D<float4>(t, threadIdx.x + 0.5f, 1.5f, 1.5f);
}

__global__ void paint(cudaSurfaceObject_t s) {
  surf2Dwrite(10.f * threadIdx.y + threadIdx.x, s, threadIdx.x * 4, threadIdx.y);
}

__constant__ int table[4];
__device__ int sums[4];
__global__ void add() { sums[threadIdx.x] += table[threadIdx.x]; }

__device__ int *kept;
struct Node {
  int value;
  Node *next;
};
__global__ void walk(Node *first) {
  int sum = 0;
  for (Node *one = first; one; one = one->next) sum += one->value;
  first->value = sum;
}
__global__ void make() { kept = static_cast<int *>(malloc(256)); }
__global__ void fill() { kept[threadIdx.x] = threadIdx.x; }
__global__ void gather(int *sum) {
  atomicAdd(sum, kept[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) free(kept);
}

static void show(const char *what, const int *a, int n) {
  std::printf("%s", what);
  for (int i = 0; i < n; ++i) std::printf(" %d", a[i]);
  std::printf("\n");
}

static void show(const char *what, const float *a, int n) {
  std::printf("%s", what);
  for (int i = 0; i < n; ++i) std::printf(" %g", a[i]);
  std::printf("\n");
}

static const char *name(cudaError_t code) { return cudaGetErrorName(code); }

/* Its first page holds what the runtime's own calls push, too. */
__attribute__((noinline)) static void registers_its_stack() {
  int own[64] = {}, *there;
  own[3] = 7;
  const char *first = name(cudaHostRegister(own, sizeof own, 0));
  cudaHostGetDevicePointer(&there, own, 0);
  scale<<<1, 64>>>(there, 64, 3);
  cudaDeviceSynchronize();
  std::printf("%s %d", first, own[3]);
  std::printf(" %s", name(cudaHostUnregister(own)));
  std::printf(" %d\n", own[3]);
}

int main(int, char **argv) {
  const char *word = argv[1];
  auto is = [&](const char *one) { return !std::strcmp(word, one); };
  int host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[64] = {0};
  cudaStream_t s;
  cudaStreamCreate(&s);
  if (is("pool")) {
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    unsigned long long keep = 1 << 20, kept = 0;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
    int *a;
    cudaMallocAsync(&a, sizeof host, s);
    cudaMemcpyAsync(a, host, sizeof host, cudaMemcpyHostToDevice, s);
    scale<<<1, 8, 0, s>>>(a, 8, 3);
    cudaMemcpyAsync(got, a, sizeof host, cudaMemcpyDeviceToHost, s);
    cudaFreeAsync(a, s);
    cudaStreamSynchronize(s);
    show("pool", got, 8);
    std::printf("%llu\n", kept);
  } else if (is("pitched")) {
    cudaPitchedPtr box;
    cudaExtent extent = make_cudaExtent(5 * sizeof(int), 3, 2);
    cudaMalloc3D(&box, extent);
    cudaMemset3D(box, 0, extent);
    rows<<<dim3(2, 3), 4>>>(static_cast<char *>(box.ptr), box.pitch, box.pitch * box.ysize);
    cudaMemcpy3DParms p = {};
    p.srcPtr = box;
    p.dstPtr = make_cudaPitchedPtr(got, 5 * sizeof(int), 5 * sizeof(int), 3);
    p.extent = extent;
    p.kind = cudaMemcpyDeviceToHost;
    std::printf("%s\n", name(cudaMemcpy3D(&p)));
    show("box", got, 30);
    std::memset(got, 0, sizeof got);
    p.srcPos = make_cudaPos(4, 1, 1);
    p.dstPos = make_cudaPos(8, 0, 0);
    p.extent = make_cudaExtent(8, 2, 1);
    cudaMemcpy3D(&p);
    show("part", got, 10);
    void *plane;
    size_t pitch;
    cudaMallocPitch(&plane, &pitch, 12, 2);
    cudaMemset2D(plane, pitch, 1, 12, 2);
    cudaMemcpy2D(plane, pitch, host, 16, 8, 2, cudaMemcpyHostToDevice);
    cudaMemcpy2D(got, 12, plane, pitch, 12, 2, cudaMemcpyDeviceToHost);
    show("plane", got, 6);
    std::printf("%zu %zu %s\n", pitch, box.pitch, name(cudaMemcpy2D(got, 4, plane, pitch, 12, 2, cudaMemcpyDeviceToHost)));
    cudaFree(plane);
    cudaFree(box.ptr);
  } else if (is("texture")) {
    float pixels[12], *out, back[16];
    for (int i = 0; i < 12; ++i) pixels[i] = i * i;
    cudaMalloc(&out, 64);
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &desc, 4, 3);
    cudaMemcpy2DToArray(array, 0, 0, pixels, 16, 16, 3, cudaMemcpyHostToDevice);
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    for (bool linear : {false, true}) {
      cudaTextureDesc how = {};
      how.addressMode[0] = how.addressMode[1] = linear ? cudaAddressModeWrap : cudaAddressModeBorder;
      how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
      how.normalizedCoords = linear;
      cudaTextureObject_t t;
      cudaCreateTextureObject(&t, &res, &how, nullptr);
      sample<<<1, dim3(5, 3)>>>(t, out, linear ? 0.3f : 1.f);
      cudaMemcpy(back, out, 60, cudaMemcpyDeviceToHost);
      show(linear ? "linear" : "point", back, 15);
      cudaDestroyTextureObject(t);
    }
    cudaMemcpy2DFromArray(back, 8, array, 4, 1, 8, 2, cudaMemcpyDeviceToHost);
    show("part", back, 4);
    cudaFreeArray(array);
    cudaFree(out);
  } else if (is("linear")) {
    int *a, *out;
    cudaMalloc(&a, 512 + sizeof host);
    cudaMalloc(&out, 40);
    cudaMemcpy(a + 128, host, sizeof host, cudaMemcpyHostToDevice);
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeLinear;
    res.res.linear.devPtr = a + 128;
    res.res.linear.desc = cudaCreateChannelDesc<int>();
    res.res.linear.sizeInBytes = sizeof host;
    cudaTextureDesc how = {};
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &res, &how, nullptr);
    fetch<<<1, 10>>>(t, out);
    cudaMemcpy(got, out, 40, cudaMemcpyDeviceToHost);
    show("fetch", got, 10);
    float *plane, back[6], pixels[6] = {1, 2, 3, 4, 5, 6};
    size_t pitch;
    cudaMallocPitch(&plane, &pitch, 12, 2);
    cudaMemcpy2D(plane, pitch, pixels, 12, 12, 2, cudaMemcpyHostToDevice);
    res.resType = cudaResourceTypePitch2D;
    res.res.pitch2D.devPtr = plane;
    res.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    res.res.pitch2D.width = 3;
    res.res.pitch2D.height = 2;
    res.res.pitch2D.pitchInBytes = pitch;
    cudaDestroyTextureObject(t);
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaCreateTextureObject(&t, &res, &how, nullptr);
    sample<<<1, dim3(3, 2)>>>(t, reinterpret_cast<float *>(out), 1.f);
    cudaMemcpy(back, out, 24, cudaMemcpyDeviceToHost);
    show("pitch", back, 6);
    cudaDestroyTextureObject(t);
    for (void *one : {(void *)a, (void *)out, (void *)plane}) cudaFree(one);
  } else if (is("volume")) {
    float4 texels[2 * 2 * 3], *out, back[3];
    for (int i = 0; i < 12; ++i) texels[i] = make_float4(i, -i, 2 * i, 1);
    cudaMalloc(&out, sizeof back);
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float4>();
    cudaArray_t array;
    cudaMalloc3DArray(&array, &desc, make_cudaExtent(3, 2, 2));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(texels, 48, 3, 2);
    p.dstArray = array;
    p.extent = make_cudaExtent(3, 2, 2);
    p.kind = cudaMemcpyHostToDevice;
    std::printf("%s\n", name(cudaMemcpy3D(&p)));
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    cudaTextureDesc how = {};
    for (auto &mode : how.addressMode) mode = cudaAddressModeClamp;
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &res, &how, nullptr);
    volume<<<1, 3>>>(t, out);
    cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
    show("volume", &back[0].x, 12);
    cudaDestroyTextureObject(t);
    cudaFreeArray(array);
    cudaFree(out);
  } else if (is("surface")) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat), found;
    cudaArray_t array;
    cudaMallocArray(&array, &desc, 4, 3, cudaArraySurfaceLoadStore);
    cudaExtent extent;
    unsigned flags;
    cudaArrayGetInfo(&found, &extent, &flags, array);
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &res);
    paint<<<1, dim3(4, 3)>>>(surface);
    float back[12];
    cudaMemcpy2DFromArray(back, 16, array, 0, 0, 16, 3, cudaMemcpyDeviceToHost);
    show("surface", back, 12);
    std::printf("%d %zu %zu %zu %u\n", found.x, extent.width, extent.height, extent.depth, flags);
    cudaDestroySurfaceObject(surface);
    cudaFreeArray(array);
  } else if (is("register")) {
    int *mine = static_cast<int *>(std::malloc(40000)), *there = nullptr;
    for (int i = 0; i < 10000; ++i) mine[i] = i;
    std::printf("%s", name(cudaHostRegister(mine, 40000, cudaHostRegisterMapped)));
    std::printf(" %s\n", name(cudaHostRegister(mine + 5, 4, 0)));
    cudaHostGetDevicePointer(&there, mine, 0);
    scale<<<40, 256>>>(there, 10000, 2);
    cudaDeviceSynchronize();
    scale<<<40, 256>>>(mine, 10000, 2);  // an H200 takes the host's address, too
    cudaDeviceSynchronize();
    std::printf("%d %d", mine[1], mine[9999]);
    cudaPointerAttributes about;
    cudaPointerGetAttributes(&about, mine);
    std::printf(" %d %d", about.type, about.hostPointer == mine);
    std::printf(" %s", name(cudaHostUnregister(mine)));
    std::printf(" %s %d\n", name(cudaHostUnregister(mine)), mine[9999]);
    std::free(mine);
    registers_its_stack();
  } else if (is("mapped")) {
    int *mine, *there;
    unsigned flags;
    cudaHostAlloc(&mine, 32, cudaHostAllocMapped | cudaHostAllocPortable);
    cudaHostGetDevicePointer(&there, mine, 0);
    cudaHostGetFlags(&flags, mine);
    for (int i = 0; i < 8; ++i) mine[i] = i;
    scale<<<1, 8, 0, s>>>(there, 8, 5);
    cudaStreamSynchronize(s);
    show("mapped", mine, 8);
    std::printf("%u %d\n", flags, there == mine);
    cudaFreeHost(mine);
  } else if (is("pointers")) {
    int *a, *m;
    void *symbol;
    cudaPointerAttributes about;
    cudaMalloc(&a, 64);
    cudaMallocManaged(&m, 64);
    cudaGetSymbolAddress(&symbol, sums);
    for (void *one : {(void *)a, (void *)m, symbol, (void *)host}) {
      cudaPointerGetAttributes(&about, one);
      std::printf("%d %d %d %d\n", about.type, about.device, about.devicePointer == one, about.hostPointer == one);
    }
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    std::printf("%s %s", name(cudaMemPrefetchAsync(m, 64, here, 0)), name(cudaMemAdvise(m, 64, cudaMemAdviseSetReadMostly, here)));
    std::printf(" %s\n", name(cudaMemPrefetchAsync(a, 64, here, 0)));
    cudaFree(a);
    cudaFree(m);
  } else if (is("list")) {  // each node an allocation that host and device share
    Node *first = nullptr;
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
      Node *one;
      cudaMallocManaged(&one, sizeof *one);
      *one = {i, first};
      first = one;
    }
    walk<<<1, 1>>>(first);
    cudaDeviceSynchronize();
    std::printf("list %d\n", first->value);
    for (Node *next; first; first = next) {
      next = first->next;
      cudaFree(first);
    }
  } else if (is("large")) {
    void *large;
    cudaError_t code = cudaMalloc(&large, 1 << 28);
    std::printf("%s\n", cudaGetErrorName(code));
    cudaGetLastError();
  } else if (is("heap")) {  // of kernels: it outlives them
    int *sum;
    cudaMalloc(&sum, 4);
    cudaMemset(sum, 0, 4);
    make<<<1, 1>>>();
    fill<<<1, 64>>>();
    gather<<<1, 64>>>(sum);
    cudaMemcpy(got, sum, 4, cudaMemcpyDeviceToHost);
    show("heap", got, 1);
    cudaFree(sum);
  } else if (is("symbols")) {
    int zero[4] = {0, 0, 0, 0};
    void *at;
    size_t size;
    cudaMemcpyToSymbolAsync(table, host, sizeof table, 0, cudaMemcpyHostToDevice, s);
    cudaMemcpyToSymbolAsync(sums, zero, sizeof sums, 0, cudaMemcpyHostToDevice, s);
    add<<<1, 4, 0, s>>>();
    cudaMemcpyFromSymbolAsync(got, sums, 8, 8, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    cudaGetSymbolAddress(&at, sums);
    cudaGetSymbolSize(&size, sums);
    cudaMemcpy(got + 2, at, 8, cudaMemcpyDeviceToHost);
    show("symbols", got, 4);
    std::printf("%zu %s\n", size, name(cudaMemcpyToSymbol(table, host, 20)));
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaStreamDestroy(s);
}
