// The other one.
__constant__ int factors[3];
__device__ int product;

__global__ void multiply() { product = factors[0] * factors[1] * factors[2]; }

void second(int **address) {
  int mine[3] = {5, 7, 11};
  cudaMemcpyToSymbol(factors, mine, sizeof mine);
  multiply<<<1, 1>>>();
  cudaGetSymbolAddress(reinterpret_cast<void **>(address), product);
}

int second_value() {
  int value, product_before = 385;
  cudaMemcpyFromSymbol(&value, product, 4);
  return value == product_before ? -1 : value;
}
