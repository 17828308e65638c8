// One call of each library, and a kernel on its result. The prototypes are those of CUDA's headers.
#include <cstdio>

typedef struct Opaque *Handle;
extern "C" {
int cublasCreate_v2(Handle *);
int cublasDestroy_v2(Handle);
int cublasDgemm_v2(Handle, int, int, int, int, int, const double *, const double *, int,
                   const double *, int, const double *, double *, int);
int curandCreateGenerator(Handle *, int);
int curandDestroyGenerator(Handle);
int curandGenerateNormalDouble(Handle, double *, size_t, double, double);
int cufftPlan1d(int *, int, int, int);
int cufftExecZ2Z(int, double2 *, double2 *, int);
int cufftDestroy(int);
int cusparseCreate(Handle *);
const char *cusparseGetErrorString(int);
int cusparseSgtsv2(Handle, int, int, const float *, const float *, const float *, float *, int,
                   void *);
}

__global__ void add(double *x, double by) { x[threadIdx.x] += by; }

int main(int count, char **) {
  Handle blas, random, sparse;
  double *x, host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, alpha = 2, beta = 1;
  cudaMalloc(&x, 64);
  cudaMemcpy(x, host, 64, cudaMemcpyDefault);
  cublasCreate_v2(&blas);
  std::printf("%d ", cublasDgemm_v2(blas, 0, 1, 2, 2, 2, &alpha, x, 2, x, 2, &beta, x + 4, 2));
  add<<<1, 8>>>(x, 0.5);
  cudaMemcpy(host, x, 64, cudaMemcpyDefault);
  for (double one : host) std::printf("%g ", one);
  std::puts("");
  curandCreateGenerator(&random, 161);
  curandGenerateNormalDouble(random, x, 8, 1000, 0.001);
  cudaMemcpy(host, x, 64, cudaMemcpyDefault);
  for (double one : host) std::printf("%.0f ", one);
  int plan;
  cufftPlan1d(&plan, 4, 0x69, 1);
  cufftExecZ2Z(plan, reinterpret_cast<double2 *>(x), reinterpret_cast<double2 *>(x), -1);
  cudaMemcpy(host, x, 64, cudaMemcpyDefault);
  std::printf("%.0f %.0f\n", host[0], host[1]);
  cusparseCreate(&sparse);
  std::printf("%s\n", cusparseGetErrorString(3));
  std::fflush(stdout);
  if (count > 1) cusparseSgtsv2(sparse, 1, 1, nullptr, nullptr, nullptr, nullptr, 1, nullptr);
  cufftDestroy(plan);
  curandDestroyGenerator(random);
  cublasDestroy_v2(blas);
  cudaFree(x);
}
