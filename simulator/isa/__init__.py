"""The instruction table, one module a subject; importing this package fills it."""

from kernels.ptx.types import DTYPES

from . import (
    bits,
    carry,
    compare,
    control,
    convert,
    floating,
    half,
    integer,
    later,
    movement,
    moves,
    warp,
    windows,
)
from .table import TABLE, Flow, Op, Row, Unsupported, same

__all__ = [
    "DTYPES", "TABLE", "Flow", "Op", "Row", "Unsupported", "bits", "carry", "compare",
    "control", "convert", "floating", "half", "integer", "later", "movement", "moves", "same",
    "warp", "windows",
]  # fmt: skip
