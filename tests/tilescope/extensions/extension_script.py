"""A script with an extension as users have it, run by test_extensions.py."""

import sys

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename T>
__global__ void reverse(const T* x, T* y, bool waits) {
    __shared__ T tile[64];
    tile[threadIdx.x] = x[threadIdx.x];  // the write
    if (waits)
        __syncthreads();
    y[threadIdx.x] = tile[63 - threadIdx.x];  // the read
}
torch::Tensor reversed(torch::Tensor x, bool waits) {
    TORCH_CHECK(x.is_cuda(), "x is no tensor of the GPU");
    const c10::cuda::CUDAGuard guard(x.device());
    auto stream = at::cuda::getCurrentCUDAStream();
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "reversed", [&] {
        reverse<scalar_t><<<1, 64, 0, stream>>>(  // the launch
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), waits);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
// ATen's operators on tensors of the device: new ones, in place, views, of the host, resized.
std::tuple<torch::Tensor, double> operators(torch::Tensor x, torch::Tensor out) {
    auto y = torch::matmul(x, x.t()).add_(1);
    auto host = y.cpu();
    TORCH_CHECK(y.is_cuda() && !host.is_cuda() && host.to(torch::kCUDA).is_cuda());
    TORCH_CHECK(torch::zeros({2}, torch::kCUDA).device() == x.device());
    out.resize_({2, 2}).copy_(y.slice(0, 0, 2).slice(1, 0, 2));
    y[0][0] = 7.0;
    return {y, host.max().item<double>()};
}
torch::Tensor same(torch::Tensor x) { return x; }
void too_many_threads(torch::Tensor x) {
    reverse<float><<<1, 4096>>>(x.data_ptr<float>(), x.data_ptr<float>(), true);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
DECLARED = """torch::Tensor same(torch::Tensor x);
torch::Tensor reversed(torch::Tensor x, bool waits);
std::tuple<torch::Tensor, double> operators(torch::Tensor x, torch::Tensor out);
void too_many_threads(torch::Tensor x);"""
extension = load_inline(
    name="reversing", cpp_sources=DECLARED, cuda_sources=SOURCE,
    functions=["reversed", "same", "operators", "too_many_threads"],
    extra_cuda_cflags=["-O2", "-gencode=arch=compute_80,code=sm_80"], extra_ldflags=[""],
)  # fmt: skip
x = torch.arange(64.0, device="cuda")
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    y = extension.reversed(x.to(dtype), True)
    assert y.is_cuda
    assert y.dtype == dtype
    assert torch.equal(y, x.to(dtype).flip(0))
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = extension.reversed(x, True)
if "unordered" in sys.argv:
    y += 1
torch.cuda.synchronize()
assert extension.same(x) is x
square, out = torch.rand(4, 3, device="cuda"), torch.empty(0, device="cuda")
y, most = extension.operators(square, out)
expected = square @ square.t() + 1
torch.testing.assert_close(out, expected[:2, :2].contiguous())
assert abs(most - float(expected.max())) < 1e-6
expected[0, 0] = 7
torch.testing.assert_close(y, expected)
for call, said in (
    (lambda: extension.reversed(torch.zeros(64), True), "x is no tensor of the GPU"),
    (lambda: extension.reversed(torch.zeros(64, device="cuda").int(), True), "not implemented for"),
):
    try:
        call()
    except RuntimeError as error:
        assert said in str(error)  # noqa: PT017
    else:
        raise AssertionError(said)
if "launch" in sys.argv:
    extension.too_many_threads(x)
extension.reversed(x, "racy" not in sys.argv)
print("done")
