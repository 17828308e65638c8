"""Opcodes whose meaning is a place: control flow and barriers.

What they do stands in ``execute``; the rows here say how they are written, where lanes go and
for whom they wait.
"""

from ..table import Flow, Waits, register_effect_only

CONTROL = "Control Flow Instructions"
MISCELLANEOUS = "Miscellaneous Instructions"
PARALLEL = "Parallel Synchronization and Communication Instructions"
ASTRAY = "%astray"
"""Called where a pointer holds no function: a name that PTX cannot have."""
SYSTEM = {
    "__assertfail": Flow.ASSERT, ASTRAY: Flow.ASSERT, "vprintf": Flow.SYSTEM,
    "malloc": Flow.SYSTEM, "free": Flow.SYSTEM,
}  # fmt: skip
"""Functions of the system that PTX calls without a body; the machine plays them."""
SIGNATURES = {
    "__assertfail": ((), (8, 8, 4, 8, 8)), "vprintf": ((4,), (8, 8)), "malloc": ((8,), (8,)),
    "free": ((), (8,)),
}  # fmt: skip
"""Bytes of what each gives and takes, all whole numbers (CUDA's "PTX Writer's Guide to
Interoperability", System Calls)."""

register_effect_only("bra", section=CONTROL, flow=Flow.BRANCH, forms="uni? : = label")
register_effect_only("brx", section=CONTROL, flow=Flow.SWITCH, forms="idx! uni? : = i32 label")
register_effect_only("call", section=CONTROL, flow=Flow.CALL, forms="uni? :")
register_effect_only("ret", section=CONTROL, flow=Flow.RETURN, forms="uni? :")
register_effect_only("exit", section=CONTROL, flow=Flow.EXIT, forms=" :")
register_effect_only("trap", section=MISCELLANEOUS, flow=Flow.TRAP, forms=" :")
register_effect_only("brkpt", section=MISCELLANEOUS, forms=" :")
register_effect_only("nanosleep", section=MISCELLANEOUS, forms=".u32 : = i32")
register_effect_only("pmevent", section=MISCELLANEOUS, forms=": = event\nmask : = d16")
register_effect_only(
    "setmaxnreg", section=MISCELLANEOUS, forms="inc|dec! sync aligned .u32|s32 @a : = registers"
)
register_effect_only("griddepcontrol", section=PARALLEL, forms="launch_dependents|wait :")
register_effect_only("membar", section=PARALLEL, fence=True, forms="cta|gl|sys :")
register_effect_only("membar", section=PARALLEL, forms="proxy! alias :")
register_effect_only(
    "fence", section=PARALLEL, fence=True,
    forms="""
        sc|acq_rel|acquire|release? cta|cluster|gpu|sys :
        mbarrier_init! release cluster @90 :
        proxy! async :
        proxy! async shared::cta|shared::cluster :
    """,
    later="""
        acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster cluster : \
            order of shared memory alone: use fence.acq_rel.cluster
        proxy! async::generic acquire|release \
            sync_restrict::shared::cta|sync_restrict::shared::cluster cluster : \
            order of shared memory alone: use fence.proxy.async, and fence.acq_rel.cluster
        proxy! async sync_restrict::shared::cta|sync_restrict::shared::cluster : \
            order of shared memory alone: use fence.proxy.async
        proxy! tensormap::generic acquire|release cta|cluster|gpu|sys : \
            tensor maps that a kernel changes: make one for each array
    """,
)  # fmt: skip
register_effect_only(
    "fence", section=PARALLEL,
    forms="""
        proxy! alias :
        proxy! async global :
    """,
)  # fmt: skip

_SYNC = """
    {0} sync {1} : = bar
    {0} sync {1} : = bar threads
"""
_ARRIVE = "{0} arrive! {1} : = bar threads"
_REDUCE = """
    {0} red! {1} popc .u32 : t = bar pred
    {0} red! {1} popc .u32 : t = bar threads pred
    {0} red! {1} and|or .pred : t = bar pred
    {0} red! {1} and|or .pred : t = bar threads pred
"""
_WAITS: dict[str, Waits] = {_SYNC: "block", _ARRIVE: "nobody", _REDUCE: "block"}
for _opcode, _aligned in (("bar", ""), ("barrier", "aligned?")):
    for _forms, _waits in _WAITS.items():
        register_effect_only(
            _opcode, section=PARALLEL, flow=Flow.BARRIER, waits=_waits, aligned=_opcode == "bar",
            forms="\n".join(_forms.format(level, _aligned) for level in ("", "cta!")),
        )  # fmt: skip
register_effect_only("bar", section=PARALLEL, waits="lanes", forms="warp! sync! : = members")
register_effect_only(
    "barrier", section=PARALLEL, flow=Flow.BARRIER,
    forms="cluster! arrive! release|relaxed? aligned? @90 :",
)  # fmt: skip
register_effect_only(
    "barrier", section=PARALLEL, flow=Flow.BARRIER, waits="cluster",
    forms="cluster! wait! acquire? aligned? @90 :",
)  # fmt: skip
