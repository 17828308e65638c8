"""Which functions of a program native forms stand in for, in the NumPy engine."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.ptx.module import Imm
from kernels.ptx.types import DTYPES

from ...compile.ir import Compute
from ...compile.program import Program
from ...core.geometry import Lanes
from ...isa.numerics.arithmetic import fma_f32
from .. import jit, library
from . import loops, numpy_api

_LEVEL = 2
_SAMPLE, _TRIES = 4096, 3
"""Lanes on which functions are compared, and how often: 0.1 ms for a step of 10 us."""
_PASSES = 2
"""Times of one addition of such arrays below which a function is fast enough."""
_COMPILATION, _LOADING, _START = 0.03, 0.001, 0.06
"""Seconds to compile a loop, to load it, and to start LLVM (AMD EPYC)."""


@dataclass
class Loop:
    """The loop of a step, of which many have the same; ``function``: once it is there and faster.

    Attributes:
        text: The module; ``step``: one of the steps.
        is_slow: Whether the step's own function is worth a faster one.
    """

    text: str
    step: Compute
    is_slow: bool
    function: np.ufunc | None = None
    loaded: jit.LoadedObject | None = None

    def make(self) -> None:
        """Compile it, unless that was done."""
        if self.loaded is None:
            function = self.compiled(_LEVEL)
            self.function = function if _is_faster(function, self.step) else None

    def compiled(self, level: int) -> np.ufunc:
        """Return its function, compiled at a level of optimisation."""
        if loops.UNIT in self.text:
            library.entry()  # exports what forms call
        self.loaded = jit.load(self.text, level)
        types = loops.types_of(self.step)
        return numpy_api.universal_function(self.loaded, loops.NAME, *types)


_loops: dict[tuple[object, ...], Loop] = {}
"""By their text, and the types of their arrays."""


class FusedProducts:
    """``isa.scalar.fma_chain.Products`` with a fused multiply-add of its own."""

    __slots__ = ("fma", "sum")

    def __init__(self, fma: np.ufunc, a: Lanes, b: Lanes, c: Lanes) -> None:
        self.fma = fma
        self.sum = fma(a, b, c)

    def add(self, a: Lanes, b: Lanes) -> None:
        """Add the next product."""
        self.sum = self.last(a, b)

    def last(self, a: Lanes, b: Lanes) -> Lanes:
        """Return the sum after one more product."""
        found: Lanes = self.fma(a, b, self.sum)
        return found


def preparation_seconds(program: Program) -> float:
    """Estimate how long ``substitute`` would take, on the machine of ``_COMPILATION``."""
    new = {loop.text for loop in program.analysis(slow_steps).values() if not loop.loaded}
    missing = sum(not jit.is_stored(text, _LEVEL) for text in new)
    starts = not any(loop.loaded for loop in _loops.values())
    return _COMPILATION * missing + _LOADING * len(new) + _START * starts


def substitute(program: Program) -> None:
    """Let universal functions stand in for slower ones in a program, from now on."""
    found: dict[str, object] = {}
    for name, loop in program.analysis(slow_steps).items():
        loop.make()
        if loop.function:
            found[name] = loop.function
            if loop.step.op.fn is fma_f32:
                found["products"] = functools.partial(FusedProducts, loop.function)
    program.substitutes.add(found)


def slow_steps(program: Program) -> dict[str, Loop]:
    """Return the loops of steps whose functions are slow, by the names of these."""
    found: dict[str, Loop] = {}
    if jit.why_unavailable() or not numpy_api.is_available():
        return found
    known: dict[tuple[object, ...], Loop | None] = {}
    for block in program.blocks:
        for name, step in {} if block.shadowed else block.body.functions.items():
            # Immediates are operands, but for lop3's table, which the form is made of.
            ins = step.instruction
            given = tuple(one.value for one in ins.operands if isinstance(one, Imm))
            kind = ins.name, given, step.op.inputs, *loops.types_of(step)
            if kind not in known:
                known[kind] = _loop(step)
            if (loop := known[kind]) and loop.is_slow:
                found[name] = loop
    return found


def _loop(step: Compute) -> Loop | None:
    text = None if isinstance(step.op.fn, np.ufunc) else loops.module_text(step)
    if text is None:
        return None
    key = text, loops.types_of(step)
    if key not in _loops:
        first = _operands(step)[0]
        least = _PASSES * _seconds_of(np.add, [first, first])
        _loops[key] = Loop(text, step, _seconds(step.op.fn, step) > least)
    return _loops[key]


def _is_faster(function: np.ufunc, step: Compute) -> bool:
    return _seconds(function, step) < _seconds(step.op.fn, step)


def _operands(step: Compute) -> list[Lanes]:
    random = np.random.default_rng(0)
    return [_sample(type, random) for type in loops.types_of(step)[0]]


def _sample(type: str, random: np.random.Generator) -> Lanes:
    dtype = DTYPES[type]
    if dtype.kind == "f":
        return random.standard_normal(_SAMPLE).astype(dtype)
    if dtype.kind == "b":
        return random.random(_SAMPLE) < 0.5
    drawn: Lanes = random.integers(0, 256, _SAMPLE * dtype.itemsize, np.uint8).view(dtype)
    return drawn


def _seconds(call: Callable[..., object], step: Compute) -> float:
    return _seconds_of(call, _operands(step))


def _seconds_of(call: Callable[..., object], operands: list[Lanes]) -> float:
    """Return how long a function takes, at best."""
    best = math.inf
    with np.errstate(all="ignore"):
        for _ in range(_TRIES):
            began = time.perf_counter()
            call(*operands)
            best = min(best, time.perf_counter() - began)
    return best
