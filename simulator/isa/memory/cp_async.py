"""Copies that go on beside the thread: ``cp.async`` and its groups.

What they do stands in ``compile/lower/accesses.py`` and ``memory``; when they are done, in
``races/in_flight/async_copies.py``.
"""

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes, Mask
from ..table import Op, register_effect_only
from .load_store import MOVEMENT

_WAYS = ("= @ @ {}", "= @ @ {} read", "= @ @ {} pred!")
_TO_SHARED = "async! {} .shared|shared::cta .global L2::64B|L2::128B|L2::256B?"


def _copies() -> str:
    """Return the forms: each size, for each cache operator, with and without a hint."""
    lines = []
    for cache, size in (("ca", "copied"), ("cg", "16")):
        modifiers = _TO_SHARED.format(cache)
        for way in (way.format(size) for way in _WAYS):
            lines += [f"{modifiers} : {way}", f"{modifiers} L2::cache_hint : {way} policy"]
    return "\n".join(lines)


def length(ins: Instruction, size: int, ignoring: bool) -> Op:
    """Return the number of bytes copied from the source; the others are zero."""

    def ignored(ignore: Mask) -> Lanes:
        return np.where(ignore, np.uint32(0), np.uint32(size))

    def given(length: Lanes) -> Lanes:
        return np.minimum(length, np.uint32(size))

    return Op(ignored if ignoring else given, ("pred" if ignoring else "u32",), ("u32",))


register_effect_only("cp", section=MOVEMENT, memory="copy", asynchronous="copy", forms=_copies())
register_effect_only("cp", section=MOVEMENT, asynchronous="commit", forms="async! commit_group! :")
register_effect_only(
    "cp", section=MOVEMENT, memory="atomic", asynchronous="arrive",
    forms="async! mbarrier! arrive! noinc? shared|shared::cta? .b64 : = @",
)  # fmt: skip
register_effect_only(
    "cp", section=MOVEMENT, asynchronous="wait",
    forms="""
        async! wait_group! : = imm
        async! wait_all! :
    """,
)  # fmt: skip
