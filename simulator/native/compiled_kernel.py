"""A kernel's machine code for one shape of block, made once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..compile.ir import Compute
from ..compile.program import Program
from ..execute.machine import flow_map
from . import jit, library
from .codegen.kernel_code import KernelCode
from .codegen.lane_code import FrameSlot, NotNative
from .eligibility import why_not_program

QUICK, OPTIMISED = 0, 2
"""LLVM's levels for kernels: at first, and once that pays."""
_LINE_SECONDS = 2e-4
"""Seconds that ``OPTIMISED`` takes for a line of IR, as measured (AMD EPYC): 0.1 to 0.26 ms."""


@dataclass
class CompiledKernel:
    """Machine code of a kernel.

    Attributes:
        address: Of its function; ``loaded``: what keeps it in memory.
        frame_bytes: Of a warp's registers; ``slots``: where each of them lies.
        affected: Basic blocks at which lanes may have different tokens.
        points: How many convergence points keep tokens.
        about: By barrier, bits of the loops that are about it, in the order of their heads.
        heads: How many such loops there are.
        called_back: Steps whose NumPy functions it calls, by number.
        rest: Seconds that it has to run until optimised code pays; infinite if it is that.
    """

    address: int
    loaded: jit.LoadedObject = field(repr=False)
    frame_bytes: int
    slots: dict[int, FrameSlot]
    affected: frozenset[int]
    points: int
    about: dict[int, int]
    heads: int
    called_back: tuple[Compute, ...]
    rest: float


def kernel_text(program: Program, shape: tuple[int, int, int]) -> KernelCode | str:
    """Return a kernel's code in LLVM IR; or why there is none. Remembered."""
    memo = program.memo("native code", shape)
    if "code" not in memo:
        memo["code"] = _kernel_text(program, shape)
    found: KernelCode | str = memo["code"]
    return found


def _kernel_text(program: Program, shape: tuple[int, int, int]) -> KernelCode | str:
    if why := why_not_program(program):
        return why
    code = KernelCode(program, program.analysis(flow_map), shape)
    try:
        code.make()
    except NotNative as unknown:
        return str(unknown)
    return code


def compiled(program: Program, shape: tuple[int, int, int]) -> CompiledKernel | str:
    """Return a kernel's machine code; or why there is none. Remembered."""
    memo = program.memo("native kernel", shape)
    if "kernel" not in memo:
        memo["kernel"] = _compiled(program, shape)
    found: CompiledKernel | str = memo["kernel"]
    return found


def is_compiled(program: Program, shape: tuple[int, int, int]) -> bool:
    """Return whether a kernel's machine code is in memory."""
    return isinstance(program.memo("native kernel", shape).get("kernel"), CompiledKernel)


def ran(kernel: CompiledKernel, program: Program, shape: tuple[int, int, int],
        seconds: float) -> CompiledKernel:  # fmt: skip
    """Note that a kernel has run for some time; return its optimised code once that pays.

    The rule of ski rental: what is spent is at most twice of what the better choice would cost.
    """
    kernel.rest -= seconds
    code = kernel_text(program, shape)
    if kernel.rest > 0 or isinstance(code, str):
        return kernel
    made = _at_level(code, OPTIMISED)
    program.memo("native kernel", shape)["kernel"] = made
    return made


def _compiled(program: Program, shape: tuple[int, int, int]) -> CompiledKernel | str:
    code = kernel_text(program, shape)
    if isinstance(code, str):
        return code
    library.entry()
    for name in sorted(code.accesses):
        library.load_access(name)
    level = OPTIMISED if jit.is_stored(code.text, OPTIMISED) else QUICK
    return _at_level(code, level)


def _at_level(code: KernelCode, level: int) -> CompiledKernel:
    loaded = jit.load(code.text, level)
    rest = code.text.count("\n") * _LINE_SECONDS if level == QUICK else math.inf
    return CompiledKernel(
        loaded.address("kernel"), loaded, code.frame.nbytes, code.frame.slots, code.affected,
        len(code.points), code.about, len(code.heads),
        tuple(code.called_back), rest,
    )  # fmt: skip
