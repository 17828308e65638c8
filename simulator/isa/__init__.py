"""The instruction table, one module a subject; importing this package fills it."""

from kernels.ptx.types import DTYPES

# isort: off
# An opcode's forms are tried in this order; what is wrong is said of the first that comes nearest.
from . import integer, products, division, carry, floating, half, special
from . import bits, compare, control, convert, later, logic, matrix, movement, moves, warp, windows

# isort: on
from .table import TABLE, Flow, Op, Row, Unsupported, same

__all__ = [
    "DTYPES", "TABLE", "Flow", "Op", "Row", "Unsupported", "bits", "carry", "compare",
    "control", "convert", "division", "floating", "half", "integer", "later", "logic", "matrix",
    "movement", "moves", "products", "same", "special", "warp", "windows",
]  # fmt: skip
