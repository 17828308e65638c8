#include <vector>
#include <memory>
template <typename T> class DeviceBuffer {
    T* ptr_ = nullptr; size_t size_ = 0;
public:
    explicit DeviceBuffer(size_t n) : size_(n) { cudaMalloc(&ptr_, n * sizeof(T)); }
    ~DeviceBuffer() { if (ptr_) cudaFree(ptr_); }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    DeviceBuffer(DeviceBuffer&& o) noexcept : ptr_(std::exchange(o.ptr_, nullptr)) {}
    T* get() const { return ptr_; }
    void upload(const std::vector<T>& v) { cudaMemcpy(ptr_, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice); }
};
struct Stream { cudaStream_t s; Stream() { cudaStreamCreate(&s); } operator cudaStream_t() const { return s; } };
__global__ void k(float* x) { *x = 1; }
int main() { DeviceBuffer<float> b(10); Stream s; k<<<1, 1, 0, s>>>(b.get()); }
