"""Generic addresses: where the windows of the state spaces begin (PTX ISA, "cvta")."""

import functools

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Addresses, Lanes, Mask
from ..table import Op, named_space, row, same

SECTION = "Data Movement and Conversion Instructions"
ARRAY_BITS = 36
"""Each global array has an address range of 2**36 bytes to itself: none runs into the next."""
MIDDLE = 1 << ARRAY_BITS - 1
"""Arrays and the windows of shared and local memory begin in the middle of their ranges: what
is less than 2**35 bytes in front of an array or behind it is nearer to it than to any other.
It is the largest size of an array, too."""
WINDOWS = {
    "global": 0, "const": 0, "param": 0, "shared": (1 << 60) + MIDDLE, "local": (1 << 61) + MIDDLE,
}  # fmt: skip
"""Where each state space begins among generic addresses."""
_PLAIN = "global|local|const|param|param::entry"
CLUSTER = "shared::cluster"
_SHARED = f"shared|shared::cta|{CLUSTER}"
RANK_BITS = 24
"""From this bit on, an address in the window of shared memory says whose: 0 for the block's own,
else one more than the number in the cluster of the block whose it is. Generic addresses that a
block makes of its own say so too, since others of the cluster may get them; but for those of
variables by name, which only the block itself accesses. ``own``: that, 0 where are no clusters."""
MAX_RANK = 30
"""What cannot be a block's number in its cluster; higher ones are taken for it."""
_NARROW = ".u32 : generic addresses of 32 bits: use .u64, or .shared::cluster"
_INSIDE = np.int64((1 << RANK_BITS) - 1)


@row(
    "cvta", section=SECTION, of_address="same",
    forms=f"to! {_PLAIN} .u64 : t = t\nto! {_SHARED} .u64 : t = t own",
)  # fmt: skip
@row(
    "cvta", section=SECTION, generic=True, of_address="same",
    forms=f"{_PLAIN} .u64 : t = t&\n{_SHARED} .u64 : t = t& own",
)  # fmt: skip
def convert_address(ins: Instruction) -> Op:
    """An address in a state space as a generic one, or (``.to``) back."""
    start = WINDOWS[named_space(ins)]
    if named_space(ins) == "shared":
        convert = from_generic if ins.has("to") else to_generic
        return Op(convert, ("s64", "u32"), ("s64",))
    move = np.int64(-start if ins.has("to") else start)
    return Op(functools.partial(np.add, move) if start else same, ("b64",), ("b64",))


def to_generic(address: Addresses, own: Lanes) -> Addresses:
    """Return a generic address of one in shared memory: the block's own says whose it is."""
    if own.ndim == 0:  # no clusters
        return address + np.int64(WINDOWS["shared"])
    plain = address >> np.int64(RANK_BITS) == 0
    whose: Addresses = np.where(plain, own.astype(np.int64) << np.int64(RANK_BITS), np.int64(0))
    return address + whose + np.int64(WINDOWS["shared"])


def from_generic(address: Addresses, own: Lanes) -> Addresses:
    """Return the shared-memory address of a generic one; the own block's has no rank."""
    inside = address - np.int64(WINDOWS["shared"])
    if own.ndim == 0:
        return inside
    mine = (inside >> np.int64(RANK_BITS) == own.astype(np.int64)) & in_window("shared", address)
    return inside - np.where(mine, own.astype(np.int64) << np.int64(RANK_BITS), np.int64(0))


@row(
    "isspacep", section=SECTION,
    forms=f"{_PLAIN}|{CLUSTER} : pred = where\nshared|shared::cta : pred = where own",
)  # fmt: skip
def is_in_space(ins: Instruction) -> Op:
    """Whether a generic address lies in a state space."""
    if named_space(ins) == "shared" and not ins.has(CLUSTER):
        return Op(is_own, ("b64", "u32"), ("pred",))
    return Op(functools.partial(in_window, named_space(ins)), ("b64",), ("pred",))


def is_own(address: Addresses, own: Lanes) -> Mask:
    """Whether generic addresses lie in the block's own shared memory."""
    whose = (address - np.int64(WINDOWS["shared"])) >> np.int64(RANK_BITS)
    return in_window("shared", address) & ((whose <= 0) | (whose == own.astype(np.int64)))


@row(
    "mapa", section=SECTION,
    forms=f"""
        {CLUSTER} .u32|u64 @90 : t = t& i32 own
        .u64 @90 : t = t i32 own
    """,
    later=_NARROW,
)  # fmt: skip
def map_address(ins: Instruction) -> Op:
    """The address of the same place in the shared memory of another block of the cluster."""
    type = "s32" if ins.types == ("u32",) else "s64"

    def generic(address: Addresses, rank: Lanes, own: Lanes) -> Addresses:
        start = np.int64(WINDOWS["shared"])
        return to_generic(at_rank(address - start, rank, own), own)

    return Op(at_rank if ins.has(CLUSTER) else generic, (type, "u32", "u32"), (type,))


def at_rank(address: Addresses, rank: Lanes, own: Lanes) -> Addresses:
    """Map an address to the shared memory of a block by its rank (uint32); the own is plain."""
    make = address.dtype.type
    whose = np.minimum(rank, np.uint32(MAX_RANK)) + np.uint32(1)
    mine = whose == np.maximum(own, np.uint32(1))
    other = np.where(mine, make(0), whose.astype(make) << make(RANK_BITS))
    return (address & make(_INSIDE)) + other


@row(
    "getctarank", section=SECTION,
    forms=f"""
        {CLUSTER} .u32|u64 @90 : i32 = t& own
        .u64 @90 : i32 = t own
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
        found = np.where(whose <= 0, own.astype(make), whose) - make(1)
        return np.maximum(found, make(0)).astype(np.uint32)

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
