"""Instructions that look across the lanes of a warp, which the runtime executes."""

from __future__ import annotations

from typing import NamedTuple

from kernels.ptx.module import Instruction

from .table import only

_SHUFFLES = ("up", "down", "bfly", "idx")
_VOTES = ("all", "any", "uni", "ballot")


class AcrossLanes(NamedTuple):
    """A function of ``runtime/across_lanes.py``, and its mode."""

    function: str
    mode: int


def across_lanes(ins: Instruction) -> AcrossLanes | None:
    """Return what executes an instruction for all lanes; ``None``: nothing does natively."""
    for opcode, function, modes in (("shfl", "shuffle", _SHUFFLES), ("vote", "vote", _VOTES)):
        if ins.opcode == opcode and only(ins, modes, ("sync", "b32", "pred")):
            mode = next(i for i, word in enumerate(modes) if word in ins.modifiers)
            return AcrossLanes(function, mode)
    return None
