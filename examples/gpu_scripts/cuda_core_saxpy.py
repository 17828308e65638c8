"""A script for a GPU with cuda.core; without one: ``tilescope exec cuda_core_saxpy.py``."""

import numpy as np
from cuda.core import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

SOURCE = """
template <typename T>
__global__ void saxpy(const T a, const T *x, const T *y, T *out, size_t n) {
    size_t first = blockIdx.x * blockDim.x + threadIdx.x;
    for (size_t i = first; i < n; i += gridDim.x * blockDim.x) out[i] = a * x[i] + y[i];
}
"""


def main() -> None:
    """Compile, launch, compare."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    program = Program(SOURCE, code_type="c++", options=options)
    code = program.compile("cubin", name_expressions=("saxpy<float>",))
    kernel = code.get_kernel("saxpy<float>")

    size = 1000
    pinned = LegacyPinnedMemoryResource()
    buffers = [pinned.allocate(size * 4) for _ in range(3)]
    x, y, out = (np.from_dlpack(buffer).view(np.float32) for buffer in buffers)
    x[:], y[:] = np.random.default_rng(1).random((2, size))
    config = LaunchConfig(grid=4, block=256)
    launch(stream, config, kernel, np.float32(2), *buffers, np.uint64(size))
    stream.sync()
    np.testing.assert_allclose(out, 2 * x + y, rtol=1e-6)
    print("saxpy of 1,000 elements is right")


if __name__ == "__main__":
    main()
