"""One call site, two machines: every kind of argument, on the simulator and on a GPU."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import device
import simulator
from device.session import DeviceLaunch, check
from kernels import Kernel, TensorMap, library
from tests.simulator.memory import test_tensor_maps
from tests.simulator.races.in_flight import test_bulk

Launcher = Callable[..., Any]
MACHINES = [
    pytest.param(simulator.launch, id="simulator"),
    pytest.param(device.launch, id="device", marks=pytest.mark.gpu),
]
on_each_machine = pytest.mark.parametrize("launch", MACHINES)


@on_each_machine
def test_a_struct_by_value(launch: Launcher) -> None:
    kernel = Kernel.from_cuda(
        """\
struct Line { double slope; int n; float from; };
__global__ void draw(float* y, Line line) {
    int i = threadIdx.x;
    if (i < line.n) y[i] = line.from + (float)(line.slope * i);
}
""",
        "draw",
    )
    layout = np.dtype([("slope", "f8"), ("n", "i4"), ("from", "f4")], align=True)
    line = np.array((0.5, 7, 3.0), layout)[()]
    y = np.zeros(9, np.float32)
    launch(kernel, 1, 32, [y, line])
    assert y.tolist() == [3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 0.0, 0.0]


@on_each_machine
def test_dynamic_shared_memory_beyond_48_kib(launch: Launcher) -> None:
    kernel = Kernel.from_cuda(
        """\
__global__ void turn(int* x, int n) {
    extern __shared__ int held[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) held[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = held[n - 1 - i];
}
""",
        "turn",
    )
    n = 25_000
    x = np.arange(n, dtype=np.int32)
    launch(kernel, 1, 256, [x, n], shared_bytes=4 * n)
    assert np.array_equal(x, np.arange(n)[::-1])


@on_each_machine
def test_every_kind_of_scalar(launch: Launcher) -> None:
    kernel = Kernel.from_cuda(
        """\
__global__ void take(double* out, signed char a, unsigned short b, int c,
                    unsigned long long d, float e, double f, bool g) {
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g;
}
""",
        "take",
    )
    out = np.zeros(7)
    launch(kernel, 1, 1, [out, -3, np.uint16(65535), -(2**31), 2**53, 0.1, 0.1, True])
    assert out.tolist() == [-3, 65535, -(2**31), 2**53, float(np.float32(0.1)), 0.1, 1]


@on_each_machine
def test_arrays_as_numpy_has_them(launch: Launcher) -> None:
    """Strided, empty, read-only, given twice, and no array at all."""
    kernel = Kernel.from_cuda(
        """\
__global__ void add(const int* a, const int* b, int* out, int* none, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = a[i] + b[i] + (none != nullptr);
}
""",
        "add",
    )
    given = np.arange(20, dtype=np.int32)[::2]
    out = np.zeros((2, 10), np.int32)[:, ::2]
    given.flags.writeable = False
    launch(kernel, 1, 32, [given, given, out, None, 10])
    assert out.reshape(-1).tolist() == list(range(0, 40, 4))
    launch(kernel, 1, 32, [np.zeros(0, np.int32), np.zeros(0, np.int32), out, None, 0])
    assert given.tolist() == list(range(0, 20, 2))


@on_each_machine
def test_three_dimensions(launch: Launcher) -> None:
    kernel = Kernel.from_cuda(
        """\
__global__ void where(int* out) {
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int lane = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + lane] = block * 1000 + lane;
}
""",
        "where",
    )
    out = np.zeros(2 * 3 * 2 * 4 * 5 * 3, np.int32)
    launch(kernel, (2, 3, 2), (4, 5, 3), [out])
    blocks, lanes = np.divmod(np.arange(out.size), 60)
    assert np.array_equal(out, blocks * 1000 + lanes)


@on_each_machine
@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ([np.zeros(4, np.float32)], TypeError, "takes 6 arguments, not 1"),
        ([np.zeros(4, np.float32), 1.0, np.zeros(4, np.float32), 2, 2, 2], TypeError, "B is"),
        ([*(np.zeros(4, np.float32) for _ in range(3)), 2, 2, 2**33], ValueError, "K is"),
    ],
)
def test_wrong_arguments_are_named(
    launch: Launcher, args: list[Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        launch(library.get("matmul_naive").kernel(), 1, 1, args)


# -- what only a GPU can show -----------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("level", [0, 1, 2, 3, 4, None])
def test_every_jit_level_gives_the_same_bits(gpu: None, level: int | None) -> None:
    entry = library.get("matmul_register_tiled")
    launch = entry.launch((70, 50, 90))
    result = device.validate(
        entry.kernel(), launch.grid, launch.block, launch.args, jit_level=level
    )
    assert result.bit_for_bit


@pytest.mark.gpu
def test_what_a_launch_reports(gpu: None) -> None:
    entry = library.get("matmul_tiled")
    launch = entry.launch((64, 64, 64))
    kernel = entry.kernel()
    out = device.launch(kernel, launch.grid, launch.block, launch.args, repeat=3)
    assert out.sha256 == kernel.sha256
    assert len(out.times_ms) == 3
    assert min(out.times_ms) > 0
    assert out.shared_bytes == 2048
    assert out.registers == device.registers(kernel) > 0
    assert out.device == device.device_name()


@pytest.mark.gpu
def test_timing_restores_what_accumulates(gpu: None) -> None:
    for name, accumulates in (("histogram_global", True), ("matmul_tiled", False)):
        entry = library.get(name)
        launch = entry.launch()
        before = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in launch.args]
        timing = device.time_launches(
            entry.kernel(), launch.grid, launch.block, launch.args, launches=20
        )
        assert timing.restored == accumulates
        assert len(timing.times_ms) == 20
        low, high = timing.quartiles_ms
        assert 0 < low <= timing.median_ms <= high
        for one, other in zip(before, launch.args, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.gpu
def test_ptx_of_the_future_is_refused(gpu: None) -> None:
    text = library.get("matmul_naive").kernel().ptx.replace(".version 9.0", ".version 99.0")
    kernel = Kernel.from_ptx(text, "_Z5naivePKfS0_Pfiii")
    arrays = [np.zeros(4, np.float32) for _ in range(3)]
    with pytest.raises(device.DeviceError, match="cuModuleLoadDataEx") as caught:
        device.launch(kernel, 1, 1, [*arrays, 2, 2, 2])
    assert caught.value.code.startswith("CUDA_ERROR")


@pytest.mark.gpu
def test_more_memory_than_there_is(gpu: None) -> None:
    """It fails, says what was asked for, and the next launch in this process is well."""
    kernel = Kernel.from_cuda("__global__ void one(int* x) { *x = 1; }", "one")
    x = np.zeros(1, np.int32)
    with ExitStack() as stack:
        prepared = DeviceLaunch(stack, check(kernel, 1, 1, [x], 0), None)
        with pytest.raises(device.DeviceError, match="while allocating 1,125,899,906,842,624 by"):
            prepared.allocate(1 << 50, "everything")
    device.launch(kernel, 1, 1, [x])
    assert x[0] == 1


@pytest.mark.gpu
def test_no_gpu_of_that_number(gpu: None) -> None:
    kernel = Kernel.from_cuda("__global__ void one(int* x) { *x = 1; }", "one")
    there, why = device.available(99)
    assert not there
    assert "99" in why
    with pytest.raises(device.DeviceError, match="GPU number 99"):
        device.launch(kernel, 1, 1, [np.zeros(1, np.int32)], device=99)


SPOILT = """
import numpy as np, device
from kernels import Kernel
kernel = Kernel.from_cuda("__global__ void far(int* x) { x[1ll << 40] = 1; }", "far")
fine = Kernel.from_cuda("__global__ void one(int* x) { *x = 1; }", "one")
with device.context(0):
    for one in (kernel, fine):
        try:
            device.launch(one, 1, 1, [np.zeros(1, np.int32)])
        except device.DeviceError as error:
            print(error.code, "|", error)
"""


@pytest.mark.gpu
def test_an_illegal_address_spoils_its_process_alone(gpu: None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPOILT], capture_output=True, text=True, timeout=120, check=False
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert all(line.startswith("CUDA_ERROR_ILLEGAL_ADDRESS") for line in lines)
    assert "tilescope check" in lines[0]
    assert "a fresh one can" in lines[0]
    x = np.zeros(1, np.int32)
    kernel = Kernel.from_cuda("__global__ void one(int* x) { *x = 1; }", "one")
    device.launch(kernel, 1, 1, [x])
    assert x[0] == 1


@pytest.mark.gpu
def test_a_kernel_with_a_race_is_not_launched(gpu: None) -> None:
    entry = library.get("matmul_missing_first_barrier")
    launch = entry.launch((64, 64, 64))
    result = device.validate(entry.kernel(), launch.grid, launch.block, launch.args)
    assert not result.validated
    assert result.output is None
    assert "Missing barrier" in result.reason


@pytest.mark.gpu
@pytest.mark.parametrize("start", test_tensor_maps.STARTS)
@pytest.mark.parametrize(("shape", "dtype", "options"), test_tensor_maps.CASES)
def test_copies_of_tensors(
    shape: tuple[int, ...], dtype: type, options: dict[str, Any], start: tuple[int, int], gpu: None
) -> None:
    maps = [TensorMap(array, **options) for array in test_tensor_maps.arrays(shape, dtype)]
    out = np.zeros(test_tensor_maps.box_of(maps[0], [0] * len(maps[0].shape)).nbytes, np.uint8)
    kernel = test_tensor_maps.program(len(maps[0].shape))
    at = [units * 16 // maps[0].array.itemsize for units in start]
    result = device.validate(kernel, 1, 32, [out, *maps, *at, out.nbytes])
    assert result.validated, result.reason


@pytest.mark.gpu
@pytest.mark.parametrize(
    "copy",
    ["cp.async.bulk.global.shared::cta.bulk_group [%o+16], [%s+32], 64;"]
    + [
        f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%o], [%s], %n;"
        for operation in test_bulk.OPERATIONS
    ],
)
def test_copies_in_bulk(copy: str, gpu: None) -> None:
    kernel = Kernel.from_ptx(test_bulk.PTX.replace("COPY", copy), "k")
    out, data = np.random.default_rng(3).integers(0, 256, (2, 256), dtype=np.uint8)
    dtype = next((d for d in (np.float32, np.float64) if f".f{8 * d().nbytes} " in copy), np.uint8)
    if dtype is not np.uint8:  # of all magnitudes, and subnormal ones
        out, data = np.ldexp(np.random.default_rng(4).normal(size=(2, 256)), -130).astype(dtype)
        out, data = out[: 256 // out.itemsize].copy(), data[: 256 // data.itemsize].copy()
    result = device.validate(kernel, 1, 32, [out, data, 256])
    assert result.validated, result.reason
