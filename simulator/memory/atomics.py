"""Atomic read-modify-write of many lanes at once, in lane order.

Hardware order is unspecified and lane order is one of the possible ones. For all operations but
floating-point sums the final content does not depend on it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.ptx.module import Instruction

from ..core.geometry import Flat, Lanes
from ..isa import DTYPES
from ..isa.memory import mbarrier
from ..isa.numerics import arithmetic as ieee
from ..isa.scalar import half
from .site import PHASE, Site

_FEW_ROUNDS = 64


_Operation = Callable[..., Any]
"""(old values, operands) to new ones, arrays or single ones."""


def meaning(name: str, ptx_type: str, is_global: bool) -> _Operation:
    """Return the function from old values and operands to new values."""
    unsigned_one = DTYPES[ptx_type].type(1)
    if ptx_type in half.HALF_TYPES and name != "exch":
        build = half.arithmetic if name == "add" else half.min_max
        halves = build(Instruction(name, (ptx_type,), (), None, 0, None)).fn
        return lambda old, v: np.asarray(halves(old, v)).view(old.dtype)
    if name == "add" and ptx_type == "f64":  # a NaN goes on: the operand's before memory's (H200)
        return lambda old, v: ieee.propagate(old + v, v, old, quieted=not is_global)
    if name == "add" and ptx_type == "f32":
        if is_global:  # where it flushes subnormals: PTX ISA, "atom"
            return lambda old, v: ieee.canonical(ieee.flush(ieee.flush(old) + ieee.flush(v)))
        return lambda old, v: ieee.canonical(old + v)
    simple: dict[str, _Operation] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda old, v: v,
        "inc": lambda old, v: np.where(old >= v, old.dtype.type(0), old + unsigned_one),
        "dec": lambda old, v: np.where((old == 0) | (old > v), v, old - unsigned_one),
        "cas": lambda old, compare, v: np.where(_equal(old, compare), v, old),
        PHASE: mbarrier.arrived,
    }
    return simple[name]


def _equal(old: Flat, compare: Flat) -> Flat:
    """Return where compared values are equal; of 128-bit values both halves."""
    equal = old == compare
    return np.asarray(equal if np.ndim(equal) < 2 else equal.all(-1, keepdims=True))


_BULK: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_WHOLE = ("b32", "s32", "u32", "b64", "s64", "u64")


def in_bulk(name: str, ptx_type: str) -> np.ufunc | None:
    """Return the NumPy ufunc that performs an operation on many lanes, if order is irrelevant."""
    return _BULK.get(name) if ptx_type in _WHOLE else None


def changes(name: str, operand: Flat, before: Flat, after: Flat) -> bool:
    """Whether any of some bulk operations changed memory.

    Sums may return to the initial value; the other operations are monotonic.
    """
    return bool(operand.any() if name in ("add", "xor") else (before != after).any())


def stored_values(
    site: Site, found: Sequence[Lanes], operands: Sequence[Lanes], is_global: bool
) -> Sequence[Lanes]:
    """Return the values that lanes stored, from the old values: one array for each element."""
    arrays = np.broadcast_arrays(*found, *operands)
    count = site.count
    parts = [arrays[i : i + count] for i in range(0, len(arrays), count)]
    if count == 1:
        stacked = [part[0] for part in parts]
    else:
        stacked = [np.stack(part, -1) for part in parts]
    with np.errstate(all="ignore"):
        made = meaning(site.operation, site.type, is_global)(*stacked)
    return [made] if count == 1 else [made[..., i] for i in range(count)]


def apply(
    name: str,
    ptx_type: str,
    where: Flat,
    operands: tuple[Flat, ...],
    read: Callable[[Flat], Flat],
    write: Callable[[Flat, Flat], None],
    is_global: bool,
) -> Flat:
    """Perform one atomic instruction.

    Args:
        name: ``add`` ... ``cas``.
        ptx_type: PTX type of the element.
        where: Location of each lane, 1-D; equal for equal addresses.
        operands: One or two arrays, with a value or a row of values for each lane.
        read: Returns the values of unique locations.
        write: Stores new values at unique locations.
        is_global: Whether it is global memory, whose units round floating-point sums differently.

    Returns:
        The old value of each lane, 1-D.
    """
    places, which = np.unique(where, return_inverse=True)
    current = read(places)
    operation = meaning(name, ptx_type, is_global)
    if len(places) == len(where):
        old = current[which]
        current[which] = operation(old, *operands)
        write(places, current)
        return old
    order = np.argsort(which, kind="stable")
    sorted_which = which[order]
    starts = np.searchsorted(sorted_which, np.arange(len(places) + 1))
    rank = np.arange(len(order)) - starts[sorted_which]
    old = np.empty((len(where), *current.shape[1:]), current.dtype)
    rounds = int(rank.max()) + 1
    if rounds <= _FEW_ROUNDS:
        by_rank = np.argsort(rank, kind="stable")
        bounds = np.searchsorted(rank[by_rank], np.arange(rounds + 1))
        for i in range(rounds):
            lanes = order[by_rank[bounds[i] : bounds[i + 1]]]
            at = which[lanes]
            old[lanes] = current[at]
            current[at] = operation(current[at], *(v[lanes] for v in operands))
    else:
        for i in range(len(places)):
            lanes = order[starts[i] : starts[i + 1]]
            values = tuple(v[lanes] for v in operands)
            many = "" if ptx_type in half.HALF_TYPES else name
            previous = _chain(many, operation, current[i], values, is_global)
            old[lanes], current[i] = previous[:-1], previous[-1]
    write(places, current)
    return old


def _chain(
    name: str, operation: _Operation, start: Flat, values: tuple[Flat, ...], is_global: bool
) -> Flat:
    """Return the content of one location before each of many operations, and at the end."""
    accumulate = {
        "add": np.add, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    first = np.array([start], values[0].dtype)
    if name in accumulate:
        line = np.concatenate([first, values[0]])
        flushing = is_global and first.dtype == np.float32
        line = ieee.flush(line) if flushing else line
        chained = accumulate[name].accumulate(line, dtype=first.dtype)
        # A sum that itself has to be flushed changes those after it, and so does a NaN:
        # rare, one at a time.
        usual = not flushing or ieee.flush(chained).tobytes() == chained.tobytes()
        if usual and not np.isnan(chained[-1]).any():
            chained[0] = start
            return chained
    if name == "exch":
        return np.concatenate([first, values[0]])
    if name == "cas" and values[0].ndim == 1:
        return _swaps(first, *values)
    out = np.concatenate([first, values[0]])
    for i in range(len(values[0])):
        out[i + 1 : i + 2] = operation(out[i : i + 1], *(v[i : i + 1] for v in values))
    return out


def _swaps(first: Flat, compare: Flat, new: Flat) -> Flat:
    """Return the chain of old values of compare-and-swaps, most of which fail, as with a lock."""
    out = np.repeat(first, len(compare) + 1)
    at, many = 0, 1
    while at < len(compare):
        found = np.flatnonzero(compare[at : at + many] == out[at])
        if not found.size:
            out[at + 1 : at + many + 1] = out[at]
            at, many = at + many, 4 * many
            continue
        here = at + int(found[0])
        out[at + 1 : here + 1] = out[at]
        out[here + 1] = new[here]
        at, many = here + 1, 1
    return out
