"""Opcodes whose meaning is a place: control flow, barriers, memory.

What they do stands in ``machine`` (control, barriers) and ``memory`` (accesses);
the rows here say that they exist and of which kind they are.
"""

from __future__ import annotations

from .table import plain

plain("bra", "brx", section="Control Flow Instructions", kind="branch")
plain("call", section="Control Flow Instructions", kind="call")
plain("ret", "exit", section="Control Flow Instructions", kind="exit")
plain("trap", section="Miscellaneous Instructions", kind="trap")
plain(
    "brkpt",
    "nanosleep",
    "pmevent",
    "setmaxnreg",
    section="Miscellaneous Instructions",
    kind="nothing",
)
plain(
    "membar", "fence",
    section="Parallel Synchronization and Communication Instructions", kind="nothing",
)  # fmt: skip
plain(
    "bar",
    "barrier",
    section="Parallel Synchronization and Communication Instructions",
    kind="barrier",
)
plain("ld", "ldu", section="Data Movement and Conversion Instructions", kind="load")
plain("st", section="Data Movement and Conversion Instructions", kind="store")
plain(
    "atom", "red",
    section="Parallel Synchronization and Communication Instructions", kind="atomic",
)  # fmt: skip
plain("cvta", "isspacep", section="Data Movement and Conversion Instructions", kind="address")
plain(
    "prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol",
    section="Data Movement and Conversion Instructions", kind="nothing",
)  # fmt: skip
