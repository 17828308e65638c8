"""Modifiers of floating-point operations: rounding, ``.ftz``, ``.sat``, and NaN results."""

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes
from ..table import Function, scalar_type
from . import arithmetic as ieee

_ROUNDINGS = ("rn", "rz", "rm", "rp")


def rounding(ins: Instruction) -> str:
    """Return the rounding that an instruction names; to nearest even without one."""
    return next((m for m in ins.modifiers if m in _ROUNDINGS), "rn")


_NAN_ORDER = {
    "add": (1, 0), "sub": (1, 0), "mul": (1, 0), "min": (1, 0), "max": (1, 0),
    "fma": (1, 2, 0), "mad": (1, 2, 0), "div": (0, 1), "rcp": (0,), "sqrt": (0,), "rsqrt": (0,),
}  # fmt: skip
"""In which order a double precision instruction looks for a NaN to pass on (H200)."""


def finished(ins: Instruction, fn: Function) -> Function:
    """``fn`` with ``.ftz`` around it and ``.sat`` after it, or f64's NaN passed on."""
    ftz, sat = ins.has("ftz"), ins.has("sat")
    if scalar_type(ins) == "f64" and ins.opcode in _NAN_ORDER:
        order = _NAN_ORDER[ins.opcode]
        return lambda *args: ieee.propagate(fn(*args), *(args[i] for i in order))
    if not ftz and not sat:
        return fn

    def apply(*args: Lanes) -> Lanes:
        if ftz:
            args = tuple(ieee.flush(a) for a in args)
        result = fn(*args)
        if ftz:
            result = ieee.flush(result)
        if sat:  # NaN becomes +0
            one, zero = result.dtype.type(1), result.dtype.type(0)
            result = np.where(result > zero, np.minimum(result, one), zero)
        return result

    return apply


_NEAREST: dict[str, Function] = {
    "add": lambda a, b: ieee.canonical(np.add(a, b)),
    "sub": lambda a, b: ieee.canonical(np.subtract(a, b)),
    "mul": lambda a, b: ieee.canonical(np.multiply(a, b)),
    "div": lambda a, b: ieee.canonical(np.divide(a, b)),
    "rcp": lambda a: ieee.canonical(np.divide(a.dtype.type(1), a)),
    "sqrt": lambda a: ieee.canonical(np.sqrt(a)),
}


def rounded(ins: Instruction, operation: str) -> Function:
    """Return one of the basic operations with the instruction's rounding."""
    mode = rounding(ins)
    if mode == "rn":
        return _NEAREST[operation]
    directed = ieee.directed_f32 if scalar_type(ins) == "f32" else ieee.directed_f64
    return lambda *args: directed(operation, mode, *args)


def flush_when_tiny(result: Lanes, exact: Function, mode: str) -> Lanes:
    """``.ftz`` of a rounded f32 result: tiny is what lies below 2**-126 at 24 bits of precision.

    So (1 - 2**-24) * 2**-126, which a subnormal result could not hold and would round up
    to 2**-126, is flushed; 2**-126 - 2**-252 is not (measured on an H200: mul, fma, div
    and cvt from f64, in every rounding).

    ``exact`` gives the result in float64, exact as far as comparing with 25-bit numbers goes.
    """
    edge = np.abs(result) == np.float32(2.0**-126)
    if not np.any(edge):
        return result
    if mode == "rn":  # half way to 2**-126 goes up to it
        tiny = np.abs(exact()) < np.float64((1 - 2.0**-25) * 2.0**-126)
    else:  # only a rounding away from zero comes from below
        tiny = np.abs(exact()) <= np.float64((1 - 2.0**-24) * 2.0**-126)
    return np.where(edge & tiny, np.copysign(np.float32(0), result), result)


def flushing(fn: Function, operation: str, mode: str) -> Function:
    """``flush_when_tiny`` after a product, quotient or fma."""

    def apply(*args: Lanes) -> Lanes:
        def exact() -> Lanes:
            wide = [a.astype(np.float64) for a in args]
            if operation == "div":
                return wide[0] / wide[1]
            product = wide[0] * wide[1]
            return ieee.to_odd(product, wide[2]) if operation == "fma" else product

        return flush_when_tiny(fn(*args), exact, mode)

    return apply
