"""Launch a kernel's PTX on a GPU: the same bytes and arguments as the simulator's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.nvrtc import parameter_names
from simulator.arguments import check_shape, content, convert, dim3, write_back

from .driver import bindings, call
from .errors import DeviceError


@dataclass(frozen=True)
class Output:
    """What a launch on the device gave besides the arrays.

    Attributes:
        elapsed_ms: Time of each timed launch between two events, milliseconds.
        sha256: Of the PTX text that ran.
        device: The GPU's name; ``driver``: its driver's CUDA version.
        registers: Registers a thread, after the driver's compilation.
        shared_bytes: Static shared memory of a block.
        local_bytes: Local memory of a thread.
    """

    elapsed_ms: float
    times_ms: tuple[float, ...]
    sha256: str
    device: str
    driver: str
    registers: int
    shared_bytes: int
    local_bytes: int


def available(index: int = 0) -> tuple[bool, str]:
    """Whether there is a GPU, and its name or the reason why not."""
    try:
        count = call("cuDeviceGetCount")
        if index >= count:
            return (
                False,
                f"no GPU number {index}: {count} found" if count else "no NVIDIA GPU found",
            )
        return True, device_name(index)
    except DeviceError as error:
        return False, str(error)


def device_name(index: int = 0) -> str:
    """The GPU's name, such as ``NVIDIA H200``."""
    raw: bytes = call("cuDeviceGetName", 128, call("cuDeviceGet", index))
    return raw.split(b"\0")[0].decode()


def driver_version() -> str:
    """The newest CUDA release the driver knows, such as ``13.0``."""
    number = call("cuDriverGetVersion")
    return f"{number // 1000}.{number % 1000 // 10}"


def launch(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    device: int = 0,
    jit_level: int | None = None,
    repeat: int = 1,
) -> Output:
    """Run a kernel on the GPU; arguments are as for ``simulator.launch``.

    Args:
        kernel: Its PTX text goes to the driver as it stands.
        grid: Blocks, one to three numbers, x first.
        block: Threads of a block, likewise.
        args: NumPy arrays (copied in, written back), numbers, structured scalars.
        shared_bytes: Dynamic shared memory of a block.
        device: Which GPU.
        jit_level: The driver compiler's optimisation level, 0 to 4; its own default if ``None``.
        repeat: Launches to time; the arrays are restored before each but the first.

    Raises:
        DeviceError: There is no GPU, or a driver call failed.
        LaunchError, TypeError, ValueError: As ``simulator.launch``.
    """
    grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
    check_shape(grid3, block3)
    arguments = convert(kernel, args, parameter_names(kernel.sources, kernel.name))
    with _context(device), contextlib.ExitStack() as stack:
        function = _load(stack, kernel, jit_level)
        driver = bindings()
        attributes = driver.CUfunction_attribute

        def attribute(name: str) -> int:
            return int(
                call(
                    "cuFuncGetAttribute", getattr(attributes, f"CU_FUNC_ATTRIBUTE_{name}"), function
                )
            )

        if shared_bytes:
            call(
                "cuFuncSetAttribute", function,
                attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes,
                doing=f"asking for {shared_bytes:,} bytes of dynamic shared memory",
            )  # fmt: skip
        pointers, inputs = [], []
        for array, label in zip(arguments.arrays, arguments.labels, strict=True):
            raw = content(array)
            pointers.append(_allocate(stack, raw.nbytes, label))
            inputs.append(raw)
        buffer = arguments.parameter_buffer(lambda number: int(pointers[number]))
        values = [np.frombuffer(buffer, np.uint8, p.nbytes, p.offset).copy() for p in kernel.params]
        table = np.array([v.ctypes.data for v in values], np.uint64)
        stream = call("cuStreamCreate", 0)
        stack.callback(_quietly, "cuStreamDestroy", stream)
        first, last = (_event(stack) for _ in range(2))
        times = []
        for _ in range(repeat):
            for pointer, raw in zip(pointers, inputs, strict=True):
                if raw.nbytes:
                    call("cuMemcpyHtoD", pointer, raw.ctypes.data, raw.nbytes)
            call("cuEventRecord", first, stream)
            call(
                "cuLaunchKernel",
                function,
                *grid3,
                *block3,
                shared_bytes,
                stream,
                table.ctypes.data,
                0,
            )
            call("cuEventRecord", last, stream)
            call("cuStreamSynchronize", stream, doing=f"running {kernel.name}")
            times.append(float(call("cuEventElapsedTime", first, last)))
        for array, pointer in zip(arguments.arrays, pointers, strict=True):
            raw = np.empty(array.nbytes, np.uint8)
            if raw.nbytes:
                call("cuMemcpyDtoH", raw.ctypes.data, pointer, raw.nbytes)
            write_back(array, raw)
        return Output(
            float(np.median(times)), tuple(times), kernel.sha256, device_name(device),
            driver_version(), attribute("NUM_REGS"), attribute("SHARED_SIZE_BYTES"),
            attribute("LOCAL_SIZE_BYTES"),
        )  # fmt: skip


@contextlib.contextmanager
def _context(index: int) -> Iterator[None]:
    """The GPU's primary context, current within."""
    handle = call("cuDeviceGet", index, doing=f"looking for GPU number {index}")
    context = call("cuDevicePrimaryCtxRetain", handle)
    try:
        call("cuCtxPushCurrent", context)
        try:
            yield
        finally:
            _quietly("cuCtxPopCurrent")
    finally:
        _quietly("cuDevicePrimaryCtxRelease", handle)


def _quietly(name: str, *args: Any) -> None:
    """Clean up; after a sticky error every call fails, and the first error is the one to see."""
    with contextlib.suppress(DeviceError):
        call(name, *args)


def _load(stack: contextlib.ExitStack, kernel: Kernel, level: int | None) -> Any:
    driver = bindings()
    options, values = [], []
    log = bytearray(8192)
    options += [
        driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    values += [log, len(log)]
    if level is not None:
        options.append(driver.CUjit_option.CU_JIT_OPTIMIZATION_LEVEL)
        values.append(level)
    try:
        module = call(
            "cuModuleLoadDataEx", kernel.ptx.encode() + b"\0", len(options), options, values,
            doing=f"compiling {kernel.name}",
        )  # fmt: skip
    except DeviceError as error:
        detail = log.split(b"\0")[0].decode(errors="replace").strip()
        raise DeviceError(
            f"{error}\n{detail}" if detail else str(error), error.call, error.code
        ) from None
    stack.callback(_quietly, "cuModuleUnload", module)
    return call("cuModuleGetFunction", module, kernel.entry.encode())


def _allocate(stack: contextlib.ExitStack, nbytes: int, label: str) -> Any:
    pointer = call("cuMemAlloc", max(nbytes, 1), doing=f"allocating {nbytes:,} bytes for {label}")
    stack.callback(_quietly, "cuMemFree", pointer)
    return pointer


def _event(stack: contextlib.ExitStack) -> Any:
    event = call("cuEventCreate", 0)
    stack.callback(_quietly, "cuEventDestroy", event)
    return event
