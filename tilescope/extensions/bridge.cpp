// What a PyTorch extension finds instead of libc10_cuda and libtorch_cuda under tilescope exec, and
// the functions by which tensors pass between the script and the extension.
//
// In the script a tensor "on cuda" is one of the CPU whose storage is marked. In the extension it is
// one of the device cuda:0, whose data pointer is an address of the simulated GPU. Both share the
// storage of the CPU, which the device pointer's context owns.
#include <ATen/ATen.h>
#include <c10/cuda/impl/CUDAGuardImpl.h>
#include <torch/csrc/utils/pybind.h>

#include <cerrno>
#include <mutex>
#include <ostream>
#include <sys/syscall.h>
#include <unistd.h>

// -- calls of the CUDA runtime ------------------------------------------------------------------

struct Frame { // as in shim.c
  uint64_t reg[6], xmm[8], stack, caller, index, thread;
};

static uint64_t (*answer)(Frame *);
static constexpr uint64_t NO_ANSWER = 999; // cudaErrorUnknown

extern "C" uint64_t tilescope_call(Frame *frame) {
  int error = errno;
  frame->thread = syscall(SYS_gettid);
  uint64_t result = answer ? answer(frame) : NO_ANSWER;
  errno = error;
  return result;
}

// -- tensors ------------------------------------------------------------------------------------

static void release(void *owner) { delete static_cast<at::Storage *>(owner); }

static c10::DataPtr device_pointer(const at::Storage &host, uint64_t address) {
  return {reinterpret_cast<void *>(address), new at::Storage(host), release, {c10::kCUDA, 0}};
}

static at::Tensor like(const at::Tensor &given, at::Storage storage, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                       given.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(given.sizes(), given.strides(),
                                                    given.storage_offset());
  return made;
}

static at::Tensor to_device(const at::Tensor &host, uint64_t address) {
  const auto &storage = host.storage();
  at::Storage made(at::Storage::use_byte_size_t(), storage.nbytes(),
                   device_pointer(storage, address), nullptr, false);
  return like(host, std::move(made), c10::DispatchKey::CUDA);
}

// The tensor of the CPU behind one of the device; None: its memory is not the storage of a tensor.
static std::optional<at::Tensor> to_host(const at::Tensor &device) {
  if (!device.is_cuda()) return device;
  auto *owner = device.storage().data_ptr().cast_context<at::Storage>(release);
  if (!owner) return std::nullopt;
  return like(device, *owner, c10::DispatchKey::CPU);
}

// A tensor of the device that an operator has changed in place: its memory and shape may be new.
static void refresh(const at::Tensor &device, const at::Tensor &host, uint64_t address) {
  auto *storage = device.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(device_pointer(host.storage(), address));
  storage->set_nbytes(host.storage().nbytes());
  device.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(),
                                                      host.storage_offset());
}

// The script's tensor of the CPU, after the extension has given its own another shape or storage.
static void carry_back(const at::Tensor &host, const at::Tensor &device) {
  auto *owner = device.storage().data_ptr().cast_context<at::Storage>(release);
  bool is_same = host.sizes() == device.sizes() && host.strides() == device.strides() &&
                 host.storage_offset() == device.storage_offset();
  if (!owner || (is_same && host.storage().is_alias_of(*owner))) return;
  auto *impl = host.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(*owner);
  impl->set_sizes_and_strides(device.sizes(), device.strides(), device.storage_offset());
}

// -- c10::cuda and at::cuda: one device, streams by their handles -------------------------------

static thread_local int64_t current_stream;

extern "C" __attribute__((used)) void tilescope_check(int32_t error, const char *file,
                                                      const char *function, uint32_t line, bool) {
  if (!error) return;
  cudaGetLastError();
  throw c10::Error({function, file, line},
                   c10::str("CUDA error: ", cudaGetErrorString(static_cast<cudaError_t>(error))));
}

// Releases of PyTorch give this function further parameters, which it does not need.
extern "C" __attribute__((alias("tilescope_check"))) void
    _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb(int32_t, const char *, const char *,
                                                          uint32_t, bool);
extern "C" __attribute__((alias("tilescope_check"))) void
    _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE(
        int32_t, const char *, const char *, uint32_t, bool);
extern "C" void _ZN3c104cuda19CUDAErrorLogCaptureC1Ev(void *) {}

namespace c10::cuda {

static CUDAStream stream_of(int64_t handle) {
  return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::UNSAFE, {kCUDA, 0}, handle));
}

static int64_t handle_of(cudaStream_t stream) { return reinterpret_cast<int64_t>(stream); }

static void only_device(DeviceIndex index) {
  TORCH_CHECK(index <= 0, "tilescope exec simulates one GPU: there is no cuda:", int(index));
}

cudaStream_t CUDAStream::stream() const { return reinterpret_cast<cudaStream_t>(id()); }

bool CUDAStream::query() const { return cudaStreamQuery(stream()) == cudaSuccess; }

void CUDAStream::synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream())); }

CUDAStream getStreamFromPool(const int, DeviceIndex index) {
  only_device(index);
  cudaStream_t made;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return stream_of(handle_of(made));
}

CUDAStream getStreamFromPool(const bool, DeviceIndex index) { return getStreamFromPool(0, index); }

CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex) {
  return stream_of(handle_of(stream));
}

CUDAStream getDefaultCUDAStream(DeviceIndex index) { return only_device(index), stream_of(0); }

CUDAStream getCurrentCUDAStream(DeviceIndex index) {
  return only_device(index), stream_of(current_stream);
}

void setCurrentCUDAStream(CUDAStream stream) { current_stream = stream.id(); }

std::ostream &operator<<(std::ostream &out, const CUDAStream &stream) {
  return out << stream.unwrap();
}

DeviceIndex device_count() noexcept { return 1; }
DeviceIndex device_count_ensure_non_zero() { return 1; }
DeviceIndex current_device() { return 0; }
void set_device(DeviceIndex index, const bool) { only_device(index); }
void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
void warn_or_error_on_sync() {}
void SetTargetDevice() {}
DeviceIndex ExchangeDevice(DeviceIndex index) { return only_device(index), 0; }
DeviceIndex MaybeExchangeDevice(DeviceIndex index) { return only_device(index), 0; }
bool hasPrimaryContext(DeviceIndex index) { return index == 0; }
std::optional<DeviceIndex> getDeviceIndexWithPrimaryContext() { return 0; }

cudaError_t GetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t GetDevice(DeviceIndex *index) { return *index = 0, cudaSuccess; }
cudaError_t MaybeSetDevice(DeviceIndex index) {
  return index ? cudaErrorInvalidDevice : cudaSuccess;
}
cudaError_t SetDevice(DeviceIndex index, const bool) { return MaybeSetDevice(index); }

const char *get_cuda_check_suffix() noexcept { return ""; }

std::mutex *getFreeMutex() {
  static std::mutex mutex;
  return &mutex;
}

namespace CUDACachingAllocator {

// An object of which every virtual function is this one.
static void no_allocator() {
  TORCH_CHECK(false, "tilescope exec has no stand-in for c10::cuda::CUDACachingAllocator; "
                     "allocate with torch::empty");
}

struct Table {
  void (*functions[256])();
  Table() { std::fill(std::begin(functions), std::end(functions), no_allocator); }
};
static Table table;
static void *object[2] = {&table, nullptr};
std::atomic<CUDAAllocator *> allocator{reinterpret_cast<CUDAAllocator *>(object)};

} // namespace CUDACachingAllocator
} // namespace c10::cuda

namespace at::cuda {

C10_EXPORT cudaDeviceProp *getDeviceProperties(c10::DeviceIndex index) {
  static cudaDeviceProp properties;
  c10::cuda::only_device(index);
  if (!properties.warpSize) C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return &properties;
}

C10_EXPORT cudaDeviceProp *getCurrentDeviceProperties() { return getDeviceProperties(0); }

C10_EXPORT int warp_size() { return 32; }

C10_EXPORT bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return false; }

// cuBLAS by its stand-in, whose header may not be installed.
extern "C" int cublasCreate_v2(void **);
extern "C" int cublasSetStream_v2(void *, cudaStream_t);

} // namespace at::cuda

extern "C" C10_EXPORT void *_ZN2at4cuda24getCurrentCUDABlasHandleEb(bool) {
  static void *handle;
  int status = handle ? 0 : at::cuda::cublasCreate_v2(&handle);
  status = status ? status : at::cuda::cublasSetStream_v2(handle, c10::cuda::getCurrentCUDAStream());
  TORCH_CHECK(!status, "cuBLAS gave error ", status);
  return handle;
}

namespace c10::cuda::impl {
C10_REGISTER_GUARD_IMPL(CUDA, CUDAGuardImpl)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("set_answer", [](uint64_t function) {
    answer = reinterpret_cast<uint64_t (*)(Frame *)>(function);
  });
  module.def("to_device", to_device);
  module.def("to_host", to_host);
  module.def("refresh", refresh);
  module.def("carry_back", carry_back);
  module.def("stream", [] { return current_stream; });
  module.def("set_stream", [](int64_t handle) { current_stream = handle; });
}
