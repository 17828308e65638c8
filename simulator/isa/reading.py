"""PTX texts, read as far as there are rows."""

from __future__ import annotations

from kernels.ptx import parser
from kernels.ptx.module import Module

from . import TABLE

_KNOWN = frozenset(opcode for opcode, rows in TABLE.items() if any(row.forms for row in rows))


def parse(text: str) -> Module:
    """Parse a PTX text; an opcode without a row is refused when a kernel reaches it, by its name.

    Raises:
        PtxError: Naming the PTX line.
    """
    return parser.parse(text, _KNOWN)
