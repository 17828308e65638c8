// What host code does with the runtime, a case a word. Each case is right but for those named wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Link {
  Link *next;
  float value;
};

__device__ float total[4];
__managed__ int visits;
__constant__ float *target;

__global__ void increment(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1;
  if (i == 0) {
    visits++;
    total[1] += 2;
  }
}

__global__ void follow(const Link *link, float *out) {
  float sum = 0;
  for (; link; link = link->next) sum += link->value;
  *out = sum;
  printf("device %g\n", sum);
}

__global__ void scatter(float **rows) { rows[threadIdx.x][threadIdx.x] = threadIdx.x; }

__global__ void through() { target[threadIdx.x] = 9; }

__global__ void flags(int *a) { a[threadIdx.x] = 1; if (threadIdx.x == 33) a[0] = 2; }

static void finished(void *word) { printf("callback %s\n", static_cast<const char *>(word)); }

int main(int, char **argv) {
  const char *word = argv[1];
  auto is = [&](const char *name) { return !std::strcmp(word, name); };
  float *a, r = -1;
  if (is("fork-early") && fork() == 0) {
    cudaMalloc(&a, 400);
    cudaMemset(a, 0, 400);
    increment<<<4, 32>>>(a, 100);
    cudaMemcpy(&r, a, 4, cudaMemcpyDeviceToHost);
    std::printf("child %g\n", r);
    cudaFree(a);
    return 0;
  } else if (is("fork-early")) {
    wait(nullptr);
  }
  cudaMalloc(&a, 400);
  cudaMemset(a, 0, 400);
  if (is("list")) {
    Link links[3], *there;
    cudaMalloc(&there, sizeof links);
    for (int i = 0; i < 3; ++i) links[i] = {i < 2 ? there + i + 1 : nullptr, i + 1.f};
    cudaMemcpy(there, links, sizeof links, cudaMemcpyHostToDevice);
    std::printf("before\n");
    follow<<<1, 1>>>(there, a);
    cudaDeviceSynchronize();
    std::printf("after\n");
    cudaFree(there);
  } else if (is("table")) {
    float *rows[4], **table;
    for (auto &row : rows) cudaMalloc(&row, 16);
    cudaMalloc(&table, sizeof rows);
    cudaMemcpy(table, rows, sizeof rows, cudaMemcpyHostToDevice);
    scatter<<<1, 4>>>(table);
    cudaMemcpy(&r, rows[3] + 3, 4, cudaMemcpyDeviceToHost);
    std::printf("%g\n", r);
    for (auto row : rows) cudaFree(row);
    cudaFree(table);
  } else if (is("constant")) {
    cudaMemcpyToSymbol(target, &a, sizeof a);
    through<<<1, 4>>>();
    cudaMemcpy(&r, a + 3, 4, cudaMemcpyDeviceToHost);
    std::printf("%g\n", r);
  } else if (is("managed")) {
    float *m;
    cudaMallocManaged(&m, 400);
    m[99] = 40;
    increment<<<4, 32>>>(m, 100);
    cudaDeviceSynchronize();
    m[99] += 1;
    increment<<<4, 32>>>(m, 100);
    cudaDeviceSynchronize();
    float t;
    cudaMemcpyFromSymbol(&t, total, 4, 4);
    std::printf("%g %d %g\n", m[99], visits, t);
    cudaFree(m);
  } else if (is("exit")) {
    increment<<<1, 32>>>(a, 32);
    std::exit(3);
  } else if (is("crash")) {
    increment<<<1, 32>>>(a, 32);
    std::abort();
  } else if (is("threads")) {
    std::vector<std::thread> some;
    for (int t = 0; t < 4; ++t)
      some.emplace_back([] {
        float *b;
        cudaMalloc(&b, 400);
        cudaMemset(b, 0, 400);
        for (int i = 0; i < 5; ++i) increment<<<4, 32>>>(b, 100);
        cudaStreamSynchronize(0);
        cudaFree(b);
      });
    for (auto &one : some) one.join();
    std::printf("%d\n", visits);
  } else if (is("fork")) {
    increment<<<1, 32>>>(a, 32);
    cudaFree(a), a = nullptr;
    if (fork() == 0) {
      float *b;
      cudaMalloc(&b, 400);
      cudaMemset(b, 0, 400);
      increment<<<4, 32>>>(b, 100);
      cudaMemcpy(&r, b, 4, cudaMemcpyDeviceToHost);
      std::printf("child %g\n", r);
      std::fflush(stdout);
      _exit(0);
    }
    int status;
    wait(&status);
    std::printf("parent %d\n", status);
  } else if (is("handle")) {
    float ms = 0;
    std::printf("%d %d\n", cudaEventQuery(nullptr), cudaEventElapsedTime(&ms, nullptr, nullptr));
    increment<<<1, 32>>>(a, 32);
  } else if (is("fork-early")) {
    increment<<<4, 32>>>(a, 100);
    cudaMemcpy(&r, a, 4, cudaMemcpyDeviceToHost);
    std::printf("parent %g\n", r);
  } else if (is("callback")) {
    static char name[] = "once";
    increment<<<1, 32>>>(a, 32);
    cudaLaunchHostFunc(0, finished, name);
    cudaDeviceSynchronize();
  } else if (is("wrong-freed")) {
    float *b;
    cudaMalloc(&b, 400);
    cudaFree(b);
    increment<<<1, 32>>>(b, 100);
  } else if (is("wrong-host")) {
    std::vector<float> b(100);
    increment<<<1, 32>>>(b.data(), 100);
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  } else if (is("wrong-copy")) {
    static float b[200];
    std::printf("%s\n", cudaGetErrorString(cudaMemcpy(b, a, 800, cudaMemcpyDeviceToHost)));
  } else if (is("guarded")) { // memory that is readable in its first page alone, or not at all
    auto p = (char *)mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + 4096, 4096, PROT_NONE);
    char *b;
    cudaMalloc(&b, 8192);
    cudaMemset(b, 0, 8192);
    std::printf("%d", cudaMemcpy(b, p, 8192, cudaMemcpyHostToDevice));
    std::printf(" %d", cudaMemcpy(p, b, 8192, cudaMemcpyDeviceToHost));
    std::printf(" %d", cudaMemcpy((void *)16, b, 4, cudaMemcpyDeviceToHost));
    std::printf(" %d\n", cudaMemcpy(b, p, 4096, cudaMemcpyHostToDevice));
    cudaFree(b);
  } else if (is("wrong-way")) {
    cudaMemcpy(a, &r, 4, cudaMemcpyDeviceToHost);
  } else if (is("wrong-shape")) {
    increment<<<1, 2000>>>(a, 1);
    std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  } else if (is("wrong-race")) {
    int *b;
    cudaMalloc(&b, 256);
    flags<<<1, 64>>>(b);
    cudaFree(b);
  } else if (is("unset")) {
    float *b;
    cudaMalloc(&b, 4);
    cudaMemcpy(&r, b, 4, cudaMemcpyDeviceToHost);
    increment<<<1, 32>>>(a, 32);
    cudaFree(b);
  } else if (is("leak")) {
    increment<<<1, 32>>>(a, 32);
    return 0;
  } else if (is("hang")) {
    cudaFree(a);
    if (fork())
      for (;;) pause();
    execlp(argv[0], argv[0], "hang-child", nullptr);
  } else if (is("hang-child")) {
    increment<<<1, 32>>>(a, 32);
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    for (;;) pause();
  } else if (is("nonsense")) {
    std::printf("%d", cudaMemcpy(&r, &r + 1, ~size_t(0), cudaMemcpyHostToHost));
    std::printf(" %d\n", cudaMalloc(&a, ~size_t(0)));
    std::fflush(stdout);
    size_t many = ~size_t(0) / 16;
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&node, graph, &node, many);
  } else if (is("none")) {
    std::printf("nothing\n");
  } else if (is("unknown")) {
    cudaIpcMemHandle_t handle;
    std::printf("first\n");
    cudaIpcGetMemHandle(&handle, a);
  }
  cudaFree(a);
}
