"""Scripts that capture streams into graphs, or make graphs of nodes; ``--faulty``: unordered."""

from .pointer_scripts import DRIVER

_SOURCE = """
extern "C" __global__ void add(float *x, float a) { x[threadIdx.x] += a; }
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }
"""
_CORE = f'''
import sys, numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

device = Device()
device.set_current()
stream = device.create_stream()
code = Program("""{_SOURCE}""", code_type="c++").compile("cubin")
add, twice = code.get_kernel("add"), code.get_kernel("twice")
one = LaunchConfig(grid=1, block=32)
x, y = (device.allocate(128, stream=stream) for _ in "xy")
values = lambda buffer: np.from_dlpack(buffer).view(np.float32)
values(x)[:] = values(y)[:] = 1
'''

GRAPHS = {
    "cuda.core": _CORE
    + """
from cuda.core.graph import GraphBuilder

heard = []
builder = device.create_graph_builder().begin_building()
launch(builder, one, add, x, np.float32(1))
left, right = builder.split(2)
launch(left, one, twice, x)
launch(right, one, add, y if "--faulty" not in sys.argv else x, np.float32(3))
joined = GraphBuilder.join(left, right)
launch(joined, one, add, x, np.float32(0.5))
joined.callback(lambda: heard.append(values(x)[0]))
graph = builder.end_building().complete()
assert values(x)[0] == 1 and heard == []
for _ in range(2):
    graph.launch(stream)
stream.sync()
if "--faulty" not in sys.argv:
    assert heard == [4.5, 11.5] and values(x)[31] == 11.5 and values(y)[0] == 7
""",
    "cuda.core of a stream": _CORE
    + """
builder = stream.create_graph_builder()
builder.begin_building()
y.copy_from(x, stream=builder.stream)
launch(builder, one, twice, y)
graph = builder.end_building().complete()
values(x)[:] = 5
graph.upload(stream)
graph.launch(stream)
if "--faulty" not in sys.argv:
    stream.sync()
launch(device.create_stream(), one, add, y, np.float32(1))
device.sync()
assert values(y)[3] == 11
""",
    "cuda.bindings": DRIVER
    + """
import sys
first, second = (ok(driver.cuStreamCreate(1)) for _ in "ab")
x = ok(driver.cuMemAlloc(8))
table, host = ok(driver.cuMemAlloc(8)), np.array([int(x)], np.uint64)
rows = ok(driver.cuModuleGetFunction(module, b"rows"))
def add(stream):
    args = ((table, 1), (None, None))
    return driver.cuLaunchKernel(rows, 1, 1, 1, 32, 1, 1, 0, stream, args, 0)
mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
ok(driver.cuStreamBeginCapture(first, mode))
assert ok(driver.cuStreamIsCapturing(first)).value == 1
ok(driver.cuMemcpyHtoDAsync(table, host.ctypes.data, 8, first))
ok(driver.cuMemsetD32Async(x, 0x40000000, 1, first))
event = ok(driver.cuEventCreate(0))
if "--faulty" not in sys.argv:
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(add(second))
    ok(driver.cuEventRecord(event, second))
    ok(driver.cuStreamWaitEvent(first, event, 0))
assert driver.cuStreamSynchronize(first)[0].value == 900
graph = ok(driver.cuStreamEndCapture(first))
assert driver.cuStreamEndCapture(first)[0].value != 0
assert driver.cuGraphGetNodes(graph)[2] == (3 if "--faulty" not in sys.argv else 2)
execute = ok(driver.cuGraphInstantiate(graph, 0))
ok(driver.cuGraphLaunch(execute, first))
if "--faulty" in sys.argv:
    ok(add(second))
ok(driver.cuCtxSynchronize())
assert get(x)[0] == 3
for one in (x, table):
    ok(driver.cuMemFree(one))
""",
    "cuda.bindings, nodes": DRIVER
    + """
import sys
x, table = ok(driver.cuMemAlloc(4)), ok(driver.cuMemAlloc(8))
put(table, np.array([int(x)], np.uint64))
graph = ok(driver.cuGraphCreate(0))
fill = driver.CUDA_MEMSET_NODE_PARAMS()
fill.dst, fill.value, fill.elementSize, fill.width, fill.height = x, 0x3F800000, 4, 1, 1
filled = ok(driver.cuGraphAddMemsetNode(graph, None, 0, fill, 0))
run = driver.CUDA_KERNEL_NODE_PARAMS()
run.func = ok(driver.cuModuleGetFunction(module, b"rows"))
run.gridDimX = run.gridDimY = run.gridDimZ = run.blockDimX = run.blockDimY = run.blockDimZ = 1
values = np.array([int(table)], np.uint64), np.array([1], np.uint64)
places = np.array([value.ctypes.data for value in values], np.uint64)
run.kernelParams = places.ctypes.data
behind = [filled] if "--faulty" not in sys.argv else []
ok(driver.cuGraphAddKernelNode(graph, behind, len(behind), run))
execute = ok(driver.cuGraphInstantiate(graph, 0))
for _ in range(2):
    ok(driver.cuGraphLaunch(execute, 0))
assert get(x)[0] == 2
ok(driver.cuGraphExecDestroy(execute))
ok(driver.cuGraphDestroy(graph))
for one in (x, table):
    ok(driver.cuMemFree(one))
""",
}
"""By the front end."""
