"""``launch``: run a kernel's PTX on NumPy."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.arguments import (
    MAX_LOCAL,
    MAX_SHARED,
    MAX_STATIC_SHARED,
    Arguments,
    Dim3,
    check_shape,
    content,
    convert,
    dim3,
    write_back,
)
from kernels.errors import LaunchError, PtxError
from kernels.ptx.names import variable_name
from kernels.signatures import parameter_names
from kernels.unset import missing_of, still_unset

from .analysis.perturbation import without_effect
from .analysis.steering import Steering
from .analysis.taint import depends_on_data
from .compile.compiler import compile_ptx
from .compile.program import Program
from .events import Observer, Told, all_of
from .execute import schedule as schedules
from .execute.machine import Machine
from .execute.schedule import Schedule
from .execute.specials import SpecialRegisters, special_registers
from .execute.waiting import Stuck
from .geometry import Geometry, WarpView
from .hazards.findings import Findings
from .hazards.hazard import Source
from .hazards.kinds import CHECKS
from .hazards.sources import Sources
from .isa import DTYPES
from .memory.access import Access
from .memory.layout import FUNCTIONS, PARAMETERS, array_address, array_number, variable_bytes
from .memory.memories import Memories
from .memory.spaces import Allocation
from .observe.checks import BarrierCheck, MemoryCheck
from .observe.counters import TrafficCounter
from .observe.instructions import InstructionCounter
from .observe.totals import collect
from .observe.trace import Trace, compile_traced
from .observe.uninitialised import ConstantCheck, GlobalCheck, LocalCheck
from .races.accesses import LookCloser
from .races.detector import RaceCheck
from .run import Run

LANES = 1 << 16
_SHARED_BYTES = 64 << 20
_LOCAL_BYTES = 256 << 20
"""A batch is this many lanes at most: registers stay in the cache (measured best between
2**15 and 2**16), and memory stays bounded whatever the grid."""

_TOGETHER = 1 << 22
"""Lanes of a grid that may run as one batch, where its blocks wait for each other."""
_RESIDENT, _RESIDENT_BLOCKS = 1 << 19, 1 << 13
"""Of a larger one so many: threads and blocks that no GPU holds at a time."""

Progress = Callable[[int, int], None]


def launch(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    schedule: str | int = "lockstep",
    checks: str | Collection[str] = "all",
    progress: Progress | None = None,
    step_limit: int = 50_000_000,
    trace: bool | Trace = False,
) -> Run:
    """Run a kernel and count what it does.

    Args:
        kernel: What to run; the PTX text it holds is executed.
        grid: Blocks, one to three numbers, x first.
        block: Threads of a block, likewise.
        args: NumPy arrays are pointers, copied in and written back in place (a
            non-writeable one is read-only memory to the kernel); Python numbers and
            NumPy scalars are passed by value; a NumPy structured scalar is a struct.
        shared_bytes: Dynamic shared memory of a block.
        schedule: ``lockstep``, ``warps``, ``reverse``, or a seed for a random one.
        checks: ``all``, ``none``, or names out of ``simulator.CHECKS``.
        progress: Called now and then with blocks done and blocks in all.
        step_limit: Basic blocks that a batch of blocks may run before it is given up as
            endless (a loop that changes nothing is found long before).
        trace: Whether to record each step, for ``run.trace`` and ``run.show()``; a ``Trace``
            says what to record.

    Raises:
        PtxError: The PTX cannot be parsed, or has an instruction without a row.
        LaunchError: A shape, shared memory size, schedule or check that cannot be.
        TypeError: A wrong count or kind of arguments; names the parameter.
        ValueError: An argument that does not fit; names the parameter.
    """
    began = time.perf_counter()
    grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
    check_shape(grid3, block3)
    chosen = _checks(checks)
    schedules.make(schedule)
    recorder = Trace() if trace is True else trace or None
    program = (compile_traced if recorder else compile_ptx)(kernel.ptx, kernel.entry)
    if program.entry.params != kernel.params:
        raise PtxError(f"the parameters of {kernel.entry} are declared in two ways")
    total_shared = _shared(program, shared_bytes)
    _directives(program, block3)
    names = parameter_names(kernel.sources, kernel.name)
    arguments = convert(kernel, args, names)
    arguments.warn()
    buffer = arguments.parameter_buffer(array_address)
    closer: dict[int, Any] = {}
    together = False
    while True:
        allocations = _allocations(program, arguments, buffer)
        job = _Job(program, kernel, allocations, buffer, grid3, block3, total_shared, shared_bytes)
        if recorder:
            recorder.begin(kernel, program, (grid3, block3), allocations, arguments.arrays)
            job.trace = recorder
        order = schedules.make(schedule)
        try:
            job.run(order, chosen, closer, progress, step_limit, together)
            break
        except LookCloser as suspicion:
            closer[suspicion.number] = suspicion.places
        except BlocksWait:
            together = True
    reads = job.findings.local_reads
    if reads:

        def outcome(local_start: Mapping[int, int]) -> Any:
            fresh = _allocations(program, arguments, buffer)
            again = _Job(program, kernel, fresh, buffer, grid3, block3, total_shared, shared_bytes)
            again.local_start = local_start
            again.run(schedules.make(schedule), set(), {}, None, step_limit, together)
            return again.outcome()

        job.findings.drop_local_reads(without_effect(program, reads, job.granule, outcome))
    for number, array in enumerate(arguments.arrays):
        write_back(array, allocations[number].content())
        if "uninitialised" in chosen:
            still_unset(array, allocations[number].missing)
    counters, lines = collect(program, job.ran, job.traffic, job.findings.sources)
    checked = tuple(check for check in CHECKS if check in chosen)
    return Run(
        kernel.name, kernel.entry, kernel.build, kernel.sha256, grid3, block3, total_shared,
        str(schedule), counters, lines, job.findings.hazards(), checked,
        time.perf_counter() - began, program.approximate,
        functools.partial(_dependence, kernel, program, job.traffic), recorder,
        _notes(program, job.ran, job.findings.sources), tuple(arguments.warnings),
    )  # fmt: skip


def _notes(program: Program, ran: InstructionCounter, sources: Sources) -> tuple[str, ...]:
    """What a launch did and the run does not show."""
    printed = [
        block.block.end
        for block in program.blocks
        if block.block.end and block.block.end.targets == ("vprintf",)
        if ran.threads[block.number]
    ]
    places = dict.fromkeys(str(sources.of(ins)) for ins in printed)
    return tuple(f"printf output is not shown yet: {place}" for place in places)


class BlocksWait(Exception):
    """Blocks spin for others that are not in their batch: all have to run together."""


class _Job:
    """One attempt at a launch: fresh memory, counters and checks."""

    def __init__(
        self, program: Program, kernel: Kernel, allocations: dict[int, Allocation], buffer: bytes,
        grid: Dim3, block: Dim3, shared: int, dynamic: int,
    ) -> None:  # fmt: skip
        self.trace: Trace | None = None
        self.local_start: Mapping[int, int] = {}
        self.granule = min([4, *(site.size for site in program.sites)])
        self.program, self.buffer, self.allocations = program, buffer, allocations
        self.grid, self.block, self.shared, self.dynamic = grid, block, shared, dynamic
        self.traffic = TrafficCounter(len(program.sites), program.memo("patterns", block))
        self.ran = InstructionCounter(program)
        self.steering = program.fact(Steering)
        self.findings = Findings(Sources(kernel), program, self.steering)

    def run(
        self, order: Schedule, chosen: set[str], closer: dict[int, Any], progress: Progress | None,
        step_limit: int, together: bool,
    ) -> None:  # fmt: skip
        """Run all batches.

        Raises:
            LookCloser: A check needs the table of one more array, from the start.
            BlocksWait: The batch spins for ever; with all blocks in one it might not.
        """
        program = self.program
        layout = program.layout
        told = Told(self._observers(chosen, closer))
        memories = Memories(layout, self.allocations, self.shared, told.access, told.bad_access)
        memories.local_start = self.local_start
        accesses = [Access(site, memories) for site in program.sites]
        specials = SpecialRegisters()
        space = dict(program.constants)
        space |= {f"x{a.site.number}": getattr(a, a.site.kind) for a in accesses}
        space |= _parameter_constants(program, self.buffer)
        space |= {"S": specials, "ALL": None, "trace": all_of(told.traced)}
        space |= {"tally": all_of(told.arithmetic), "fence": all_of(told.fence)}
        machine = Machine(program, space, order, told, memories, step_limit)
        total = self.grid[0] * self.grid[1] * self.grid[2]
        with np.errstate(all="ignore"):
            for numbers in _batches(total, self.block, self.shared, layout.local_bytes, together):
                geometry = Geometry(self.grid, self.block, numbers)
                for access in accesses:
                    access.forget()
                memories.start(geometry)
                for tell in told.start:
                    tell(geometry)
                specials.clear()
                specials.update(special_registers(geometry, self.shared, self.dynamic))
                space["W"] = functools.partial(WarpView, geometry)
                try:
                    machine.run(geometry, len(numbers) < total and not together)
                except Stuck as stuck:
                    if stuck.why in ("repeats", "idle") and machine.others_to_come:
                        raise BlocksWait from None
                    stall = machine.stall(stuck)
                    stall.part = len(numbers) if len(numbers) < total else 0
                    for tell in told.stuck:
                        tell(stall)
                for tell in told.finish:
                    tell()
                if progress:
                    progress(int(numbers[-1]) + 1, total)
            for tell in told.end:
                tell()

    def outcome(self) -> tuple[Any, ...]:
        """What a user could see of the run: where threads went, what arrays hold."""
        contents = (a.content().tobytes() for a in self.allocations.values() if a.writable)
        return str(self.ran.threads), *contents

    def _observers(self, chosen: set[str], closer: dict[int, Any]) -> list[Observer]:
        findings, layout = self.findings, self.program.layout
        found: list[Observer] = [self.traffic, self.ran, findings]
        if "memory" in chosen:
            found.append(MemoryCheck(findings))
        if "barriers" in chosen:
            found.append(BarrierCheck(findings))
        if chosen & {"races", "uninitialised"}:
            found.append(RaceCheck(
                closer, self.granule, self.shared, findings.races, self.steering,
                functools.partial(findings.uninitialised, "shared"),
                "races" in chosen, "uninitialised" in chosen,
                self.program.memo("intervals", self.block, self.shared, tuple(sorted(chosen))),
            ))  # fmt: skip
        if "uninitialised" in chosen:
            if layout.local_bytes:
                found.append(LocalCheck(findings, self.granule, layout.local_bytes))
            if layout.unset_constants:
                found.append(ConstantCheck(findings, layout.unset_constants))
            if any(a.missing is not None for a in self.allocations.values()):
                found.append(GlobalCheck(findings))
        return [*found, self.trace] if self.trace else found


def _dependence(kernel: Kernel, program: Program, traffic: TrafficCounter) -> Source | None:
    steered = depends_on_data(program, lambda site: set(traffic.traffic(site)))
    return Sources(kernel).of(steered) if steered else None


def _checks(checks: str | Collection[str]) -> set[str]:
    if checks == "all":
        return set(CHECKS)
    if checks == "none":
        return set()
    wanted = {checks} if isinstance(checks, str) else set(checks)
    unknown = wanted - set(CHECKS)
    if unknown:
        raise LaunchError(f"unknown check {sorted(unknown)[0]!r}; there are: {', '.join(CHECKS)}")
    return wanted


def _shared(program: Program, dynamic: int) -> int:
    if dynamic < 0:
        raise LaunchError(f"shared_bytes cannot be negative: {dynamic}")
    layout = program.layout
    total = layout.dynamic_offset + dynamic if dynamic else layout.shared_bytes
    if layout.local_bytes > MAX_LOCAL:
        raise LaunchError(
            f"{layout.local_bytes:,} bytes of local memory in a thread; a GPU allows {MAX_LOCAL:,}"
        )
    if layout.shared_bytes > MAX_STATIC_SHARED:
        raise LaunchError(
            f"{layout.shared_bytes:,} bytes of static shared memory in a block; a GPU allows "
            f"{MAX_STATIC_SHARED:,}, and more only as dynamic shared memory"
        )
    if total > MAX_SHARED:
        raise LaunchError(
            f"{total:,} bytes of shared memory in a block; a GPU of compute capability 9.0 "
            f"allows {MAX_SHARED:,}"
        )
    return total


def _directives(program: Program, block: Dim3) -> None:
    threads = block[0] * block[1] * block[2]
    most, required = program.entry.max_threads, program.entry.required_threads
    if most and threads > math.prod(most):
        raise LaunchError(
            f"{threads} threads in a block, but the kernel is compiled for {math.prod(most)} "
            "at most (.maxntid, __launch_bounds__)"
        )
    if required and (*required, 1, 1)[:3] != block:
        raise LaunchError(f"the kernel requires a block of {required} (.reqntid), not {block}")


def _allocations(program: Program, arguments: Arguments, buffer: bytes) -> dict[int, Allocation]:
    """Global memory: the argument arrays, the parameters, the module's variables."""
    made = {
        number: Allocation(number, content(array), label, bool(array.flags.writeable))
        for number, (array, label) in enumerate(
            zip(arguments.arrays, arguments.labels, strict=True)
        )
    }
    for number, array in enumerate(arguments.arrays):
        missing = missing_of(array)
        if missing is not None:
            made[number].missing = np.repeat(missing, array.itemsize)
    parameters = np.frombuffer(buffer, np.uint8)
    made[PARAMETERS] = Allocation(PARAMETERS, parameters, "parameters", False)
    placed = program.layout.placed
    addresses = {name: p.address for (scope, name), p in placed.items() if not scope}
    for number, name in enumerate(program.module.functions):
        addresses.setdefault(name, array_address(FUNCTIONS + number))
    for (_, name), p in placed.items():
        variable = p.variable
        if variable.space in ("global", "const"):
            number = array_number(p.address)
            initial = np.frombuffer(variable_bytes(program.layout, variable, addresses), np.uint8)
            writable = variable.space == "global"
            nbytes = max(variable.nbytes, len(initial))
            made[number] = Allocation(number, initial, variable_name(name), writable, nbytes)
    return made


def _parameter_constants(program: Program, buffer: bytes) -> dict[str, Any]:
    return {
        name: np.frombuffer(buffer, DTYPES[kind], 1, offset)[0]
        for name, kind, offset in program.params
    }


def _batches(total: int, block: Dim3, shared: int, local: int, together: bool) -> Any:
    """The grid's blocks, some at a time."""
    threads = block[0] * block[1] * block[2]
    size = min(total, max(1, LANES // threads))
    if together:
        size = total
        if total * threads > _TOGETHER or total * shared > 16 * _SHARED_BYTES:
            size = min(total, max(1, _RESIDENT // threads), _RESIDENT_BLOCKS)
    elif shared:
        size = min(size, max(1, _SHARED_BYTES // shared))
    if local and not together:
        size = min(size, max(1, _LOCAL_BYTES // (local * threads)))
    for first in range(0, total, size):
        yield np.arange(first, min(first + size, total), dtype=np.int64)
