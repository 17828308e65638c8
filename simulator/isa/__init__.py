"""The instruction table, one module a family; importing this package fills it."""

from kernels.ptx.types import DTYPES

from . import bits, compare, control, convert, floating, half, integer, later, movement, warp
from .integer import carry_op
from .table import TABLE, Op, Row, Unsupported

__all__ = [
    "DTYPES", "TABLE", "Op", "Row", "Unsupported", "bits", "carry_op", "compare", "control",
    "convert", "floating", "half", "integer", "later", "movement", "warp",
]  # fmt: skip
