"""What the operands of an instruction are to it: read, written, addresses."""

from __future__ import annotations

from kernels.ptx.module import Address, Instruction, Operand, Pair, Reg, Symbol, Vector

from .table import TABLE, Row
from .validity import not_yet

CARRY = "%CC"
"""The condition-code register of extended-precision arithmetic."""
INTRINSIC_CALLS = frozenset({"__assertfail", "vprintf"})
"""System functions that PTX calls without a body; the machine plays them."""


def row_of(ins: Instruction) -> Row:
    """The instruction's row.

    Raises:
        PtxError: There is none; names opcode, PTX line and CUDA line.
    """
    found = TABLE.get(ins.opcode)
    if found is None:
        raise not_yet(ins, "")
    return found


def is_warp_barrier(ins: Instruction) -> bool:
    """``bar.warp.sync``: waits for lanes of the warp, not for the block."""
    return ins.opcode in ("bar", "barrier") and ins.has("warp")


def _registers(operand: Operand | None) -> list[str]:
    if isinstance(operand, Reg):
        return [operand.name]
    if isinstance(operand, Vector):
        return [name for item in operand.items for name in _registers(item)]
    if isinstance(operand, Pair):
        return _registers(operand.first) + _registers(operand.second)
    if isinstance(operand, Address) and isinstance(operand.base, Reg):
        return [operand.base.name]
    return []


def param_name(ins: Instruction) -> str | None:
    """The ``.param`` variable that a ``ld.param``/``st.param`` names directly."""
    if ins.opcode in ("ld", "st") and ins.has("param"):
        place = 1 if ins.opcode == "ld" else 0
        address = ins.operands[place] if len(ins.operands) > place else None
        if isinstance(address, Address) and isinstance(address.base, Symbol):
            return address.base.name
    return None


def reads_and_writes(ins: Instruction) -> tuple[list[str], list[str]]:
    """Registers that an instruction reads and writes (carry flag and parameters included)."""
    kind = row_of(ins).kind
    reads: list[str] = []
    writes: list[str] = []
    if ins.guard:
        reads.append(ins.guard.name)
    if ins.opcode == "call":
        reads += [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
        writes += ins.results
        return reads, writes
    operands = list(ins.operands)
    named = param_name(ins)
    if kind == "store":
        reads += [n for operand in operands for n in _registers(operand)]
        if named:
            writes.append(named)
        return reads, writes
    if kind in ("branch", "exit", "trap", "barrier", "nothing") or ins.opcode == "red":
        if ins.opcode in ("bar", "barrier") and ins.has("red"):
            writes += _registers(operands.pop(0))
        reads += [n for operand in operands for n in _registers(operand)]
        return reads, writes
    writes += _registers(operands[0]) if operands else []
    reads += [n for operand in operands[1:] for n in _registers(operand)]
    if named:
        reads.append(named)
    if ins.opcode in ("addc", "subc", "madc"):
        reads.append(CARRY)
    if ins.has("cc"):
        writes.append(CARRY)
    return reads, writes
