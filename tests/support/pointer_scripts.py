"""Scripts that keep addresses in the GPU's memory, and pass them from one front end to another."""

SOURCE = """
struct Link { Link *next; float value; };
__device__ float total;
extern "C" __global__ void rows(float **t, int n) {
    if (threadIdx.x < n) t[threadIdx.x][0] += threadIdx.x + 1;
}
extern "C" __global__ void follow(Link *link) {
    for (; link; link = link->next) total += link->value;
}
"""
DRIVER = f'''
import numpy as np
from cuda.bindings import driver
from kernels import Kernel

def ok(answer):
    assert answer[0].value == 0, answer[0]
    return answer[1] if len(answer) > 1 else None

PTX = Kernel.from_cuda("""{SOURCE}""", "rows").ptx
module = ok(driver.cuModuleLoadData(PTX.encode()))

def launch(name, *args):
    values = [np.array([int(arg)], np.uint64) for arg in args]
    table = np.array([value.ctypes.data for value in values], np.uint64)
    kernel = ok(driver.cuModuleGetFunction(module, name))
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, table.ctypes.data, 0))

def put(to, array):
    ok(driver.cuMemcpyHtoD(to, array.ctypes.data, array.nbytes))

def get(given, count=1):
    made = np.zeros(count, np.float32)
    ok(driver.cuMemcpyDtoH(made.ctypes.data, given, made.nbytes))
    return made
'''

EMBEDDED = {
    "cuda.bindings": DRIVER
    + """
parts = [ok(driver.cuMemAlloc(4)) for _ in range(3)]
for part in parts:
    put(part, np.zeros(1, np.float32))
table = ok(driver.cuMemAlloc(24))
put(table, np.array([int(part) for part in parts], np.uint64))
for times in (1, 2):
    launch(b"rows", table, 3)
    assert [get(part)[0] for part in parts] == [times, 2 * times, 3 * times]
links = [ok(driver.cuMemAlloc(16)) for _ in range(3)]
for link, after in zip(links, [*links[1:], 0]):
    put(link, np.array([int(after), 0], np.uint64))
    put(int(link) + 8, np.array([1.5], np.float32))
total = driver.cuModuleGetGlobal(module, b"total")
assert total[2] == 4
put(total[1], np.zeros(1, np.float32))
kernel = ok(driver.cuModuleGetFunction(module, b"follow"))
ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, ((links[0],), (None,)), 0))
assert get(total[1])[0] == 4.5
for one in (*parts, table, *links):
    ok(driver.cuMemFree(one))
""",
    "cuda.core": f'''
import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

device = Device()
device.set_current()
stream = device.create_stream()
rows = Program("""{SOURCE}""", code_type="c++").compile("cubin").get_kernel("rows")
parts = [device.allocate(4, stream=stream) for _ in range(3)]
for part in parts:
    part.fill(0, stream=stream)
table = device.allocate(24, stream=stream)
np.from_dlpack(table).view(np.uint64)[:] = [int(part.handle) for part in parts]
launch(stream, LaunchConfig(grid=1, block=32), rows, table, np.int32(3))
stream.sync()
assert [np.from_dlpack(part).view(np.float32)[0] for part in parts] == [1, 2, 3]
''',
    "numba_cuda": """
import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

@intrinsic
def at(typing_context, address):
    def generate(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], ir.FloatType().as_pointer()))
    return types.float32(types.uint64), generate

@cuda.jit
def gather(table, out):
    i = cuda.grid(1)
    if i < table.size:
        out[i] = at(table[i])

parts = [cuda.to_device(np.full(4, k, np.float32)) for k in range(3)]
places = [part.__cuda_array_interface__["data"][0] for part in parts]
places[1] += 8
table, out = cuda.to_device(np.array(places, np.uint64)), cuda.device_array(3, np.float32)
gather[1, 32](table, out)
assert out.copy_to_host().tolist() == [0, 1, 2]
parts[2].copy_to_device(np.full(4, 7, np.float32))
gather[1, 32](table, out)
assert out.copy_to_host().tolist() == [0, 1, 7]
""",
    "triton": """
import torch, triton, triton.language as tl

@triton.jit
def walk(link, out, n):
    total = tl.full((), 0.0, tl.float64)
    for _ in range(n):
        after = tl.load(link)  # first: else Triton 3.9 has one register for it and for link
        total += tl.load((link + 1).to(tl.pointer_type(tl.float64)))
        link = after.to(tl.pointer_type(tl.int64))
    tl.store(out, total)

links = [torch.zeros(2, dtype=torch.int64, device="cuda") for _ in range(4)]
for k, link in enumerate(links):
    link[0] = links[(k + 1) % 4].data_ptr()
    link.view(torch.float64)[1] = 2.0**k
out = torch.empty(1, device="cuda", dtype=torch.float64)
walk[(1,)](links[1], out, 4)
assert out.item() == 15
""",
}
"""Addresses in the GPU's memory, by the front end that keeps them there."""

FREED = {
    "cuda.bindings": DRIVER
    + """
part, table = ok(driver.cuMemAlloc(4)), ok(driver.cuMemAlloc(8))
put(part, np.zeros(1, np.float32))
put(table, np.array([int(part)], np.uint64))
ok(driver.cuMemFree(part))
launch(b"rows", table, 1)
ok(driver.cuMemFree(table))
""",
    "torch": """
import torch, triton, triton.language as tl

@triton.jit
def first(table, out):
    tl.store(out, tl.load(tl.load(table).to(tl.pointer_type(tl.float32))))

table = torch.tensor([torch.ones(8, device="cuda").data_ptr()], device="cuda")
first[(1,)](table, torch.zeros(1, device="cuda"))
""",
}
"""A kernel follows an address in memory to what is gone."""

MISTAKES = {
    "use-after-free": """
x = ok(driver.cuMemAlloc(64))
ok(driver.cuMemFree(x))
assert driver.cuMemcpyDtoH(np.zeros(1, np.float32).ctypes.data, x, 4)[0].value == 1  # here
""",
    "bad-copy": """
x = ok(driver.cuMemAlloc(64))
assert driver.cuMemcpyHtoD(x, bytes(68), 68)[0].value == 1  # here
ok(driver.cuMemFree(x))
""",
    "host-pointer": """
x = np.zeros(8, np.float32)
kernel = ok(driver.cuModuleGetFunction(module, b"rows"))
driver.cuLaunchKernel(  # here
    kernel, 1, 1, 1, 1, 1, 1, 0, 0, ((x.ctypes.data, 1), (None, None)), 0)
launch(b"rows", x.ctypes.data, 0)  # never read
""",
    "launch-error": """
kernel = ok(driver.cuModuleGetFunction(module, b"follow"))
assert driver.cuLaunchKernel(  # here
    kernel, 1, 1, 1, 2048, 1, 1, 0, 0, ((0,), (None,)), 0)[0].value == 1
""",
    "host-unset": """
x = ok(driver.cuMemAlloc(64))
get(x)
ok(driver.cuMemFree(x))
""",
    "leak": """
x = ok(driver.cuMemAlloc(64))  # here
""",
}
MISTAKES = {kind: DRIVER + text for kind, text in MISTAKES.items()}
"""Of the driver API's users; the line ends in ``# here``."""

MIXED = """
import numpy as np, torch
from numba import cuda
from cuda.core import Device, LaunchConfig, Program, launch

x = torch.arange(12.0, device="cuda").reshape(3, 4)
view = cuda.as_cuda_array(x[1:])
assert view.shape == (2, 4)
assert view.__cuda_array_interface__["data"][0] == x.data_ptr() + 16 == x[1:].data_ptr()

class Interface:
    __cuda_array_interface__ = x[:, 2].__cuda_array_interface__

column = cuda.as_cuda_array(Interface)
assert column.strides == (16,) and column.copy_to_host().tolist() == [2, 6, 10]

@cuda.jit
def twice(a):
    a[cuda.grid(1)] *= 2

twice[1, 3](column)
assert x[:, 2].tolist() == [4, 12, 20]
device = Device()
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void add(float *x) { x[threadIdx.x] += 100; }'
add = Program(source, code_type="c++").compile("cubin").get_kernel("add")
torch.cuda.synchronize()
launch(stream, LaunchConfig(grid=1, block=4), add, x[2:].data_ptr())
stream.sync()
assert x[2].tolist() == [108, 109, 120, 111]
"""

RUNTIME = """
import ctypes
import numpy as np
from cuda.bindings import driver, runtime
from kernels import Kernel

def ok(answer):
    assert answer[0].value == 0, answer[0]
    return answer[1] if len(answer) > 1 else None

properties = ok(runtime.cudaGetDeviceProperties(0))
assert (properties.major, properties.multiProcessorCount) == (9, 132)
attribute = runtime.cudaDeviceAttr.cudaDevAttrMaxThreadsPerBlock
assert ok(runtime.cudaDeviceGetAttribute(attribute, 0)) == 1024
source = 'extern "C" __global__ void add(float *x, float *y) { y[threadIdx.x] += x[threadIdx.x]; }'
module = ok(driver.cuModuleLoadData(Kernel.from_cuda(source, "add").ptx.encode()))
add = ok(driver.cuModuleGetFunction(module, b"add"))
stream, way = ok(runtime.cudaStreamCreate()), runtime.cudaMemcpyKind
host, x = np.arange(16, dtype=np.float32), ok(runtime.cudaMalloc(64))
y = ok(runtime.cudaMallocManaged(64, runtime.cudaMemAttachGlobal))
seen = np.frombuffer((ctypes.c_float * 16).from_address(int(y)), np.float32)
seen[:] = 1
into = way.cudaMemcpyHostToDevice
ok(runtime.cudaMemcpyAsync(x, host.ctypes.data, 64, into, stream))
ok(driver.cuLaunchKernel(add, 1, 1, 1, 16, 1, 1, 0, stream, ((x, y), (ctypes.c_void_p,) * 2), 0))
ok(runtime.cudaStreamSynchronize(stream))
assert seen.tolist() == (host + 1).tolist()
out = np.zeros_like(host)
ok(runtime.cudaMemcpy(out.ctypes.data, y, 64, way.cudaMemcpyDefault))
assert out.tolist() == seen.tolist()
assert runtime.cudaMemcpy(x, out.ctypes.data, 68, into)[0] == 1
assert [int(ask()[0]) for ask in (runtime.cudaGetLastError, runtime.cudaGetLastError)] == [1, 0]
for one in (x, y):
    ok(runtime.cudaFree(one))
"""
