"""Atomics natively: which there are, and for which the order of warps matters."""

from __future__ import annotations

from ..compile.program import Program
from ..memory.site import Site
from .runtime.atomic_order import ORDER_WORDS
from .runtime.atomics import ADD_F32, ADD_F64, NAMES

_WHOLE = ("b32", "s32", "u32", "b64", "s64", "u64")
_FLOAT_SUMS = {"f32": ADD_F32, "f64": ADD_F64}
_COMMUTATIVE = ("add", "min", "max", "and", "or", "xor")
_CLASSES = [
    (name, size, signed) for name in _COMMUTATIVE for size in (4, 8) for signed in (False, True)
]


def operation_number(site: Site) -> int | None:
    """Return the number of an atomic's operation; ``None``: it is not native."""
    if site.count != 1:
        return None
    if site.type in _WHOLE:
        return NAMES.index(site.operation) if site.operation in NAMES else None
    return _FLOAT_SUMS.get(site.type) if site.operation == "add" else None


def order_class(site: Site) -> int:
    """Return a number that atomics share if no order of them gives another result; 0: none does.

    Their old values are not read, and their operations commute.
    """
    if site.returns or site.type not in _WHOLE or site.operation not in _COMMUTATIVE:
        return 0
    signed = site.operation in ("min", "max") and site.type[0] == "s"
    return 1 + _CLASSES.index((site.operation, site.size, signed))


def orders_matter(program: Program) -> bool:
    """Return whether results may depend on the order of a program's atomics."""
    classes = {order_class(site) for site in program.sites if site.access == "atomic"}
    return 0 in classes or len(classes) > 1


def order_words(nbytes: int) -> int:
    """Return the words of the records of atomics (``runtime/atomic_order.py``) of a memory."""
    return (-(-nbytes // 4) + 1) * ORDER_WORDS
