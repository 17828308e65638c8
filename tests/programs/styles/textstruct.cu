#include <string>
struct Config { int n; std::string name; };
struct Params { int n; float s; };
static Config config{3, "a"};
__global__ void k(float* x, Params p) { *x = p.s; }
int main() { Params p{1, 2.f}; k<<<1,1>>>(0, p); }
