"""Generic addresses: where the windows of the state spaces begin (PTX ISA, "cvta")."""

import functools

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ..geometry import Addresses, Lanes, Mask
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
CLUSTER = "shared::cluster"
RANK_BITS = 24
"""From this bit on, an address in the window of shared memory says whose: 0 for the block's own,
else one more than the number in the cluster of the block whose it is."""
MOST_RANK = 30
"""What cannot be a block's number in its cluster; higher ones are taken for it."""
_NARROW = ".u32 : generic addresses of 32 bits"
_INSIDE = np.int64((1 << RANK_BITS) - 1)


@row("cvta", section=SECTION, forms=f"to! {_SPACES}|{CLUSTER} .u64 : t = t")
@row("cvta", section=SECTION, generic=True, forms=f"{_SPACES}|{CLUSTER} .u64 : t = t&")
def convert_address(ins: Instruction) -> Op:
    """An address in a state space as a generic one, or (``.to``) back."""
    start = WINDOWS[named_space(ins)]
    move = np.int64(-start if ins.has("to") else start)
    return Op(functools.partial(np.add, move) if start else same, ("b64",), ("b64",))


@row("isspacep", section=SECTION, forms=f"{_SPACES}|{CLUSTER} : pred = where")
def is_in_space(ins: Instruction) -> Op:
    """Whether a generic address lies in a state space."""
    if named_space(ins) == "shared" and not ins.has(CLUSTER):
        return Op(is_own, ("b64",), ("pred",))
    return Op(functools.partial(in_window, named_space(ins)), ("b64",), ("pred",))


def is_own(address: Addresses) -> Mask:
    """Whether generic addresses lie in the block's own shared memory."""
    rank = (address - np.int64(WINDOWS["shared"])) >> np.int64(RANK_BITS)
    return in_window("shared", address) & (rank <= 0)


@row(
    "mapa", section=SECTION,
    forms=f"""
        {CLUSTER} .u32|u64 @90 : t = t& i32 rank
        .u64 @90 : t = t i32 rank
    """,
    later=_NARROW,
)  # fmt: skip
def map_address(ins: Instruction) -> Op:
    """The address of the same place in the shared memory of another block of the cluster."""
    type = "s32" if ins.types == ("u32",) else "s64"
    window = 0 if ins.has(CLUSTER) else WINDOWS["shared"]

    def apply(address: Addresses, rank: Lanes, own: Lanes) -> Addresses:
        return at_rank(address, rank, own, window)

    return Op(apply, (type, "u32", "u32"), (type,))


def at_rank(address: Addresses, rank: Lanes, own: Lanes, window: int) -> Addresses:
    """The same place of a window in the shared memory of a block, by its number (uint32)."""
    make = address.dtype.type
    inside = (address - make(window)) & make(_INSIDE)
    whose = np.minimum(rank, np.uint32(MOST_RANK)).astype(make)
    other = (whose + make(1)) << make(RANK_BITS)
    return inside + np.where(rank == own, make(0), other) + make(window)


@row(
    "getctarank", section=SECTION,
    forms=f"""
        {CLUSTER} .u32|u64 @90 : b32 = t& rank
        .u64 @90 : b32 = t rank
    """,
    later=_NARROW,
)  # fmt: skip
def rank_of_address(ins: Instruction) -> Op:
    """The number in its cluster of the block in whose shared memory an address lies."""
    type = "s32" if ins.types == ("u32",) else "s64"
    make = DTYPES[type].type
    window = make(0 if ins.has(CLUSTER) else WINDOWS["shared"])

    def apply(address: Addresses, own: Lanes) -> Lanes:
        whose = (address - window) >> make(RANK_BITS)
        return np.where(whose <= 0, own, (whose - make(1)).astype(np.uint32))

    return Op(apply, (type, "u32"), ("u32",))


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
