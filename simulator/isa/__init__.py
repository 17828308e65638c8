"""The instruction table, one module a subject; importing this package fills it."""

from kernels.ptx import parser
from kernels.ptx.module import Module
from kernels.ptx.types import DTYPES

# isort: off
# An opcode's forms are tried in this order; what is wrong is said of the first that comes nearest.
from .scalar import integer, multiply, carry, floating, half, special  # noqa: F401
from .memory import cp_async, cp_async_bulk  # noqa: F401
from .scalar import bits, compare, convert, logic  # noqa: F401
from .control import control_flow  # noqa: F401
from . import unsupported  # noqa: F401
from .matrix import matrix  # noqa: F401
from .memory import mbarrier  # noqa: F401
from .memory import load_store, stack, images  # noqa: F401
from .scalar import mov_prmt, fp8, stochastic, video  # noqa: F401
from .matrix import mma, mma_sparse  # noqa: F401
from .control import warp_sync  # noqa: F401
from .matrix import wgmma, wmma  # noqa: F401
from .memory import address_windows  # noqa: F401

# isort: on
from .table import TABLE, Flow, InstructionSpec, Op, Unsupported, same

__all__ = ["DTYPES", "TABLE", "Flow", "InstructionSpec", "Op", "Unsupported", "parse", "same"]

_KNOWN = frozenset(opcode for opcode, rows in TABLE.items() if any(row.signatures for row in rows))


def parse(text: str) -> Module:
    """Parse a PTX text; an opcode without a row is refused when a kernel reaches it, by its name.

    Raises:
        PtxError: Naming the PTX line.
    """
    return parser.parse(text, _KNOWN)
