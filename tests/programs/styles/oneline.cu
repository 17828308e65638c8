#include <vector>
#include <iostream>
__global__ void k(float* x) { *x = 1; } int main() { std::vector<float> v; k<<<1,1>>>(0); std::cout << v.size(); }
