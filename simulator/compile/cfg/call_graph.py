"""Recursive functions: groups of mutually recursive functions, and their frames.

Registers and local variables of a function have one place. At a recursive call the machine saves
the caller's live registers (``execute/calls/call_frames.py``), and the addresses of the group's
local variables advance by ``stride`` bytes for each open call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernels.ptx.module import Address, Function, Symbol

from ...isa import DTYPES, Flow
from ...isa.decoded import callee, roles
from ...isa.validity import not_yet
from ..ir_values import Register

_RETURN_BYTES = 8


@dataclass
class Recursion:
    """Functions that can call each other.

    Attributes:
        depth: The register that holds how many calls within the group are open.
        addresses: Of local variables, by the register that holds it.
        own: Bytes of a function's local variables.
        saved_bytes: Upper bound of the bytes of registers saved at a call.
        stride: Bytes of local memory for each open call.
        max_depth: Number of open calls that fit the stack.
    """

    names: frozenset[str]
    depth: Register
    own: int
    saved_bytes: int = 0
    addresses: dict[Register, int] = field(default_factory=dict)
    stride: int = 0
    max_depth: int = 0

    def keep(self, saves: Sequence[Register]) -> None:
        """Record the registers that a call saves."""
        self.saved_bytes = max(self.saved_bytes, sum(DTYPES[r.carrier].itemsize for r in saves))

    def settle(self, stride: int, stack: int) -> None:
        """Compute the maximum depth on a stack of ``stack`` bytes."""
        self.stride, self.max_depth = stride, stack // (self.own + self.saved_bytes + _RETURN_BYTES)


def strongly_connected_components(functions: Sequence[Function]) -> dict[str, frozenset[str]]:
    """Return for each recursive function its strongly connected component."""
    reach = _reach(functions)
    return {
        name: frozenset(other for other in reach[name] if name in reach[other])
        for name in reach if name in reach[name]
    }  # fmt: skip


def _reach(functions: Sequence[Function]) -> dict[str, set[str]]:
    """Return the transitive callees of each function."""
    reach = {f.name: {name for ins in f.body if (name := callee(ins))} for f in functions}
    size = -1
    while size != (size := sum(map(len, reach.values()))):
        for found in reach.values():
            found |= {name for other in tuple(found) for name in reach[other]}
    return reach


def check_groups(functions: Sequence[Function], found: Mapping[str, frozenset[str]]) -> None:
    """Reject functions that frames do not support.

    Raises:
        PtxError: There is one; the message names the instruction.
    """
    reach = _reach(functions) if found else {}
    inside = {name for member in found for name in reach[member]}
    for function in functions:
        if function.name in inside:
            for ins in function.body:
                if roles(ins).flow is Flow.BARRIER:
                    raise not_yet(
                        ins,
                        "a block barrier in recursion: use a loop",
                    )
        group = found.get(function.name)
        if group is None:
            continue
        own, called = {p.name for p in function.params}, False
        for ins in function.body:
            role = roles(ins)
            called |= callee(ins) in group
            if not (callee(ins) in group or role.parameter):
                continue
            if any(p.is_struct for p in (*function.params, *function.results)):
                raise not_yet(ins, "a structure passed in recursion: use its address")
            base = next((o.base for o in ins.operands if isinstance(o, Address)), None)
            if called and isinstance(base, Symbol) and base.name in own:
                raise not_yet(ins, "a parameter read after recursion: use a register")
