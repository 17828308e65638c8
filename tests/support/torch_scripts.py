"""Scripts with PyTorch, as text: what works under ``exec``, what fails as on a GPU."""

WORKS = {
    "constructors": """
        for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn):
            assert make(2, 3, device="cuda").is_cuda
        for x in (torch.full((2,), 7, device="cuda:0"), torch.arange(3, device=0),
                  torch.tensor([1.5, 2], device=torch.device("cuda")), torch.eye(2, device="cuda"),
                  torch.as_tensor([1, 2], device="cuda"), torch.linspace(0, 1, 3, device="cuda"),
                  torch.randint(0, 9, (4,), device="cuda"), torch.randperm(4, device="cuda"),
                  torch.zeros_like(torch.ones(2), device="cuda"),
                  torch.ones(2, device="cuda").new_empty(3)):
            assert str(x.device) == "cuda:0" and x.is_cuda and not x.is_cpu
            assert x.get_device() == 0 and x.type().startswith("torch.cuda.")
        assert torch.zeros(2, device="cpu").is_cpu and torch.zeros(2).get_device() == -1
        assert not torch.zeros_like(x, device="cpu").is_cuda
    """,
    "default device": """
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda and torch.tensor(1).is_cuda
        assert torch.zeros(2).is_cpu
        torch.set_default_device("cuda")
        assert torch.rand(2).is_cuda and torch.rand(2, device="cpu").is_cpu
        torch.set_default_device(None)
    """,
    "moving": """
        x = torch.arange(6.0)
        for y in (x.cuda(), x.to("cuda"), x.to(0), x.to(torch.device("cuda")),
                  x.to(torch.zeros(1, device="cuda")), x.cuda(non_blocking=True)):
            assert y.is_cuda and y.data_ptr() != x.data_ptr()
            assert y.cuda() is y and y.to("cuda") is y and y.cpu().is_cpu
            assert y.cpu().tolist() == x.tolist() == y.tolist()
        assert x.cpu() is x and x.to("cpu") is x
        half = x.to("cuda", torch.float16)
        assert (half.dtype, half.is_cuda) == (torch.float16, True)
        assert half.to(torch.float32).is_cuda and half.type_as(x).is_cpu
        x.copy_(y * 2)
        assert x.is_cpu and x[5] == 10
        y[:3] = torch.zeros(3)
        assert y.is_cuda and y.tolist() == [0, 0, 0, 3, 4, 5]
    """,
    "what is computed": """
        x = torch.rand(4, 4, device="cuda")
        for y in (x + 1, x @ x, x.T, x[1:], x.view(16), x.sum(), x.max(0).values, torch.stack([x]),
                  torch.nn.functional.softmax(x, 0), x.detach(), x.half(), x > 0.5, x.argmax(),
                  torch.nn.functional.one_hot(x.argmax(1)), torch.where(x > 0, x, 0.0),
                  torch.add(x, torch.tensor(2.0)), x.clone()):
            assert y.is_cuda, y
        assert x.cpu().is_cpu and x.sum().item() > 0 and f"{x.sum():.2f}"
        assert "device='cuda:0'" in repr(x)
    """,
    "modules and gradients": """
        import copy
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        first, ours = net[0].weight, copy.deepcopy(net)
        optimizer = torch.optim.Adam(net.parameters())
        net.to("cuda")
        assert net[0].weight is first and first.is_cuda
        x = torch.rand(5, 3)
        for model, data in ((net, x.cuda()), (ours, x)):
            model(data).sum().backward()
        assert all(p.grad.is_cuda for p in net.parameters())
        for p, q in zip(net.parameters(), ours.parameters()):
            torch.testing.assert_close(p.grad.cpu(), q.grad)
        optimizer.step()
        torch.save(net.state_dict(), "net.pt")
        assert torch.load("net.pt")["0.weight"].is_cuda
        assert torch.load("net.pt", map_location="cpu")["0.weight"].is_cpu
        x.requires_grad_()
        x.cuda().mul(2).sum().backward()
        assert x.grad.is_cpu

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                assert gradient.is_cuda and x.is_cuda
                return torch.full(x.shape, 2.0, device="cuda") * gradient

        y = torch.ones(3, device="cuda", requires_grad=True)
        Twice.apply(y).sum().backward()
        assert y.grad.tolist() == [2, 2, 2] and y.grad.is_cuda
    """,
    "is_available": """
        assert torch.cuda.is_available() is True and torch.cuda.device_count() == 1
        assert torch.cuda.current_device() == 0 and torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator().type == "cuda"
        torch.cuda.set_device(0), torch.cuda.set_device("cuda:0")
        with torch.cuda.device(0), torch.cuda.device_of(torch.zeros(1, device="cuda")):
            assert torch.cuda.get_device_name() == torch.cuda.get_device_name(0)
    """,
    "synchronize": """
        torch.cuda.synchronize(), torch.cuda.synchronize("cuda:0"), torch.cuda.empty_cache()
        torch.accelerator.synchronize()
    """,
    "Event": """
        import math
        first, last = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        first.record(); last.record(torch.cuda.current_stream()); last.synchronize()
        assert last.query() and math.isnan(first.elapsed_time(last))
        torch.cuda.Stream().wait_event(first); first.wait()
    """,
    "current_stream": """
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            assert torch.cuda.current_stream() == side != torch.cuda.default_stream()
            x = torch.ones(3, device="cuda")
        with side:
            assert torch.cuda.current_stream().cuda_stream == side.cuda_stream
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(None):
            side.record_event().wait(); side.synchronize()
        assert side.query()
    """,
    "random numbers": """
        torch.manual_seed(5)
        a = torch.rand(3), torch.rand(3, device="cuda")
        torch.manual_seed(5)
        torch.rand(7, device="cuda")
        assert torch.equal(torch.rand(3), a[0])
        torch.cuda.manual_seed(5)
        assert torch.equal(torch.rand(3, device="cuda"), a[1])
        one = torch.Generator(device="cuda").manual_seed(1)
        assert one.device.type == "cuda" and torch.rand(3, device="cuda", generator=one).is_cuda
    """,
    "pinned memory": """
        host = torch.empty(3, pin_memory=True)
        assert host.is_pinned() and host.is_cpu and not torch.empty(3).is_pinned()
        assert torch.ones(3).pin_memory().is_pinned()
        host.copy_(torch.ones(3, device="cuda"), non_blocking=True)
        torch.cuda.synchronize()
        assert host.tolist() == [1, 1, 1]
    """,
}
"""What scripts do with tensors and with ``torch.cuda``, one subject each."""

FAILS = {
    "torch.zeros(3, device='cuda') + torch.zeros(3)": "all tensors to be on the same device",
    "torch.zeros(3, device='cuda') @ torch.zeros(3)": "all tensors to be on the same device",
    "torch.cat([torch.zeros(3, device='cuda'), torch.zeros(3)])": "on the same device",
    "torch.zeros(3, device='cuda').numpy()": "Use Tensor.cpu() to copy",
    "__import__('numpy').asarray(torch.zeros(3, device='cuda'))": "Use Tensor.cpu() to copy",
    "torch.zeros(3, device='cuda').pin_memory()": "only CPU memory can be pinned",
    "torch.zeros(3, device='cuda:1')": "there is no cuda:1",
    "torch.zeros(3).cuda(1)": "there is no cuda:1",
    "torch.cuda.set_device(1)": "there is no cuda:1",
    "torch.cuda.get_device_properties(1)": "there is no cuda:1",
    "torch.cuda.Stream(device=1)": "there is no cuda:1",
    "torch.zeros(3, device='cuda').to_sparse()": "use Tensor.to_dense()",
    "torch.autocast('cuda')": "no stand-in for torch.autocast('cuda'); convert by hand",
    "torch.compile(abs)": "no stand-in for torch.compile; call the function itself",
    "torch.cuda.CUDAGraph()": "torch.cuda.CUDAGraph; launch without a graph",
    "torch.cuda.graph(3)": "torch.cuda.graph; launch without a graph",
    "torch.cuda.FloatTensor(3)": "use torch.tensor(..., device='cuda')",
    "torch.zeros(3).type('torch.cuda.FloatTensor')": "use Tensor.to('cuda', dtype)",
    "torch.cuda.max_memory_allocated()": "torch.cuda.max_memory_allocated; what memory",
    "torch.cuda.nccl.version()": "torch.cuda.nccl.version; one GPU is simulated",
    "torch.cuda.ExternalStream(3)": "use torch.cuda.Stream()",
}
"""What a GPU refuses too, in PyTorch's words, and what has no stand-in."""

UNSET = """
import sys, torch, triton, triton.language as tl

@triton.jit
def add_to(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(y + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)

x, grid = torch.ones(300, device="cuda"), (3,)
for y in (torch.empty(300, device="cuda").zero_(),
          torch.empty(10, 30, device="cuda").fill_(3).view(-1),
          torch.nn.Linear(10, 30, device="cuda").weight, torch.empty_like(x).copy_(x),
          torch.add(x, x, out=torch.empty(300, device="cuda"))):
    add_to[grid](x, y, 300, B=128)
y = torch.empty_like(x)
y[:150] = 0
add_to[grid](x, y, 150 if "--faulty" not in sys.argv else 151, B=128)
"""

TABLES = """
import sys, torch, triton, triton.language as tl

@triton.jit
def join(parts, out, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    for k in range(n):
        part = tl.load(parts + k).to(tl.pointer_type(tl.float32))
        tl.store(out + k * SIZE + at, tl.load(part + at))

size = 64 if "--faulty" not in sys.argv else 60
parts = [torch.full((size,), float(k), device="cuda") for k in range(3)]
out = torch.empty(3 * 64, device="cuda")
join[(1,)](torch.tensor([p.data_ptr() for p in parts], device="cuda"), out, 3, SIZE=64)
if size == 64:
    assert torch.equal(out, torch.cat(parts))
"""

CORE = """
import sys, torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

class Shared:
    def __init__(self, stream):
        self.stream = stream
    def __cuda_stream__(self):
        return 0, self.stream.cuda_stream

device = Device()
device.set_current()
side = torch.cuda.Stream()
stream = device.create_stream(Shared(side))
SOURCE = "template<typename T> __global__ void scale(const T* x, T* y, T a, size_t n) {" \
    "size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i]; }"
code = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch="sm_90")).compile(
    "cubin", name_expressions=("scale<float>",))
x = torch.arange(100.0, device="cuda")
y = torch.empty_like(x)
if "--faulty" not in sys.argv:
    side.wait_stream(torch.cuda.current_stream())
import ctypes
launch(stream, LaunchConfig(grid=4, block=32), code.get_kernel("scale<float>"),
       x.data_ptr(), y.data_ptr(), ctypes.c_float(2), 100)
stream.sync()
assert torch.equal(y, x * 2)
"""
