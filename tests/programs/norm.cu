// A kernel by the name of a function that CUDA has.
#include <cstdio>
#include <math.h>
__global__ void norm(const double* x, double* out, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    *out = sqrt(sum);
}
void norm(const char* text) { printf("%s\n", text); }
int main() { norm<<<1, 1>>>(nullptr, nullptr, 0); norm("done"); }
