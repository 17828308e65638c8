"""Comparison of the results of two launches on a user's own arguments."""

from typing import Any

import numpy as np

from kernels.arguments.symbols import convert_all
from kernels.ptx.module import Module, Symbol
from kernels.ptx.names import variable_name
from kernels.source.element_types import vector_of
from kernels.source.signatures import parameter_label
from simulator.compile.cfg.basic_blocks import reachable
from simulator.isa import parse
from simulator.isa.decoded import roles

from ..check.outcome import Outcome
from .layout import wrapped


def agreement(first: Outcome, second: Outcome) -> list[str]:
    """Return the differences by array name, and what was not compared."""
    (a, missing), (b, more) = _remaining(first), _remaining(second)
    if len(first.target.args) != len(second.target.args) or len(a) != len(b):
        return ["arrays: not compared, the kernels take different arguments"]
    elements, said = _elements(first), []
    for (name, x), (_, y) in zip(a, b, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            said.append(f"{name}: not compared, the arrays have different types or shapes")
        elif count := int((_bits(x) != _bits(y)).any(axis=-1).sum()):
            off = _largest(x, y, elements.get(name, ""))
            said.append(f"{name}: {count:,} of {x.size:,} elements differ{off}")
    if a and not said:
        said = ["arrays: both leave the same in every array given, bit for bit"]
    if unknown := sorted(missing | more):
        said.append(f"not compared, as no --symbol gives an array: {', '.join(unknown)}")
    return [wrapped(line) for line in said]


def _remaining(outcome: Outcome) -> tuple[list[tuple[str, Any]], set[str]]:
    """Return the arrays that a launch may have written, by name, in structures and variables too.

    Also returns variables that it may have written without a result for the host.
    """
    target = outcome.target
    module = parse(target.kernel.ptx)
    made = convert_all(target.kernel, module, target.args, outcome.symbols)
    labelled = zip(made.labels, made.arrays, strict=True)
    arrays = [one for number, one in enumerate(labelled) if number not in made.tables]
    symbols = {name: one for name, one in sorted(made.symbols.items()) if name not in made.filled}
    arrays += [(variable_name(name), array) for name, array in symbols.items()]
    own = [v.name for v in module.variables.values() if v.space == "global" and "$" not in v.name]
    given = _given_away(module, target.kernel.entry)
    return arrays, {variable_name(name) for name in own if name not in symbols and name in given}


def _given_away(module: Module, entry: str) -> set[str]:
    """Return the variables that a kernel may write, because it takes their address."""
    named, given = set[str](), set[str]()
    for function in reachable(module, entry):
        for ins in function.body:
            bases = {a.base.name for a in roles(ins).addresses if isinstance(a.base, Symbol)}
            taken = {o.name for o in ins.operands if isinstance(o, Symbol)}
            named |= bases | taken
            given |= taken if roles(ins).row.memory == "load" else bases | taken
    todo = [*named]
    while todo:  # what is named holds addresses of others
        variable = module.variables.get(todo.pop())
        inside = {v.name for v in variable.init if isinstance(v, Symbol)} if variable else set()
        todo += inside - named
        named |= inside
        given |= inside
    return given


def _elements(outcome: Outcome) -> dict[str, str]:
    """Return the C++ element types of the parameter arrays, where known."""
    kernel = outcome.target.kernel
    names = kernel.labels()
    kinds = enumerate(kernel.element_types)
    return {parameter_label(names, i): vector_of(kind)[0] for i, kind in kinds}


def _largest(x: Any, y: Any, element: str) -> str:
    """Return the largest difference of two arrays, if it is a number."""
    a, b = (_numbers(array, element) for array in (x, y))
    if a is None:
        return ""
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
    return f", by {off.max():.3g} at most" if np.isfinite(off).all() else ""


def _numbers(array: Any, element: str) -> Any:
    """Return an array as float64; ``None``: it may hold bits of a type that NumPy lacks."""
    if element == "__nv_bfloat16":
        wide = _bits(array).view(np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).astype(np.float64)
    bits = array.dtype in (np.uint8, np.uint16) and element not in ("unsigned char",
                                                                    "unsigned short")  # fmt: skip
    return None if bits or array.dtype.kind not in "biuf" else array.astype(np.float64)


def _bits(array: Any) -> Any:
    """Return the bytes of each element."""
    return np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
