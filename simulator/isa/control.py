"""Opcodes whose meaning is a place: control flow and barriers.

What they do stands in ``machine``; the rows here say that they exist, of which kind they
are and how they are written.
"""

from __future__ import annotations

from .table import plain

CONTROL = "Control Flow Instructions"
MISCELLANEOUS = "Miscellaneous Instructions"
PARALLEL = "Parallel Synchronization and Communication Instructions"

plain("bra", section=CONTROL, kind="branch", forms="uni? : = label")
plain("brx", section=CONTROL, kind="branch", forms="idx! uni? : = i32 label")
plain("call", section=CONTROL, kind="call", forms="uni? :")
plain("ret", section=CONTROL, kind="exit", forms="uni? :")
plain("exit", section=CONTROL, kind="exit", forms=" :")
plain("trap", section=MISCELLANEOUS, kind="trap", forms=" :")
plain("brkpt", section=MISCELLANEOUS, kind="nothing", forms=" :")
plain("nanosleep", section=MISCELLANEOUS, kind="nothing", forms=".u32 : = i32")
plain(
    "pmevent",
    section=MISCELLANEOUS,
    kind="nothing",
    forms="""
        : = event
        mask : = d16
    """,
)
plain(
    "setmaxnreg",
    section=MISCELLANEOUS,
    kind="nothing",
    forms="inc|dec! sync aligned .u32|s32 @a : = registers",
)
plain("griddepcontrol", section=PARALLEL, kind="nothing", forms="launch_dependents|wait :")
plain(
    "membar", section=PARALLEL, kind="nothing",
    forms="""
        cta|gl|sys :
        proxy! alias :
    """,
)  # fmt: skip
plain(
    "fence", section=PARALLEL, kind="nothing",
    forms="""
        sc|acq_rel|acquire|release? cta|cluster|gpu|sys :
        proxy! alias|async :
        proxy! async global|shared::cta :
    """,
    later="""
        mbarrier_init release cluster : mbarrier
        acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster cluster : clusters
        proxy! async::generic acquire|release \
            sync_restrict::shared::cta|sync_restrict::shared::cluster cluster : clusters
        proxy! async shared::cluster : clusters
        proxy! async sync_restrict::shared::cta|sync_restrict::shared::cluster : clusters
        proxy! tensormap::generic acquire|release cta|cluster|gpu|sys : tensor maps
    """,
)  # fmt: skip

_BLOCK = """
    cta! sync {0} : = bar
    cta! sync {0} : = bar threads
    cta! arrive! {0} : = bar threads
    cta! red! {0} popc .u32 : t = bar pred
    cta! red! {0} popc .u32 : t = bar threads pred
    cta! red! {0} and|or .pred : t = bar pred
    cta! red! {0} and|or .pred : t = bar threads pred
"""
plain(
    "bar", section=PARALLEL, kind="barrier",
    forms=_BLOCK.format("").replace("cta! ", "") + _BLOCK.format("") + "warp! sync! : = i32",
)  # fmt: skip
plain(
    "barrier", section=PARALLEL, kind="barrier",
    forms=_BLOCK.format("aligned?").replace("cta! ", "") + _BLOCK.format("aligned?"),
    later="""
        cluster! arrive! release|relaxed? aligned? : clusters
        cluster! wait! acquire? aligned? : clusters
    """,
)  # fmt: skip
