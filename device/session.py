"""GPU resources of a launch: context, stream, modules, arrays and events, always released."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels import Kernel
from kernels.arguments.cluster_shape import check_cluster
from kernels.arguments.convert import (
    Arguments,
    Dim3,
    Object,
    check_shape,
    content,
    convert,
    dim3,
    write_back,
)
from kernels.arguments.symbols import convert_all
from kernels.arguments.tensor_map import TensorMap
from kernels.ptx.parser import parse

from . import tensor_maps
from .driver import DeviceError, bindings, call
from .textures import DeviceImages


@contextlib.contextmanager
def context(index: int) -> Iterator[None]:
    """Make a GPU's primary context current inside a ``with``.

    Raises:
        DeviceError: There is no such GPU, or its context cannot be created.
    """
    handle = call("cuDeviceGet", index, doing=f"looking for GPU number {index}")
    primary = call("cuDevicePrimaryCtxRetain", handle)
    try:
        call("cuCtxPushCurrent", primary)
        try:
            yield
        finally:
            quietly("cuCtxPopCurrent")
    finally:
        quietly("cuDevicePrimaryCtxRelease", handle)


def quietly(name: str, *args: Any) -> None:
    """Release a resource and ignore errors, so that the first error is the one reported."""
    with contextlib.suppress(DeviceError):
        call(name, *args)


def load(stack: contextlib.ExitStack, kernel: Kernel, level: int | None) -> Any:
    """Load a kernel's function, compiled by the driver; the stack unloads the module.

    ``level``: optimisation level, 0 to 4; ``None``: the compiler's default.

    Raises:
        ValueError: Unknown level.
        DeviceError: The driver refuses the PTX; the message contains the compiler's log.
    """
    if level is not None and level not in range(5):
        raise ValueError(f"the driver's compiler has levels 0 to 4, not {level}")
    driver = bindings()
    log = bytearray(8192)
    options = [
        driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    values: list[Any] = [log, len(log)]
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
    stack.callback(quietly, "cuModuleUnload", module)
    return call("cuModuleGetFunction", module, kernel.entry.encode())


def attribute(function: Any, name: str) -> int:
    """Return a function's attribute, such as ``NUM_REGS``."""
    kind = getattr(bindings().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    return int(call("cuFuncGetAttribute", kind, function))


class Limits(NamedTuple):
    """Limits of a context, by the driver's names, in bytes; ``None``: the context's own.

    Attributes:
        STACK_SIZE: Stack of a thread.
        MALLOC_HEAP_SIZE: The device heap.
    """

    STACK_SIZE: int | None = None
    MALLOC_HEAP_SIZE: int | None = None


_ITS_OWN = Limits()


@dataclass(frozen=True)
class CheckedLaunch:
    """A launch with validated shape and arguments."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    arguments: Arguments
    shared_bytes: int
    cooperative: bool = False
    cluster: Dim3 | None = None
    limits: Limits = _ITS_OWN


def check(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    cluster: int | Sequence[int] | None = None,
    limits: Limits = _ITS_OWN,
) -> CheckedLaunch:
    """Validate a launch as ``simulator.launch`` does, with the same messages.

    Raises:
        LaunchError, TypeError, ValueError: As ``simulator.launch``.
    """
    shapes = dim3(grid, "grid"), dim3(block, "block")
    check_shape(*shapes)
    if symbols:
        arguments = convert_all(kernel, parse(kernel.ptx), args, symbols)
    else:
        arguments = convert(kernel, args, kernel.labels())
    blocks = None if cluster is None else dim3(cluster, "cluster")
    if blocks:
        check_cluster(blocks, shapes[0])
    dynamic = max(shared_bytes, kernel.dynamic_bytes)
    return CheckedLaunch(kernel, *shapes, arguments, dynamic, cooperative, blocks, limits)


class DeviceLaunch:
    """A prepared launch on the GPU, which can be repeated.

    The given stack releases everything that it allocates.

    Raises:
        DeviceError: A driver call failed.
    """

    def __init__(
        self, stack: contextlib.ExitStack, request: CheckedLaunch, jit_level: int | None
    ) -> None:
        self.request, self._stack = request, stack
        self._arguments, self._shared = request.arguments, request.shared_bytes
        self._set_limits()
        self.function = load(stack, request.kernel, jit_level)
        self._allow_shared()
        self.stream = call("cuStreamCreate", 0)
        stack.callback(quietly, "cuStreamDestroy", self.stream)
        arguments = self._arguments
        self._arrays = [*arguments.arrays, *arguments.symbols.values()]
        self._inputs = [content(array) for array in self._arrays]
        self.pointers = [
            self.allocate(raw.nbytes, label)
            for raw, label in zip(self._inputs, arguments.labels, strict=False)
        ]
        for name in arguments.symbols:
            module = call("cuFuncGetModule", self.function)
            place, _ = call("cuModuleGetGlobal", module, name.encode(), doing=f"finding {name}")
            self.pointers.append(place)
        place_of = lambda number: int(self.pointers[number])  # noqa: E731
        self.pictures = DeviceImages(lambda name, made: stack.callback(quietly, name, made))
        for number in arguments.tables:
            self._inputs[number] = arguments.table(number, place_of, self._encode)
        for at, name in enumerate(arguments.symbols, len(arguments.arrays)):
            if name in arguments.filled:
                raw = arguments.filled[name].filled(place_of, self._encode)
                self._inputs[at] = np.frombuffer(raw, np.uint8)
        pack = arguments.parameter_buffer(place_of, self._encode)
        self._values = [
            np.frombuffer(pack, np.uint8, p.nbytes, p.offset).copy() for p in request.kernel.params
        ]
        self._table = np.array([value.ctypes.data for value in self._values], np.uint64)

    def _set_limits(self) -> None:
        """Set the context's limits until the stack unwinds.

        The heap's only before its first use.
        """
        for name, wanted in self.request.limits._asdict().items():
            kind = getattr(bindings().CUlimit, f"CU_LIMIT_{name}")
            if wanted is None or (before := int(call("cuCtxGetLimit", kind))) == wanted:
                continue
            what = name.lower().replace("_", " ")
            call("cuCtxSetLimit", kind, wanted, doing=f"asking for a {what} of {wanted:,} bytes")
            self._stack.callback(quietly, "cuCtxSetLimit", kind, before)

    def _encode(self, of: Object, address: int) -> bytes:
        if isinstance(of, TensorMap):
            return tensor_maps.encode(of, address)
        return self.pictures.encode(of, address)

    def _allow_shared(self) -> None:
        if self._shared:
            name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
            call(
                "cuFuncSetAttribute", self.function,
                getattr(bindings().CUfunction_attribute, name), self._shared,
                doing=f"asking for {self._shared:,} bytes of dynamic shared memory",
            )  # fmt: skip

    def allocate(self, nbytes: int, label: str) -> Any:
        """Allocate memory on the GPU, freed with the stack."""
        doing = f"allocating {nbytes:,} bytes for {label}"
        pointer = call("cuMemAlloc", max(nbytes, 1), doing=doing)
        self._stack.callback(quietly, "cuMemFree", pointer)
        return pointer

    def event(self) -> Any:
        """Create an event, destroyed with the stack."""
        made = call("cuEventCreate", 0)
        self._stack.callback(quietly, "cuEventDestroy", made)
        return made

    def upload(self) -> None:
        """Copy the arrays, with their original contents, to the GPU."""
        for pointer, raw in zip(self.pointers, self._inputs, strict=True):
            if raw.nbytes:
                call("cuMemcpyHtoD", pointer, raw.ctypes.data, raw.nbytes)
        self.pictures.fill()

    def start(self, first: Any, last: Any) -> None:
        """Launch asynchronously between two events."""
        call("cuEventRecord", first, self.stream)
        doing = f"launching {self.request.kernel.name}"
        how = self._how()
        call("cuLaunchKernelEx", how, self.function, self._table.ctypes.data, 0, doing=doing)
        call("cuEventRecord", last, self.stream)

    def _how(self) -> Any:
        """Return the launch configuration for the driver."""
        driver, request = bindings(), self.request
        made = driver.CUlaunchConfig()
        made.gridDimX, made.gridDimY, made.gridDimZ = request.grid
        made.blockDimX, made.blockDimY, made.blockDimZ = request.block
        made.sharedMemBytes, made.hStream = self._shared, self.stream
        kinds, attributes = driver.CUlaunchAttributeID, []
        if request.cooperative:
            attributes.append(driver.CUlaunchAttribute())
            attributes[-1].id = kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attributes[-1].value.cooperative = 1
        if request.cluster:
            attributes.append(driver.CUlaunchAttribute())
            attributes[-1].id = kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            shape = attributes[-1].value.clusterDim
            shape.x, shape.y, shape.z = request.cluster
        made.attrs, made.numAttrs = attributes, len(attributes)
        return made

    def wait(self) -> None:
        """Wait for all started work; raises errors of the kernel."""
        call("cuStreamSynchronize", self.stream, doing=f"running {self.request.kernel.name}")

    def contents(self) -> list[Any]:
        """Return the current bytes of the arrays on the GPU, in the order of ``pointers``."""
        self.pictures.empty()
        found = []
        for pointer, given in zip(self.pointers, self._inputs, strict=True):
            raw = np.empty(given.nbytes, np.uint8)
            if raw.nbytes:
                call("cuMemcpyDtoH", raw.ctypes.data, pointer, raw.nbytes)
            found.append(raw)
        return found

    def write_back(self) -> None:
        """Copy the arrays' contents from the GPU to the caller's arrays."""
        for array, raw in zip(self._arrays, self.contents(), strict=True):
            write_back(array, raw)
