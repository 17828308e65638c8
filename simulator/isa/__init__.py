"""The instruction table, one module a subject; importing this package fills it."""

from kernels.ptx import parser
from kernels.ptx.module import Module
from kernels.ptx.types import DTYPES

# isort: off
# An opcode's forms are tried in this order; what is wrong is said of the first that comes nearest.
from . import integer, products, carry, floating, half, special, asynchronous, bulk
from . import bits, compare, control, convert, later, logic, matrix, mbarrier
from . import movement, moves, small, stack, stochastic, tensor, texture, sparse, video, warp
from . import wgmma, windows, wmma

# isort: on
from .table import TABLE, Flow, InstructionSpec, Op, Unsupported, same

__all__ = [
    "DTYPES",
    "TABLE",
    "Flow",
    "InstructionSpec",
    "Op",
    "Unsupported",
    "asynchronous",
    "bits",
    "bulk",
    "carry",
    "compare",
    "control",
    "convert",
    "floating",
    "half",
    "integer",
    "later",
    "logic",
    "matrix",
    "mbarrier",
    "movement",
    "moves",
    "parse",
    "products",
    "same",
    "small",
    "sparse",
    "special",
    "stack",
    "stochastic",
    "tensor",
    "texture",
    "video",
    "warp",
    "wgmma",
    "windows",
    "wmma",
]  # fmt: skip

_KNOWN = frozenset(opcode for opcode, rows in TABLE.items() if any(row.forms for row in rows))


def parse(text: str) -> Module:
    """Parse a PTX text; an opcode without a row is refused when a kernel reaches it, by its name.

    Raises:
        PtxError: Naming the PTX line.
    """
    return parser.parse(text, _KNOWN)
