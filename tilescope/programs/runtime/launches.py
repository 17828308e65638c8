"""Launches: ``<<<>>>``, ``cudaLaunchKernel`` and their relatives."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import math
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from kernels import Kernel
from kernels.arguments.convert import MAX_SHARED, MAX_STATIC_SHARED
from simulator.host_order import Stream

from ...host_calls.launches import checked_launch, refusal
from ...sessions.recording import placed_at
from .calls import stands_in_for
from .errors import (
    ASSERT,
    COOPERATIVE_TOO_LARGE,
    ILLEGAL_ADDRESS,
    INVALID_CONFIGURATION,
    INVALID_DEVICE_FUNCTION,
    INVALID_VALUE,
    LAUNCH_FAILURE,
    SUCCESS,
)
from .function_calls import SMS, resident_blocks
from .registration import kernel_of
from .state import LaunchConfiguration, Runtime
from .work import KERNEL, StreamWork

_STICKY = {"assert": ASSERT, "trap": LAUNCH_FAILURE}
"""By how a launch ends: what every later call returns (CUDA Runtime API, cudaError)."""
_CLUSTER, _COOPERATIVE = 4, 2
"""Of ``cudaLaunchAttributeID``."""
_STACK, _HEAP = 0, 2
"""Of ``cudaLimit``."""
_LEAST_STACK, _LARGEST_STACK = 1024, 1 << 16
"""Bytes of a thread's stack that are simulated, whatever the program asks for."""


def _dim3(first: int, second: int) -> tuple[int, int, int]:
    """Return a ``dim3`` as the ABI passes it: x and y in one register, z in the next."""
    return first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF


# The shim answers these two itself; an extension's bridge does not.
@stands_in_for("__cudaPushCallConfiguration")
def push_configuration(
    runtime: Runtime, g0: int, g1: int, b0: int, b1: int, shared_bytes: int, stream: int
) -> int:
    made = LaunchConfiguration(
        _dim3(g0, g1), _dim3(b0, b1), shared_bytes, stream, runtime.frame.caller
    )
    runtime.configurations.setdefault(runtime.frame.thread, []).append(made)
    return 0


@stands_in_for("__cudaPopCallConfiguration")
def pop_configuration(
    runtime: Runtime, grid: int, block: int, shared_bytes: int, stream: int, *_: int
) -> int:
    made = runtime.configurations[runtime.frame.thread].pop()
    runtime.launched_from[runtime.frame.thread] = made.caller
    process = runtime.process
    process.write(grid, struct.pack("<3I", *made.grid))
    process.write(block, struct.pack("<3I", *made.block))
    process.write(shared_bytes, struct.pack("<Q", made.shared_bytes))
    process.write(stream, struct.pack("<Q", made.stream))
    return 0


@stands_in_for("cudaLaunchKernel", "__cudaLaunchKernel")
def launch_kernel(
    runtime: Runtime, function: int, g0: int, g1: int, b0: int, b1: int, args: int
) -> int:
    shared_bytes, stream = runtime.stack_words(2)
    return _launch(runtime, function, _dim3(g0, g1), _dim3(b0, b1), args, shared_bytes, stream)


@stands_in_for("cudaLaunchCooperativeKernel")
def launch_cooperative(
    runtime: Runtime, function: int, g0: int, g1: int, b0: int, b1: int, args: int
) -> int:
    shared_bytes, stream = runtime.stack_words(2)
    return _launch(
        runtime, function, _dim3(g0, g1), _dim3(b0, b1), args, shared_bytes, stream,
        cooperative=True,
    )  # fmt: skip


@stands_in_for("cudaLaunchKernelExC")
def launch_with_attributes(runtime: Runtime, config: int, function: int, args: int, *_: int) -> int:
    raw = runtime.process.read(config, 56)
    grid, block = struct.unpack_from("<3I", raw), struct.unpack_from("<3I", raw, 12)
    shared_bytes, stream, attributes, count = struct.unpack_from("<QQQI", raw, 24)
    how: dict[str, Any] = {}
    for i in range(min(count, 64)):
        one = runtime.process.read(attributes + 72 * i, 72)
        (kind,) = struct.unpack_from("<I", one)
        if kind == _CLUSTER:
            how["cluster"] = struct.unpack_from("<3I", one, 8)
        elif kind == _COOPERATIVE:
            how["cooperative"] = bool(struct.unpack_from("<I", one, 8)[0])
    return _launch(runtime, function, grid, block, args, shared_bytes, stream, **how)


def _launch(
    runtime: Runtime, function: int, grid: tuple[int, ...], block: tuple[int, ...], args: int,
    shared_bytes: int, stream: int, **how: Any,
) -> int:  # fmt: skip
    made = kernel_launch(runtime, function, grid, block, args, shared_bytes, how)
    return made if isinstance(made, int) else runtime.enqueue(stream, made)


def kernel_launch(
    runtime: Runtime, function: int, grid: tuple[int, ...], block: tuple[int, ...], args: int,
    shared_bytes: int, how: dict[str, Any],
) -> "KernelLaunch | int":  # fmt: skip
    """Read a launch's arguments from a table of their addresses.

    Returns:
        The launch, or the error code of one that a GPU refuses.
    """
    kernel = kernel_of(runtime, function)
    if kernel is None:
        return INVALID_DEVICE_FUNCTION
    allowed = runtime.dynamic_limits.get(function, MAX_STATIC_SHARED)
    _, reason = refusal(grid, block, shared_bytes, allowed)
    if reason:
        runtime.checks.launch_error(runtime.source, f"the launch of {kernel.name}", reason)
        return INVALID_VALUE  # of CUDA 13.0 on an H200, for each of these
    params = kernel.params
    table = runtime.process.read(args, 8 * len(params)) if params else b""
    parts = [
        (int.from_bytes(table[8 * i : 8 * i + 8], "little"), param.nbytes)
        for i, param in enumerate(params)
    ]
    raws = runtime.process.read_parts(parts) if parts else []
    for i, raw in enumerate(raws if runtime.registered else ()):
        if len(raw) == 8:  # an H200 takes the host's own address of registered memory
            word = runtime.device_address(int.from_bytes(raw, "little"))
            raws[i] = word.to_bytes(8, "little")
    return KernelLaunch(runtime.source, function, kernel, grid, block, raws, shared_bytes, how)


@dataclass
class KernelLaunch(StreamWork):
    """A launch of a kernel.

    Attributes:
        function: Address of the host's stand-in of ``kernel``.
        grid, block: Shapes, x first.
        raws: Bytes of each parameter.
        shared_bytes: Dynamic shared memory.
        how: Further keywords of ``simulator.launch``.
    """

    function: int
    kernel: Kernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    raws: list[bytes]
    shared_bytes: int
    how: dict[str, Any]
    node_type: ClassVar[int] = KERNEL

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        if runtime.sticky:
            return int(runtime.sticky)
        kernel, name = self.kernel, f"the launch of {self.kernel.name}"
        if self.how.get("cooperative") and (problem := _too_large(runtime, self)):
            runtime.checks.launch_error(self.source, name, problem)
            return COOPERATIVE_TOO_LARGE
        with placed_at(lambda: self.source):
            done = checked_launch(
                runtime.machine, kernel, self.grid, self.block, self.raws, self.shared_bytes,
                queue, MAX_SHARED, **_limits(runtime), **self.how,
            )  # fmt: skip
        if done.run is None:
            return INVALID_CONFIGURATION
        hazards, host = done.run.hazards, done.used_host_pointer
        codes = [_STICKY[h.kind] for h in hazards if h.severity == "error" and h.kind in _STICKY]
        runtime.sticky = runtime.sticky or (ILLEGAL_ADDRESS if host else 0) or next(iter(codes), 0)
        return SUCCESS


def _too_large(runtime: Runtime, launch: KernelLaunch) -> str:
    """Return why the blocks of a cooperative launch do not fit on an H200 at a time."""
    blocks, threads = math.prod(launch.grid), math.prod(launch.block)
    each = resident_blocks(runtime, launch.function, threads, launch.shared_bytes)
    if blocks <= SMS * each:
        return ""
    return f"{blocks:,} blocks that wait for each other, an H200 holds {SMS * each:,} at a time"


def _limits(runtime: Runtime) -> dict[str, int]:
    """Return the keywords of ``simulator.launch`` for what ``cudaDeviceSetLimit`` has set."""
    found = {}
    if _STACK in runtime.limits:
        found["stack_bytes"] = min(max(runtime.limits[_STACK], _LEAST_STACK), _LARGEST_STACK)
    if _HEAP in runtime.limits:
        found["heap_bytes"] = runtime.limits[_HEAP]
    return found
