"""Calls that query a kernel: its attributes and its occupancy."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import math
import struct

from kernels import KernelError
from kernels.machine_code.cubin import registers
from simulator.compile.compiler import compile_ptx
from simulator.compile.program import Program

from .calls import signed, stands_in_for
from .errors import INVALID_DEVICE_FUNCTION, INVALID_VALUE, SUCCESS
from .registration import kernel_of
from .state import Runtime
from .structures import structure

_BLOCK, _OPT_IN, _SM, _RESERVED = 49_152, 232_448, 233_472, 1_024
"""Bytes of shared memory: of a block, with opt-in, of an SM, and the system's for each block."""
SMS, _BLOCKS, _WARPS, _REGISTERS = 132, 32, 64, 65_536
"""Of an H200: multiprocessors; blocks, warps and registers of each."""
_DYNAMIC_SHARED, _CARVEOUT = 8, 9
"""``cudaFuncAttributeMaxDynamicSharedMemorySize``, ``...PreferredSharedMemoryCarveout``."""
_CLUSTER, _LARGE_CLUSTER = 8, 16
"""Blocks of a cluster, and those of one that a kernel opts in to."""


def _count_registers(runtime: Runtime, function: int) -> int:
    """Return registers of a thread by the machine code of NVRTC's assembler; 0: not known here."""
    kernel = kernel_of(runtime, function)
    try:
        return (registers(kernel) if kernel else None) or 0
    except KernelError:
        return 0


def program_of(runtime: Runtime, function: int) -> Program | None:
    """Return the compiled kernel of a host function's address; ``None``: it is none."""
    kernel = kernel_of(runtime, function)
    return compile_ptx(kernel.ptx, kernel.entry) if kernel else None


@stands_in_for("cudaFuncGetAttributes")
def function_attributes(runtime: Runtime, out: int, function: int, *_: int) -> int:
    program = program_of(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    layout, threads = program.layout, program.entry.max_threads
    static = layout.shared_bytes - layout.reserved
    constants = [one for one in program.module.variables.values() if one.space == "const"]
    made = structure(runtime.version, "cudaFuncAttributes", {
        "sharedSizeBytes": static,
        "constSizeBytes": sum(one.nbytes for one in constants),
        "localSizeBytes": layout.local_bytes,
        "maxThreadsPerBlock": min(1024, math.prod(threads or (1024,))),
        "numRegs": _count_registers(runtime, function),
        "ptxVersion": 90, "binaryVersion": 90,
        "maxDynamicSharedSizeBytes": runtime.dynamic_limits.get(function, _BLOCK - static),
        "preferredShmemCarveout": runtime.carveouts.get(function, -1),
    })  # fmt: skip
    runtime.process.write(out, made)
    return SUCCESS


@stands_in_for("cudaFuncSetAttribute")
def set_function_attribute(
    runtime: Runtime, function: int, attribute: int, value: int, *_: int
) -> int:
    program = program_of(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    if signed(attribute) == _CARVEOUT:
        if not -1 <= signed(value) <= 100:
            return INVALID_VALUE
        runtime.carveouts[function] = signed(value)
    if signed(attribute) != _DYNAMIC_SHARED:
        return SUCCESS
    if not 0 <= signed(value) <= _OPT_IN - program.layout.shared_bytes:
        return INVALID_VALUE
    runtime.dynamic_limits[function] = signed(value)
    return SUCCESS


@stands_in_for("cudaFuncSetCacheConfig", "cudaFuncSetSharedMemConfig")
def function_hint(runtime: Runtime, function: int, *_: int) -> int:
    return SUCCESS if function in runtime.functions else INVALID_DEVICE_FUNCTION


@stands_in_for("cudaFuncGetName")
def function_name(runtime: Runtime, out: int, function: int, *_: int) -> int:
    kernel = kernel_of(runtime, function)
    if kernel is None:
        return INVALID_DEVICE_FUNCTION
    runtime.put(out, runtime.text(kernel.entry))
    return SUCCESS


@stands_in_for("cudaFuncGetParamInfo")
def parameter_info(
    runtime: Runtime, function: int, number: int, offset: int, size: int, *_: int
) -> int:
    kernel = kernel_of(runtime, function)
    if kernel is None:
        return INVALID_DEVICE_FUNCTION
    if number >= len(kernel.params):
        return INVALID_VALUE
    param = kernel.params[number]
    runtime.put(offset, param.offset)
    if size:
        runtime.put(size, param.nbytes)
    return SUCCESS


@stands_in_for("cudaGetFuncBySymbol", "cudaGetKernel", "__cudaGetKernel")
def function_handle(runtime: Runtime, out: int, function: int, *_: int) -> None:
    """A function's handle is the address of its host's stand-in."""
    runtime.put(out, function)


def resident_blocks(runtime: Runtime, function: int, threads: int, dynamic: int) -> int:
    """Return how many blocks of a kernel an SM of an H200 holds at a time."""
    program = program_of(runtime, function)
    assert program is not None
    warps = max(1, -(-threads // 32))
    each = program.layout.shared_bytes - program.layout.reserved + dynamic + _RESERVED
    blocks = min(_BLOCKS, _WARPS // warps, _SM // (-(-each // 128) * 128))
    if count := _count_registers(runtime, function):
        # A warp's registers come in units of 256, from one of four parts of the register file.
        of_warp = -(-count * 32 // 256) * 256
        blocks = min(blocks, _REGISTERS // 4 // of_warp * 4 // warps)
    limit = math.prod(program.entry.max_threads or (1024,))
    return blocks if threads <= min(limit, 1024) else 0


@stands_in_for(
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def occupancy(
    runtime: Runtime, out: int, function: int, threads: int, dynamic: int, *_: int
) -> int:
    if function not in runtime.functions:
        return INVALID_DEVICE_FUNCTION
    if signed(threads) < 1:
        return INVALID_VALUE
    fits = dynamic <= runtime.dynamic_limits.get(function, _BLOCK)
    blocks = resident_blocks(runtime, function, signed(threads), dynamic) if fits else 0
    runtime.put(out, blocks, 4)
    return SUCCESS


@stands_in_for("cudaOccupancyAvailableDynamicSMemPerBlock")
def available_shared(
    runtime: Runtime, out: int, function: int, blocks: int, threads: int, *_: int
) -> int:
    program = program_of(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    static = program.layout.shared_bytes - program.layout.reserved
    allowed = runtime.dynamic_limits.get(function, _BLOCK - static)
    each = _SM // max(signed(blocks), 1) // 128 * 128 - _RESERVED - static
    if each < 0 or not resident_blocks(runtime, function, signed(threads), 0):
        return INVALID_VALUE
    runtime.put(out, min(allowed, each))
    return SUCCESS


@stands_in_for("cudaOccupancyMaxPotentialClusterSize", "cudaOccupancyMaxActiveClusters")
def cluster_occupancy(runtime: Runtime, out: int, function: int, config: int, *_: int) -> int:
    """The blocks of a cluster run on the SMs of one GPC: an H200 has some of 16, some of 18."""
    if function not in runtime.functions:
        return INVALID_DEVICE_FUNCTION
    raw = runtime.process.read(config, 56)
    block, (dynamic,) = struct.unpack_from("<3I", raw, 12), struct.unpack_from("<Q", raw, 24)
    blocks = resident_blocks(runtime, function, math.prod(block), dynamic)
    if runtime.name.endswith("Size"):
        runtime.put(out, _CLUSTER if blocks else 0, 4)
        return SUCCESS
    attributes, count = struct.unpack_from("<QI", raw, 40)
    size = 1
    for i in range(min(count, 64)):
        one = runtime.process.read(attributes + 72 * i, 72)
        if struct.unpack_from("<I", one)[0] == 4:
            size = math.prod(struct.unpack_from("<3I", one, 8))
    if not 1 <= size <= _LARGE_CLUSTER:
        return INVALID_VALUE
    runtime.put(out, SMS * blocks // size, 4)
    return SUCCESS
