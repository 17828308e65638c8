"""Scripts of GPU users, as text; kernels of theirs."""

SOURCE = """
struct Rows { float *x; int n; };
extern "C" __global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
extern "C" __global__ void thrice(Rows rows) {
    if (threadIdx.x < rows.n) rows.x[threadIdx.x] *= 3;
}
extern "C" __global__ void racy(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}
"""
DRIVER = f'''
import ctypes, sys
import numpy as np
from cuda.bindings import driver, nvrtc

def ok(answer):
    assert answer[0].value == 0, answer[0]
    return answer[1] if len(answer) > 1 else None

SOURCE = b"""{SOURCE}"""
ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
ok(driver.cuDevicePrimaryCtxRetain(device))
program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b"some.cu", 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 2, [b"--gpu-architecture=sm_90", b"-lineinfo"]))
code = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
ok(nvrtc.nvrtcGetCUBIN(program, code))
module = ok(driver.cuModuleLoadData(code))
kernel = lambda name: ok(driver.cuModuleGetFunction(module, name))
x = np.arange(100, dtype=np.float32)
there = ok(driver.cuMemAlloc(x.nbytes))
ok(driver.cuMemcpyHtoD(there, x.ctypes.data, x.nbytes))
values = [np.array([int(there)], np.uint64), np.array([100], np.int32)]
table = np.array([v.ctypes.data for v in values], np.uint64)
ok(driver.cuLaunchKernel(kernel(b"twice"), 4, 1, 1, 32, 1, 1, 0, 0, table.ctypes.data, 0))

class Rows(ctypes.Structure):
    _fields_ = [("x", ctypes.c_void_p), ("n", ctypes.c_int)]

rows = Rows(int(there) + 40, 20)
ok(driver.cuLaunchKernel(kernel(b"thrice"), 1, 1, 1, 32, 1, 1, 0, 0, ((rows,), (None,)), 0))
out = np.zeros_like(x)
ok(driver.cuMemcpyDtoH(out.ctypes.data, there, x.nbytes))
expected = x * 2
expected[10:30] *= 3
np.testing.assert_array_equal(out, expected)
if "--racy" in sys.argv:
    ok(driver.cuLaunchKernel(kernel(b"racy"), 1, 1, 1, 64, 1, 1, 0, 0, ((there,), (None,)), 0))
if "--freed" in sys.argv:
    ok(driver.cuMemFree(there))
    ok(driver.cuLaunchKernel(
        kernel(b"twice"), 1, 1, 1, 32, 1, 1, 0, 0, ((there, 8), (None, ctypes.c_int)), 0))
if "--unset" in sys.argv:
    fresh = ok(driver.cuMemAlloc(128))
    ok(driver.cuLaunchKernel(
        kernel(b"twice"), 1, 1, 1, 32, 1, 1, 0, 0, ((fresh, 8), (None, ctypes.c_int)), 0))
if "--missing" in sys.argv:
    driver.cuTensorMapEncodeTiled(0)
if "--freed" not in sys.argv:
    ok(driver.cuMemFree(there))
print("right")
'''

NUMBA = """
import numpy as np
from numba import cuda

@cuda.jit("void(int32[:], int32)")
def plus(a, n):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += n

@cuda.reduce
def total(a, b):
    return a + b

assert cuda.is_available()
a = np.arange(10, dtype=np.int32)
plus.forall(10)(a, 3)
assert a[9] == 12
with cuda.stream().auto_synchronize() as stream:
    d = cuda.to_device(a, stream)
    plus[1, 32, stream](d[2:], 1)
assert a[9] == 12 and d.copy_to_host()[9] == 13 and d.copy_to_host()[1] == 4
assert total(d) == d.copy_to_host().sum()
half = cuda.device_array((4, 4), np.float16, order="F")
assert half.strides == (2, 8) and half.is_f_contiguous()
first, last = cuda.event(), cuda.event()
first.record(); last.record(); last.synchronize()
assert np.isnan(cuda.event_elapsed_time(first, last))
try:
    cuda.external_stream(3)
except NotImplementedError as error:
    print(error)
"""

TRITON = """
import numpy as np, triton, triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (128, 256)], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

@triton.jit
def rows(x, out, s0, s1, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sum(tl.load(x + i[:, None] * s0 + i[None, :] * s1), 1))

x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
out = np.zeros_like(x)
grid = lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)
add[grid](x, y, out, 1000)
np.testing.assert_array_equal(out, x + y)
assert np.isnan(triton.testing.do_bench(lambda: add[grid](x, y, out, 1000)))
m, sums = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros(8, np.float32)
rows[(1,)](m.T, sums, 1, 8, N=8)
np.testing.assert_array_equal(sums, m.sum(0))
"""

STREAMS = {
    "cuda.bindings": f'''
import sys, numpy as np
from cuda.bindings import driver, nvrtc

def ok(answer):
    assert answer[0].value == 0, answer[0]
    return answer[1] if len(answer) > 1 else None

program = ok(nvrtc.nvrtcCreateProgram(b"""{SOURCE}""", b"some.cu", 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_90"]))
code = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
ok(nvrtc.nvrtcGetPTX(program, code))
twice = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(code)), b"twice"))
first, second = (ok(driver.cuStreamCreate(1)) for _ in "ab")
x = ok(driver.cuMemAlloc(128))
ok(driver.cuMemsetD32Async(x, 0x3F800000, 32, first))
values = np.array([int(x)], np.uint64), np.array([32], np.int32)
table = np.array([v.ctypes.data for v in values], np.uint64)
def launch(stream):
    ok(driver.cuLaunchKernel(twice, 1, 1, 1, 32, 1, 1, 0, stream, table.ctypes.data, 0))
launch(first)
if "--faulty" not in sys.argv:
    done = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(done, first))
    ok(driver.cuStreamWaitEvent(second, done, 0))
launch(second)
ok(driver.cuStreamSynchronize(second))
ok(driver.cuMemFree(x))
''',
    "cuda.core": f'''
import sys, numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

device = Device()
device.set_current()
twice = Program("""{SOURCE}""", code_type="c++").compile("cubin").get_kernel("twice")
first, second = device.create_stream(), device.create_stream()
x = device.allocate(128, stream=first)
x.fill(np.float32(1).tobytes(), stream=first)
launch(first, LaunchConfig(grid=1, block=32), twice, x, np.int32(32))
if "--faulty" not in sys.argv:
    second.wait(first.record())
launch(second, LaunchConfig(grid=1, block=32), twice, x, np.int32(32))
second.sync()
x.close(second)
''',
    "numba": """
import sys, numpy as np
from numba import cuda

@cuda.jit
def twice(x):
    x[cuda.grid(1)] *= 2

first, second = cuda.stream(), cuda.stream()
x = cuda.to_device(np.ones(32, np.float32), stream=first)
twice[1, 32, first](x)
if "--faulty" not in sys.argv:
    done = cuda.event()
    done.record(first)
    done.wait(second)
twice[1, 32, second](x)
assert x.copy_to_host(stream=second)[0] == 4
host = np.ones(32, np.float32)
twice[1, 32, first](host)
twice[1, 32, second](host)
""",
    "torch": """
import sys, torch, triton, triton.language as tl

@triton.jit
def twice(x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x + at, tl.load(x + at) * 2)

x = torch.ones(128, device="cuda")
first, second = torch.cuda.Stream(), torch.cuda.Stream()
first.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(first):
    twice[(1,)](x, N=128)
    done = torch.cuda.Event()
    done.record()
if "--faulty" not in sys.argv:
    second.wait_event(done)
with torch.cuda.stream(second):
    twice[(1,)](x, N=128)
    assert torch.cuda.current_stream() == second
torch.cuda.synchronize()
assert x.cpu()[0] == 4
""",
}
"""Scripts in which one launch depends on another in another stream; ``--faulty``: unordered."""
