"""``mbarrier``: barriers that are objects in shared memory, with phases.

(PTX ISA, "mbarrier": contents of the object, phases, expect-tx, complete-tx and arrive-on.) The
object is opaque to programs; here its 64 bits are, from the lowest: the arrivals still pending
(20), the arrivals of a phase (20), the bytes still to come (22, with a sign), and the phase's
parity (1). A phase ends when neither arrivals nor bytes are to come.
"""

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes, Mask
from ..table import Op, register_effect_only, row
from .load_store import PARALLEL

MAX_ARRIVALS = (1 << 20) - 1
"""Of a phase (PTX ISA, "Count argument of mbarrier object")."""
_ARRIVALS, _BYTES = np.int64(MAX_ARRIVALS), np.int64((1 << 22) - 1)
_NONE: Lanes = np.array(0)
_EACH, _SUM, PARITY = np.int64(20), np.int64(40), np.int64(62)


def initial(count: Lanes) -> Lanes:
    """Return the object at its start, for so many arrivals a phase (uint32); int64."""
    wanted = count.astype(np.int64) & _ARRIVALS
    return wanted | wanted << _EACH


def arrived(
    old: Lanes, count: Lanes, expected: Lanes, come: Lanes, dropped: Lanes, locked: Lanes = _NONE
) -> Lanes:
    """Return the state of an ``mbarrier`` after an arrival, int64.

    Args:
        old: State before the arrival, int64.
        count: Arrivals that this operation makes, int64.
        expected: Transaction bytes added by ``expect_tx``.
        come: Transaction bytes that have completed.
        dropped: Arrivals by which ``arrive_drop`` lowers the expected count of later phases.
        locked: Non-zero where the operation must not complete the phase (``.noComplete``). PTX
            leaves a completing one undefined; here such a phase never completes.
    """
    pending = (old - count) & _ARRIVALS
    wanted = ((old >> _EACH) - dropped) & _ARRIVALS
    to_come = ((old >> _SUM) + expected - come) & _BYTES
    completes = (pending == 0) & (to_come == 0) & (locked == 0)
    parity = (old >> PARITY & 1) ^ completes
    return (
        np.where(completes, wanted, pending) | wanted << _EACH | to_come << _SUM | parity << PARITY
    )


def to_come(state: int) -> tuple[int, int, int]:
    """Return a phase's arrivals, and its pending arrivals and bytes, from a state.

    Pending numbers are negative if there were too many.
    """
    wanted, pending = state >> int(_EACH) & MAX_ARRIVALS, state & MAX_ARRIVALS
    come = state >> int(_SUM) & int(_BYTES)
    signed = come - (int(_BYTES) + 1 if come > int(_BYTES) >> 1 else 0)
    return wanted, pending - (MAX_ARRIVALS + 1 if pending > wanted else 0), signed


_AT = "shared|shared::cta?"
_RELEASE, _ACQUIRE = "release|relaxed cta|cluster", "acquire|relaxed cta|cluster"
_FAR = "shared::cluster"


def _arrivals(opcode_: str) -> str:
    """Return the forms of ``arrive`` and ``arrive_drop``."""
    ways = "\n".join(
        f"""
        {opcode_}! {order} {_AT} .b64 : u64* = @
        {opcode_}! {order} {_AT} .b64 : u64* = @ arrivals
        {opcode_}! expect_tx! {order} {_AT} .b64 : u64* = @ i32
        """
        for order in ("", _RELEASE)
    )
    ways += "".join(
        f"""
        {opcode_}! {order} {_FAR} .b64 @90 : _ = @
        {opcode_}! {order} {_FAR} .b64 @90 : _ = @ arrivals
        {opcode_}! expect_tx! {order} {_FAR} .b64 @90 : _ = @ i32
        """
        for order in ("", _RELEASE)
    )
    return f"""{ways}
        {opcode_}! noComplete {_AT} .b64 : u64* = @ arrivals
        {opcode_}! noComplete release cta {_AT} .b64 : u64* = @ arrivals
    """


def _counted(opcode_: str) -> str:
    return "\n".join(
        f"{opcode_}! {order} shared|shared::cta|{_FAR}? .b64 : = @ i32"
        for order in ("", "relaxed cta|cluster")
    )


@row(
    "mbarrier",
    section=PARALLEL,
    memory="store",
    phase="init",
    forms=f"init! {_AT} .b64 : = @ i32",
)
def init(ins: Instruction) -> Op:
    """Build ``mbarrier.init``."""
    return Op(initial, ("u32",), ("b64",))


register_effect_only(
    "mbarrier", section=PARALLEL, memory="store", phase="end", forms=f"inval! {_AT} .b64 : = @"
)
register_effect_only(
    "mbarrier", section=PARALLEL, memory="atomic", phase="arrive",
    forms=_arrivals("arrive"),
)  # fmt: skip
register_effect_only(
    "mbarrier", section=PARALLEL, memory="atomic", phase="drop",
    forms=_arrivals("arrive_drop"),
)  # fmt: skip
register_effect_only(
    "mbarrier", section=PARALLEL, memory="atomic", phase="expect",
    forms=_counted("expect_tx"),
)  # fmt: skip
register_effect_only(
    "mbarrier", section=PARALLEL, memory="atomic", phase="complete",
    forms=_counted("complete_tx"),
)  # fmt: skip


@row("mbarrier", section=PARALLEL, forms="pending_count! .b64 : i32 = u64")
def count_pending(ins: Instruction) -> Op:
    """Build ``mbarrier.pending_count``."""

    def pending(state: Lanes) -> Lanes:
        return (state & _ARRIVALS).astype(np.uint32)

    return Op(pending, ("b64",), ("u32",))


@row(
    "mbarrier", section=PARALLEL, memory="load", phase="wait",
    forms="\n".join(
        f"""
        test_wait! {order} {_AT} .b64 : pred = @ u64
        try_wait! {order} {_AT} .b64 : pred = @ u64
        try_wait! {order} {_AT} .b64 : pred = @ u64 i32
        test_wait! parity! {order} {_AT} .b64 : pred = @ parity
        try_wait! parity! {order} {_AT} .b64 : pred = @ parity
        try_wait! parity! {order} {_AT} .b64 : pred = @ parity i32
        """
        for order in ("", _ACQUIRE)
    ),
)  # fmt: skip
def wait(ins: Instruction) -> Op:
    """Whether a phase is over: the one in which the object was what it was, or one of a parity."""

    def since(state: Lanes, before: Lanes) -> Mask:
        ended: Mask = (state ^ before) >> PARITY & 1 != 0
        return ended

    def of_parity(state: Lanes, parity: Lanes) -> Mask:
        ended: Mask = (state >> PARITY ^ parity.astype(np.int64)) & 1 != 0
        return ended

    if ins.has("parity"):
        return Op(of_parity, ("b64", "u32"), ("pred",))
    return Op(since, ("b64", "b64"), ("pred",))
