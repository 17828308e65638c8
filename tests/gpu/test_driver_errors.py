"""What the driver may answer, and what comes of it: words, and everything released."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import device
from device.driver import STICKY
from kernels import Kernel, Surface, Texture
from tests.support.fake_driver import FakeDriver, installed

SCALE = """
__global__ void scale(float* x, float a, int n) {
    extern __shared__ float unused[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    with installed(monkeypatch) as made:
        yield made


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel.from_cuda(SCALE, "scale")


def go(kernel: Kernel, **options: Any) -> device.Output:
    return device.launch(kernel, 2, 32, [np.ones(64, np.float32), 2.0, 64], **options)


def test_module_variables_go_to_the_gpu_and_come_back(fake: FakeDriver) -> None:
    kernel = Kernel.from_cuda(
        "namespace n { __device__ int seen[4]; } __global__ void k() { n::seen[1] = 2; }", "k"
    )
    seen = np.arange(4, dtype=np.int32)
    device.launch(kernel, 1, 1, [], symbols={"seen": seen}, cooperative=True)
    assert ("cuModuleGetGlobal", ("module", b"_ZN1n4seenE")) in fake.asked
    [attribute] = dict(fake.asked)["cuLaunchKernelEx"][0].attrs
    assert attribute.value.cooperative == 1
    assert fake.calls["cuMemcpyHtoD"] == fake.calls["cuMemcpyDtoH"] == 1
    assert seen.tolist() == [0, 1, 2, 3]
    assert fake.leaks() == {}


def test_textures_and_surfaces_are_the_drivers(fake: FakeDriver) -> None:
    kernel = Kernel.from_cuda(
        "__global__ void k(cudaTextureObject_t t, cudaSurfaceObject_t s, cudaTextureObject_t f) {}",
        "k",
    )
    image, line = np.zeros((3, 4, 2), np.float16), np.zeros(8, np.int16)
    made = [Texture(image, "linear", "wrap", True, channels=2), Surface(image, channels=2),
            Texture(line, linear=True)]  # fmt: skip
    device.launch(kernel, 1, 1, made)
    assert fake.leaks() == {}
    asked = dict(fake.asked)
    [array] = asked["cuArray3DCreate"]
    assert (array.Width, array.Height, array.Depth, array.NumChannels) == (4, 3, 0, 2)
    first = next(args for name, args in fake.asked if name == "cuTexObjectCreate")
    assert [mode.name for mode in first[1].addressMode[1:]] == [
        "CU_TR_ADDRESS_MODE_WRAP", "CU_TR_ADDRESS_MODE_CLAMP",
    ]  # fmt: skip
    assert asked["cuTexObjectCreate"][0].res.linear.sizeInBytes == 16
    assert fake.calls["cuMemcpy3D"] == 2  # into the array, and back


def test_a_launch_calls_in_order_and_releases_all(fake: FakeDriver, kernel: Kernel) -> None:
    out = go(kernel, repeat=3)
    assert fake.leaks() == {}
    assert fake.calls["cuLaunchKernelEx"] == 3
    assert len(out.times_ms) == 3
    assert out.device == "NVIDIA Pretend"
    first = [fake.log.index(name) for name in (
        "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuModuleLoadDataEx", "cuMemAlloc",
        "cuMemcpyHtoD", "cuLaunchKernelEx", "cuStreamSynchronize", "cuMemcpyDtoH", "cuMemFree",
        "cuModuleUnload", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease",
    )]  # fmt: skip
    assert first == sorted(first)


CALLS = (
    "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuModuleLoadDataEx",
    "cuModuleGetFunction", "cuFuncSetAttribute", "cuStreamCreate", "cuMemAlloc", "cuEventCreate",
    "cuMemcpyHtoD", "cuEventRecord", "cuLaunchKernelEx", "cuStreamSynchronize",
    "cuEventElapsedTime", "cuMemcpyDtoH", "cuFuncGetAttribute",
)  # fmt: skip


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_any_call_may_fail_and_all_is_released(
    fake: FakeDriver, kernel: Kernel, name: str, sticky: bool
) -> None:
    fake.fail(name, "CUDA_ERROR_ILLEGAL_ADDRESS", sticky=sticky)
    with pytest.raises(device.DeviceError) as caught:
        go(kernel, shared_bytes=1024)
    assert (caught.value.call, caught.value.code) == (name, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert str(caught.value).startswith(
        f"{name} failed: CUDA_ERROR_ILLEGAL_ADDRESS (words for CUDA_ERROR_ILLEGAL_ADDRESS)"
    )
    assert fake.leaks() == {}


@pytest.mark.parametrize("name", ["cuEventCreate", "cuMemAlloc", "cuMemcpyDtoDAsync"])
def test_a_timing_that_fails_halfway_releases_all(
    fake: FakeDriver, kernel: Kernel, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accumulate(fake, monkeypatch)
    fake.fail(name, "CUDA_ERROR_OUT_OF_MEMORY", call=2)
    with pytest.raises(device.DeviceError, match=name):
        device.time_launches(kernel, 2, 32, [np.ones(64, np.float32), 2.0, 64], launches=4)
    assert fake.leaks() == {}


def accumulate(fake: FakeDriver, patch: pytest.MonkeyPatch) -> None:
    """Let every launch change the first array, as a kernel does that adds to it."""
    import ctypes

    def launched(*args: Any) -> tuple[Any, ...]:
        byte = ctypes.c_ubyte.from_address(next(iter(fake._memory)))
        byte.value = (byte.value + 1) % 256
        return ()

    patch.setattr(fake, "_cuLaunchKernelEx", launched, raising=False)


def test_timing_restores_only_what_accumulates(
    fake: FakeDriver, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = np.ones(64, np.float32)
    timing = device.time_launches(kernel, 2, 32, [given, 2.0, 64], launches=4, warmup=1)
    assert not timing.restored
    assert fake.calls["cuMemcpyDtoDAsync"] == 0
    assert fake.calls["cuLaunchKernelEx"] == 2 + 1 + 4
    assert timing.times_ms == (0.5,) * 4
    accumulate(fake, monkeypatch)
    timing = device.time_launches(kernel, 2, 32, [given, 2.0, 64], launches=4, warmup=1)
    assert timing.restored
    assert fake.calls["cuMemcpyDtoDAsync"] == 1 + 4
    assert (given == 1).all()
    assert fake.leaks() == {}


# -- words ------------------------------------------------------------------------------


def message(fake: FakeDriver, kernel: Kernel, name: str, code: str, **options: Any) -> str:
    fake.fail(name, code)
    with pytest.raises(device.DeviceError) as caught:
        go(kernel, **options)
    return str(caught.value)


def test_out_of_memory_says_what_was_asked_and_what_there_is(
    fake: FakeDriver, kernel: Kernel
) -> None:
    text = message(fake, kernel, "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY")
    assert "while allocating 256 bytes for x" in text
    assert "of the GPU's 2,000 bytes 1,000 are free" in text


def test_ptx_of_a_newer_nvrtc_says_which_to_install(fake: FakeDriver, kernel: Kernel) -> None:
    fake.version = 12080
    text = message(fake, kernel, "cuModuleLoadDataEx", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
    assert "while compiling scale" in text
    assert "knows CUDA 12.8: install nvidia-cuda-nvrtc==12.8.*" in text


def test_refused_ptx_shows_the_compilers_log(fake: FakeDriver, kernel: Kernel) -> None:
    fake.jit_log = b"ptxas fatal   : Unresolved extern function 'elsewhere'"
    text = message(fake, kernel, "cuModuleLoadDataEx", "CUDA_ERROR_INVALID_PTX")
    assert text.splitlines()[1] == "ptxas fatal   : Unresolved extern function 'elsewhere'"


def test_too_much_shared_memory_says_how_much(fake: FakeDriver, kernel: Kernel) -> None:
    code = "CUDA_ERROR_INVALID_VALUE"
    text = message(fake, kernel, "cuFuncSetAttribute", code, shared_bytes=300_000)
    assert "while asking for 300,000 bytes of dynamic shared memory" in text


@pytest.mark.parametrize("code", STICKY)
def test_a_spoilt_process_is_told_to_start_afresh(
    fake: FakeDriver, kernel: Kernel, code: str
) -> None:
    text = message(fake, kernel, "cuStreamSynchronize", code)
    assert "while running scale" in text
    assert "tilescope check" in text
    assert text.endswith("a fresh one can")


def test_a_code_without_advice_stands_by_itself(fake: FakeDriver, kernel: Kernel) -> None:
    text = message(fake, kernel, "cuLaunchKernelEx", "CUDA_ERROR_NOT_SUPPORTED")
    assert text == (
        "cuLaunchKernelEx failed: CUDA_ERROR_NOT_SUPPORTED "
        "(words for CUDA_ERROR_NOT_SUPPORTED) while launching scale"
    )


def test_no_gpu_of_that_number(fake: FakeDriver, kernel: Kernel) -> None:
    assert device.available(3) == (False, "no GPU number 3: 1 found")
    assert device.available(0) == (True, "NVIDIA Pretend")
    fake.fail("cuDeviceGet", "CUDA_ERROR_INVALID_DEVICE")
    with pytest.raises(device.DeviceError, match="looking for GPU number 3; there is no GPU of"):
        go(kernel, device=3)


def test_a_driver_that_finds_no_gpu(fake: FakeDriver) -> None:
    fake.fail("cuInit", "CUDA_ERROR_NO_DEVICE")
    there, why = device.available()
    assert not there
    assert why.startswith("cuInit failed: CUDA_ERROR_NO_DEVICE")
    assert "\n" not in why


# -- before anything runs ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "options", "error", "words"),
    [
        ([1.0, 2.0, 64], {}, TypeError, "x"),
        ([np.ones(64, np.float32), 2.0], {}, TypeError, "takes 3 arguments, not 2"),
        ([np.ones(64, np.float32), 2.0, 2**40], {}, ValueError, "n is"),
        ([np.ones(64, np.float32), 2.0, 64], {"jit_level": 5}, ValueError, "levels 0 to 4, not 5"),
        ([np.ones(64, np.float32), 2.0, 64], {"repeat": 0}, ValueError, "repeat"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_runs(
    fake: FakeDriver, kernel: Kernel, args: list[Any], options: dict[str, Any],
    error: type[Exception], words: str,
) -> None:  # fmt: skip
    with pytest.raises(error, match=words):
        device.launch(kernel, 2, 32, args, **options)
    assert fake.calls["cuLaunchKernelEx"] == 0
    assert fake.leaks() == {}


def test_levels_and_shared_memory_reach_the_driver(fake: FakeDriver, kernel: Kernel) -> None:
    go(kernel, jit_level=0, shared_bytes=100_000)
    asked = dict(fake.asked)
    image, count, options, values = asked["cuModuleLoadDataEx"]
    assert image == kernel.ptx.encode() + b"\0"
    assert count == len(options) == len(values) == 3
    assert options[2].name == "CU_JIT_OPTIMIZATION_LEVEL"
    assert values[2] == 0
    assert asked["cuFuncSetAttribute"][1].name.endswith("MAX_DYNAMIC_SHARED_SIZE_BYTES")
    assert asked["cuFuncSetAttribute"][2] == 100_000
    how = asked["cuLaunchKernelEx"][0]
    assert (how.gridDimX, how.gridDimY, how.blockDimX, how.blockDimZ) == (2, 1, 32, 1)
    assert (how.sharedMemBytes, how.numAttrs) == (100_000, 0)


def test_limits_are_the_launch_s_and_then_the_context_s_again(
    fake: FakeDriver, kernel: Kernel
) -> None:
    go(kernel, stack_bytes=1024, heap_bytes=1 << 20)
    asked = [args for name, args in fake.asked if name == "cuCtxSetLimit"]
    assert [(kind.name[9:], size) for kind, size in asked] == [
        ("MALLOC_HEAP_SIZE", 1 << 20), ("MALLOC_HEAP_SIZE", 1024),
    ]  # fmt: skip
