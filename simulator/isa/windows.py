"""Generic addresses: where the windows of the state spaces begin (PTX ISA, "cvta")."""

import functools

import numpy as np

from kernels.ptx.module import Instruction

from ..geometry import Addresses, Mask
from .table import Op, named_space, row, same

SECTION = "Data Movement and Conversion Instructions"
ARRAY_BITS = 40
"""Each global array has an address range of 2**40 bytes to itself: none runs into the next."""
MIDDLE = 1 << ARRAY_BITS - 1
"""Arrays and the windows of shared and local memory begin in the middle of their ranges: what
is less than 2**39 bytes in front of an array or behind it is nearer to it than to any other."""
WINDOWS = {
    "global": 0, "const": 0, "param": 0, "shared": (1 << 60) + MIDDLE, "local": (1 << 61) + MIDDLE,
}  # fmt: skip
"""Where each state space begins among generic addresses."""
_SPACES = "global|shared|shared::cta|local|const|param|param::entry"
_CLUSTER = "shared::cluster"  # while there are no clusters, the block's own


@row("cvta", section=SECTION, forms=f"to! {_SPACES}|{_CLUSTER} .u64 : t = t")
@row("cvta", section=SECTION, generic=True, forms=f"{_SPACES}|{_CLUSTER} .u64 : t = t&")
def convert_address(ins: Instruction) -> Op:
    """An address in a state space as a generic one, or (``.to``) back."""
    start = WINDOWS[named_space(ins)]
    move = np.int64(-start if ins.has("to") else start)
    return Op(functools.partial(np.add, move) if start else same, ("b64",), ("b64",))


@row("isspacep", section=SECTION, forms=f"{_SPACES}|{_CLUSTER} : pred = where")
def is_in_space(ins: Instruction) -> Op:
    """Whether a generic address lies in a state space."""
    return Op(functools.partial(in_window, named_space(ins)), ("b64",), ("pred",))


def in_window(space: str, address: Addresses) -> Mask:
    """Whether generic addresses lie in a state space."""
    top = address >> np.int64(60)
    if space == "shared":
        inside: Mask = top == 1
    elif space == "local":
        inside = (top == 2) | (top == 3)
    else:
        inside = top == 0
    return inside
