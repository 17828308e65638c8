"""Preparation of a launch: PTX is compiled, shape and arguments are validated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.arguments.cluster_shape import ONE, cluster_shape
from kernels.arguments.convert import (
    Arguments,
    Dim3,
    check_memory,
    check_resident,
    check_shape,
    check_threads,
    dim3,
)
from kernels.arguments.symbols import convert_all
from kernels.errors import LaunchError, PtxError
from kernels.machine_code.architecture import architecture
from kernels.source.restrict_pointers import Pointers, pointers

from ..compile.compiler import compile_ptx
from ..compile.program import Program
from ..isa.memory.stack import STACK_BYTES
from ..memory.site import Granules, granules
from ..memory.storage.allocate import allocate
from ..memory.storage.device import Device
from ..memory.storage.heap import HEAP_BYTES, HeapContent, heap_array
from ..memory.storage.layout import HEAP, MODULE_VARIABLES, WORKSPACE
from ..memory.storage.module_state import VariableState
from ..memory.storage.spaces import Allocation
from . import schedule as schedules
from .device_arguments import device_arguments
from .schedule import Schedule

_WORKSPACE_BYTES = 32
"""Of ``cooperative_groups``' barrier of a grid: its size, and a word that counts."""


@dataclass(frozen=True)
class PreparedLaunch:
    """A validated launch, which can be executed several times.

    Attributes:
        program: The compiled kernel.
        grid: Grid extents in blocks, x first.
        block: Block extents in threads, x first.
        shared_bytes: Shared memory of a block, static and dynamic.
        dynamic_bytes: Its dynamic part.
        step_limit: Basic blocks that a batch may execute.
        cooperative: Whether blocks may wait for each other.
        counted: Whether counters are collected.
        followed: Whether accessed bytes are recorded, for the order between launches.
        cluster: Cluster extents in blocks, x first.
        clustered: Whether launch or kernel specify clusters.
        heap_bytes: Size of the device heap; ``heap``: what earlier launches allocated in it.
        pointers: See ``kernels.source.restrict_pointers.pointers``.
        substituted: Whether it takes the program's substitutes.
    """

    kernel: Kernel
    program: Program
    arguments: Arguments
    grid: Dim3
    block: Dim3
    shared_bytes: int
    dynamic_bytes: int
    schedule: str | int
    step_limit: int
    cooperative: bool = False
    cluster: Dim3 = ONE
    clustered: bool = False
    heap_bytes: int = HEAP_BYTES
    heap: HeapContent | None = None
    counted: bool = True
    followed: bool = False
    module_variables: Mapping[str, VariableState] = field(default_factory=dict)
    pointers: Pointers = Pointers()  # noqa: RUF009 - never changed
    substituted: bool = False

    @property
    def shared_space(self) -> int:
        """Bytes of a block's shared-memory window, including the system's reserved part."""
        return self.shared_bytes + self.program.layout.reserved

    @property
    def granules(self) -> Granules:
        """Granule sizes (bytes of a location) for the checks."""
        return self.program.analysis(_granules)

    def allocations(self) -> dict[int, Allocation]:
        """Return global memory with the contents that the host provides."""
        functions = self.program.module.functions
        made = allocate(self.program.layout, functions, self.arguments, self.module_variables)
        if self.cooperative:
            empty = np.zeros(_WORKSPACE_BYTES, np.uint8)
            made[WORKSPACE] = Allocation(WORKSPACE, empty, "the grid's barrier", True)
        if self.heap or {"malloc", "free"} & {block.called for block in self.program.blocks}:
            made[HEAP] = heap_array(self.heap_bytes, self.heap)
        return made

    def order(self) -> Schedule:
        """Return a new schedule object."""
        return schedules.make(self.schedule, self.program.analysis(blocks_vary))


def blocks_vary(program: Program) -> bool:
    """Whether the order of blocks may matter (atomics) and may be varied.

    It may not with asynchronous copies and ``mbarrier``, which are tracked for blocks that run side
    by side.
    """
    strong = any(site.strong and not site.order for site in program.sites)
    return strong and not any(site.asynchronous or site.order for site in program.sites)


def _granules(program: Program) -> Granules:
    return granules(program.sites, any(block.called == "vprintf" for block in program.blocks))


def prepare(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int,
    schedule: str | int,
    step_limit: int,
    traced: bool,
    arch: str | int | None = None,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    stack_bytes: int = STACK_BYTES,
    cluster: int | Sequence[int] | None = None,
    heap_bytes: int = HEAP_BYTES,
    device: Device | None = None,
) -> PreparedLaunch:
    """Validate and compile a launch.

    Takes the arguments of ``launch`` and raises the same errors.
    """
    if not isinstance(kernel, Kernel):
        what = type(kernel).__name__
        raise TypeError(f"a launch takes a Kernel (Kernel.from_cuda, Kernel.from_ptx), not {what}")
    for name, value, least in (
        ("shared_bytes", shared_bytes, None), ("step_limit", step_limit, 1),
        ("stack_bytes", stack_bytes, 1), ("heap_bytes", heap_bytes, 0),
    ):  # fmt: skip
        if not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} is a whole number, not {value!r}")
        if least is not None and value < least:
            raise LaunchError(f"{name} is {least} at least, not {value}")
    grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
    check_shape(grid3, block3)
    schedules.make(schedule)
    number = 0 if arch is None else architecture(arch)
    module = device.module(kernel.ptx, kernel.module or 0) if device else None
    first = module.first_variable if module else MODULE_VARIABLES
    program = compile_ptx(kernel.ptx, kernel.entry, number, stack_bytes, first, traced)
    entry, layout = program.entry, program.layout
    if shared_bytes >= 0:
        shared_bytes = max(shared_bytes, kernel.dynamic_bytes)
    if entry.params != kernel.params:
        raise PtxError(f"the parameters of {kernel.entry} are declared in two ways")
    total = layout.dynamic_offset + shared_bytes if shared_bytes else layout.shared_bytes
    static, total = layout.shared_bytes - layout.reserved, total - layout.reserved
    check_memory(static, shared_bytes, total, layout.local_bytes)
    check_threads(block3, entry.max_threads, entry.required_threads)
    if device is None:
        arguments = convert_all(kernel, program.module, args, symbols)
    else:
        arguments = device_arguments(device, kernel, args, program)
    if cooperative:
        check_resident(grid3, block3)
    clusters = cluster_shape(cluster, grid3, entry)
    return PreparedLaunch(
        kernel, program, arguments, grid3, block3, total, shared_bytes, schedule, step_limit,
        cooperative, *clusters, heap_bytes, device.heap if device else None,
        pointers=pointers(kernel, arguments),
    )  # fmt: skip
