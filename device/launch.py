"""Launch a kernel's PTX on a GPU, with the same bytes and arguments as in the simulator."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel

from .driver import DeviceError, bindings, call, cuda_version
from .session import DeviceLaunch, Limits, attribute, check, context, load


@dataclass(frozen=True)
class Output:
    """Result of a launch on the device, besides the arrays.

    Attributes:
        elapsed_ms: Median of ``times_ms``, milliseconds.
        times_ms: Time of each timed launch between two events, milliseconds.
        sha256: SHA-256 of the PTX text, in hex.
        device: The GPU's name.
        driver: The driver's CUDA version.
        registers: Registers of a thread, after the driver's compilation.
        shared_bytes: Static shared memory of a block, in bytes.
        local_bytes: Local memory of a thread, in bytes.
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
    """Whether there is a GPU; with its name, or the reason why there is none."""
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
    """Return the GPU's name, such as ``NVIDIA H200``."""
    raw: bytes = call("cuDeviceGetName", 128, call("cuDeviceGet", index))
    return raw.split(b"\0")[0].decode()


def driver_version() -> str:
    """Return the newest CUDA release that the driver supports, such as ``13.0``."""
    return cuda_version()


def capability(index: int = 0) -> str:
    """Return the GPU's compute capability, such as ``9.0``.

    Raises:
        DeviceError: There is no such GPU.
    """
    handle = call("cuDeviceGet", index, doing=f"looking for GPU number {index}")
    kinds = bindings().CUdevice_attribute
    return ".".join(
        str(call("cuDeviceGetAttribute", kind, handle))
        for kind in (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )


def registers(kernel: Kernel, device: int = 0, jit_level: int | None = None) -> int:
    """Return the registers of a thread that the driver's compiler assigns on that GPU.

    Raises:
        DeviceError: There is no GPU, or it refuses the PTX.
    """
    with context(device), contextlib.ExitStack() as stack:
        return attribute(load(stack, kernel, jit_level), "NUM_REGS")


def launch(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    device: int = 0,
    jit_level: int | None = None,
    repeat: int = 1,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    cluster: int | Sequence[int] | None = None,
    stack_bytes: int | None = None,
    heap_bytes: int | None = None,
) -> Output:
    """Run a kernel on the GPU; arguments are those of ``simulator.launch``.

    Memory, module, stream and events are released on every path. After an error of the kernel
    itself, such as an illegal address, the driver refuses all further calls of this process; a new
    process is not affected.

    Args:
        kernel: The kernel; its PTX text is passed to the driver unchanged.
        grid: Grid extents in blocks, one to three numbers, x first.
        block: Block extents in threads, one to three numbers, x first.
        args: NumPy arrays (copied in, written back), numbers, structured scalars.
        shared_bytes: Dynamic shared memory of a block in bytes; above 48 KiB the function's
            attribute is set.
        device: Index of the GPU.
        jit_level: Optimisation level of the driver's compiler, 0 to 4; ``None``: its default.
        repeat: Number of timed launches; the arrays are restored before each but the first.
        symbols: As for ``simulator.launch``.
        cooperative: As for ``simulator.launch``.
        cluster: As for ``simulator.launch``.
        stack_bytes: As for ``simulator.launch``; ``None``: the context's setting.
        heap_bytes: As for ``simulator.launch``; it can be changed only before a kernel of this
            process has used the heap.

    Raises:
        DeviceError: There is no GPU, or a driver call failed.
        LaunchError, TypeError, ValueError: As ``simulator.launch``.
    """
    if repeat < 1:
        raise ValueError(f"repeat must be 1 or more, not {repeat}")
    limits = Limits(stack_bytes, heap_bytes)
    request = check(kernel, grid, block, args, shared_bytes, symbols, cooperative, cluster, limits)
    request.arguments.warn()
    with context(device), contextlib.ExitStack() as stack:
        prepared = DeviceLaunch(stack, request, jit_level)
        first, last = prepared.event(), prepared.event()
        times = []
        for _ in range(repeat):
            prepared.upload()
            prepared.start(first, last)
            prepared.wait()
            times.append(float(call("cuEventElapsedTime", first, last)))
        prepared.write_back()
        return output(prepared, times, device)


def output(prepared: DeviceLaunch, times: Sequence[float], device: int) -> Output:
    """Build the ``Output`` of some launches from their times in milliseconds."""
    function = prepared.function
    return Output(
        float(np.median(times)), tuple(times), prepared.request.kernel.sha256, device_name(device),
        cuda_version(), attribute(function, "NUM_REGS"), attribute(function, "SHARED_SIZE_BYTES"),
        attribute(function, "LOCAL_SIZE_BYTES"),
    )  # fmt: skip
