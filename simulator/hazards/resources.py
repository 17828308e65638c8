"""Resources of a block against a GPU: registers and shared memory.

Registers of a thread are known from machine code. It is compiled only if registers may not suffice,
for 255 a thread, or for about twice the live registers of the PTX.
"""

import math
from dataclasses import replace

from kernels.arguments.convert import Dim3
from kernels.errors import KernelError
from kernels.machine_code.cubin import registers
from kernels.ptx.module import Function

from ..compile.program import Program
from ..execute.prepare import PreparedLaunch
from ..gpus.occupancy import WARP, occupancy
from ..gpus.table import Gpu
from ..isa.decoded import calls, roles
from .hazard import Hazard
from .kinds import TOO_MANY_RESOURCES, HazardCase
from .sources import Sources

_TIMES, _SPARE = 2, 24
"""Registers for each that is live in the PTX, and besides, at most: loops are unrolled, loads moved
ahead. Of the library's 132 kernels without calls none takes more than twice those live and 9."""
_UNIT = 8
"""Registers of a thread come in groups."""


def may_lack(block: Dim3, shared_bytes: int, gpu: Gpu) -> bool:
    """Whether blocks of that size may exceed a GPU's resources; cheap to evaluate."""
    chip = gpu.architecture
    fit = _fits(gpu, math.prod(block), chip.registers_per_thread)
    return not fit or shared_bytes > chip.shared_per_block


def too_many(launch: PreparedLaunch, gpu: Gpu, sources: Sources) -> tuple[list[Hazard], list[str]]:
    """Return hazards of resources that do not suffice, and sentences on what is unknown."""
    if launch.kernel.build == "source" or _surely_fits(launch, gpu):
        return _hazards(launch, sources, lacking(launch, gpu)), []
    try:
        taken = registers(launch.kernel, gpu.capability)
        why = "no machine code can be made of it here"
    except KernelError as error:
        taken, why = None, (str(error).splitlines() or ["refused"])[0]
    found = _hazards(launch, sources, lacking(launch, gpu, taken))
    if taken is None:
        return found, [f"not checked: whether {gpu.name} has the registers for a block ({why})"]
    return found, []


def lacking(launch: PreparedLaunch, gpu: Gpu, taken: int | None = None) -> list[HazardCase]:
    """Return the insufficient resources for a block; ``taken``: registers of a thread."""
    threads, chip = math.prod(launch.block), gpu.architecture
    words: dict[str, dict[str, object]] = {}
    if launch.shared_bytes > chip.shared_per_block:
        words["shared memory"] = {"bytes": launch.shared_bytes, "most": chip.shared_per_block}
    if taken is not None and not _fits(gpu, threads, taken):
        fit = next((n for n in range(-(-threads // WARP) * WARP, 0, -WARP)
                    if _fits(gpu, n, taken)), 0)  # fmt: skip
        each = next(n for n in range(chip.registers_per_thread, 0, -1) if _fits(gpu, threads, n))
        words["registers"] = {
            "registers": taken, "fit": fit, "most": chip.registers,
            "each": each // _UNIT * _UNIT,
            "how": f"declare the kernel __global__ void __launch_bounds__({threads})",
        }  # fmt: skip
        if '.py"' in launch.kernel.ptx:  # Numba's: Triton says for how many threads it compiles
            words["registers"]["how"] = f"compile it with @cuda.jit(launch_bounds={threads})"
    found = []
    for name, more in words.items():
        case, known = TOO_MANY_RESOURCES.case(name), more | {"gpu": gpu.name, "threads": threads}
        message, note = case.message.format_map(known), case.note.format_map(known)
        found.append(replace(case, message=message, note=note))
    return found


def _hazards(launch: PreparedLaunch, sources: Sources, cases: list[HazardCase]) -> list[Hazard]:
    name, part = TOO_MANY_RESOURCES.name, sources.part("kernel", launch.program.entry.body[:1])
    return [
        Hazard(name, case.message, case.severity, involved=(part,), notes=(case.note,))
        for case in cases
    ]


def _fits(gpu: Gpu, threads: int, registers: int) -> bool:
    return bool(occupancy(gpu, threads, registers).limits["registers"])


def _surely_fits(launch: PreparedLaunch, gpu: Gpu) -> bool:
    """Whether the registers suffice with any register allocation."""
    threads, entry = math.prod(launch.block), launch.program.entry
    if _fits(gpu, threads, gpu.architecture.registers_per_thread):
        return True
    if entry.max_threads or entry.required_threads:  # for which the compiler has to save registers
        return True
    live = launch.program.analysis(_live)
    return live is not None and _fits(gpu, threads, _TIMES * live + _SPARE)


def _live(program: Program) -> int | None:
    """Return the maximum of live 32-bit registers in the PTX; ``None`` if it has calls."""
    peak = 0
    for compiled in program.blocks:
        block = compiled.block
        if any(calls(ins) for ins in block.instructions):
            return None
        sizes = _Sizes(block.function)
        live = set(block.live_out)
        count = sum(map(sizes.of, live))
        peak = max(peak, count)
        for ins in reversed(block.instructions):
            role = roles(ins)
            written = live & set(role.writes) if ins.guard is None else set[str]()
            read = set(role.reads) - (live - written)
            live = live - written | read
            count += sum(map(sizes.of, read)) - sum(map(sizes.of, written))
            peak = max(peak, count)
    return peak


class _Sizes:
    """Size of each PTX register in 32-bit registers."""

    def __init__(self, function: Function) -> None:
        self.types = function.registers

    def of(self, name: str) -> int:
        """Return the size of a register; predicates have none."""
        kind = self.types.get(name, "b32")
        return 0 if kind == "pred" else max(1, int(kind.lstrip("abefsu")) // 32)
