"""Which registers only ever become addresses: arithmetic on them is no step of its own."""

from __future__ import annotations

from kernels.ptx.module import Address, Instruction, Reg
from simulator.compile.blocks import reachable
from simulator.isa.roles import reads_and_writes, row_of
from simulator.observe.trace import Trace


def address_arithmetic(trace: Trace) -> set[int]:
    """PTX lines of the instructions whose results are used as addresses alone."""
    found: set[int] = set()
    for function in reachable(trace.program.module, trace.kernel.entry):
        values: list[tuple[Instruction, list[str], list[str]]] = []
        plain: set[str] = set()
        bases: set[str] = set()
        for ins in function.body:
            reads, writes = reads_and_writes(ins)
            kind = row_of(ins).kind
            if kind in ("load", "store", "atomic"):
                held = {
                    o.base.name
                    for o in ins.operands
                    if isinstance(o, Address) and isinstance(o.base, Reg)
                }
                bases |= held
                plain |= set(reads) - held
            elif writes and kind not in ("branch", "barrier", "exit", "call"):
                values.append((ins, reads, writes))
            else:
                plain |= set(reads)
        _spread(values, plain)
        for ins, _, writes in values:
            if not plain & set(writes) and _leads(writes, bases, values):
                found.add(ins.line)
    return found


def _spread(values: list[tuple[Instruction, list[str], list[str]]], plain: set[str]) -> None:
    """What a value is computed from is a value."""
    size = -1
    while size != len(plain):
        size = len(plain)
        for _, reads, writes in values:
            if plain & set(writes):
                plain |= set(reads)


def _leads(
    writes: list[str], bases: set[str], values: list[tuple[Instruction, list[str], list[str]]]
) -> bool:
    """Whether an address comes of it in the end; otherwise nothing does."""
    reached = set(writes)
    size = -1
    while size != len(reached):
        size = len(reached)
        for _, reads, further in values:
            if reached & set(reads):
                reached |= set(further)
    return bool(reached & bases)
