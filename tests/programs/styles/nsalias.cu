#include <filesystem>
#include <random>
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::vector; using std::cout;
typedef std::vector<float> Vec;
const std::string NAME = "x";
static std::mt19937 gen(std::random_device{}());
constexpr int N = 4;
enum { A = 1, B = N };
const float TABLE[N] = {1, 2, 3, 4};
#define LAUNCH(kern, g, b, ...) kern<<<g, b>>>(__VA_ARGS__)
__global__ void k(float* x) { x[threadIdx.x] = B + N; }
auto now() { return Clock::now(); }
int main() { LAUNCH(k, 1, N, nullptr); }
