"""A transpose with cuda.core through a tile; ``--faulty`` forgets the barrier."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch

FAULTY = "--faulty" in sys.argv
SOURCE = """
template <typename T, int TILE>
__global__ void transpose(const T *in, T *out, int rows, int columns) {
    __shared__ T tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    BARRIER;
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    if (x < rows && y < columns)
        out[y * rows + x] = tile[threadIdx.x][threadIdx.y];  // named
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
barrier = "(void)0" if FAULTY else "__syncthreads()"
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", define_macro=[("BARRIER", barrier)])
name = "transpose<int, 16>"
program = Program(SOURCE, code_type="c++", options=options)
kernel = program.compile("cubin", name_expressions=(name,)).get_kernel(name)

ROWS, COLUMNS = 35, 50
pinned = PinnedMemoryResource()
given, made = (pinned.allocate(ROWS * COLUMNS * 4, stream=stream) for _ in range(2))
before = np.from_dlpack(given).view(np.int32).reshape(ROWS, COLUMNS)
after = np.from_dlpack(made).view(np.int32).reshape(COLUMNS, ROWS)
before[...] = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
config = LaunchConfig(grid=(4, 3), block=(16, 16))
launch(stream, config, kernel, given, made, np.int32(ROWS), np.int32(COLUMNS))
stream.sync()
if not FAULTY:
    np.testing.assert_array_equal(after, before.T)
