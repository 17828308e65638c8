"""Hazard kinds: one row each, with its check, severity and messages.

Besides its row, only the file that detects a kind names it; code that lists kinds reads the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .race_cases import ANY_RACE, LOST
from .race_cases import EQUAL as EQUAL
from .race_cases import GUESS as GUESS
from .race_cases import LOOK as LOOK
from .race_cases import OVERRUN as OVERRUN
from .race_cases import REACHES as REACHES
from .race_cases import UPDATES as UPDATES
from .race_cases import HazardCase as HazardCase

KINDS: dict[str, HazardKind] = {}
"""The rows by name, in the order in which they are listed."""


@dataclass(frozen=True)
class HazardKind:
    """Descriptor of a hazard kind; construction registers it in ``KINDS``.

    Attributes:
        name: Value of ``Hazard.kind``.
        check: Name of the check that detects it; ``""``: every launch, as it cannot continue.
        severity: The default severity.
        title: Short name of the defect.
        help: How to repair it.
        message: The finding in a sentence, a format string.
        cases: Variants with messages of their own, by name.
        reads: Of a race: whether one access is a read. Kinds with a read are interchangeable: the
            program order of the two accesses selects the name.
        is_endless: Whether the launch ends before it has results.
        may_continue: Whether a launch goes on, although ``check`` is empty.
        by_address: Whether it may be identified by an address alone, without a variable.
        once: Whether all reads of a variable are one finding.
        by_instruction: Whether its space is that of the instruction, not of the address.
        of_machine_code: Whether it concerns the machine code, which only the device build has.
        causes: Whether other findings may exist only because of it (``folding.py``).
    """

    name: str
    check: str
    severity: str
    title: str
    help: str
    message: str = ""
    cases: Mapping[str, HazardCase] = field(default_factory=dict)
    reads: bool = False
    is_endless: bool = False
    may_continue: bool = False
    by_address: bool = False
    once: bool = False
    by_instruction: bool = False
    of_machine_code: bool = False
    causes: bool = False

    def __post_init__(self) -> None:
        KINDS[self.name] = self

    @property
    def is_race(self) -> bool:
        """Whether two threads race."""
        return self.check == "races" and self.name.endswith("-race")

    def case(self, name: str = "") -> HazardCase:
        """One of the cases, with what the row says for all of them."""
        case = self.cases[name] if name else HazardCase()
        message, severity = case.message or self.message, case.severity or self.severity
        return replace(case, message=message, severity=severity)


_RACE = (
    "Two threads touch the same bytes, at least one writes, and nothing orders them. Put a "
    "__syncthreads() between the two lines, or give each thread bytes of its own, or use atomics."
)

RAW_RACE = HazardKind(
    "raw-race", "races", "error", "A read races with a write before it", _RACE,
    "RAW race on {place} (read of what {who} may not have written yet)",
    ANY_RACE, reads=True,
)  # fmt: skip
WAR_RACE = HazardKind(
    "war-race", "races", "error", "A write races with a read before it", _RACE,
    "WAR race on {place} (write over what {who} may not have read yet)",
    ANY_RACE, reads=True,
)  # fmt: skip
SCRATCH = "scratch"
"""The case in which one instruction stores to the compiler's own memory."""
WAW_RACE = HazardKind(
    "waw-race", "races", "error", "Two writes race", _RACE,
    "WAW race on {place} (write over what {who} may have written)",
    ANY_RACE | {
        EQUAL: HazardCase(
            "", "warning", "every write leaves the same value", policy="equal_writes"
        ),
        "lost": HazardCase(note=LOST),
        "one instruction": HazardCase(
            note="lanes of one instruction: which of them wins is not defined"
        ),
        SCRATCH: HazardCase(
            "Triton's reduction stores a total to {place} from several threads, and theirs may "
            "differ in the last bits", "note",
            "each added up in an order of its own, and any of them may stay; this is Triton's own "
            "memory, and no edit of the Python changes it",
        ),
    },
)  # fmt: skip
LEAVES = "leaves"
"""The case in which nothing keeps a block from leaving."""
EXITED_BLOCK = HazardKind(
    "exited-block", "races", "error", "An access of a block's shared memory that may have left",
    "Shared memory is there as long as its block runs. After the last access to that of another "
    "block of the cluster, all have to meet once more: cluster.sync().",
    "{verb} in another block's shared memory, with nothing that keeps that block from leaving",
    {LEAVES: HazardCase(
        note="let the blocks meet behind the last access: cluster.sync(), which is "
        "barrier.cluster.arrive and barrier.cluster.wait"
    )},
)  # fmt: skip
_KEEPS = "{line} keeps {who} from it"
MOVE = "move the barrier out of the {word}, {line}"
TRIPS = "the trip count of the loop, {line}, must be one for all threads: {how}, and guard the body"
ROUND_UP = "round it up"
VOTE = "go on until all are done, by __syncthreads_or()"
INSTEAD = "put the work under an if instead of the continue, {line}"
EXITED = "{who} have left the kernel without it"
BARRIER_DIVERGENCE = HazardKind(
    "barrier-divergence", "barriers", "error",
    "Threads of a block do not wait at the same barrier",
    "Every thread of the block has to reach the same __syncthreads(). Move it out of code "
    "that only some threads enter.",
    cases={
        "return": HazardCase(
            "a barrier after some threads of the block have exited", "warning",
            branch="{who} leave at {line}, before it",
            advice="return after the barrier, or put the work under an if instead: {line}",
        ),
        "skip": HazardCase(
            "a barrier in divergent code: some threads skip it and leave the kernel", "warning",
            branch=_KEEPS, advice=MOVE,
        ),
        "rounds": HazardCase(
            "a barrier in divergent code, which all happen to reach", "warning", advice=MOVE
        ),
        "places": HazardCase(
            "threads of a block wait at different barriers",
            advice="one barrier for all: behind the {word}, {line}",
        ),
        "warp": HazardCase(
            "lanes of one warp reach a barrier separately",
            note="all lanes of a warp have to execute bar.sync together",
        ),
        "again": HazardCase(
            "threads arrive at their cluster's barrier twice, with no wait in between",
            note="every barrier.cluster.arrive needs a barrier.cluster.wait before the next one",
        ),
        "unarrived": HazardCase(
            "threads wait at their cluster's barrier without having arrived",
            note="every barrier.cluster.wait needs a barrier.cluster.arrive before it",
        ),
        "ways": HazardCase(
            "threads reach barrier {value} with contradictory operands",
            note="until the barrier is full, all arrivals need the same thread count (or none) and "
            "the same reduction: otherwise a GPU stops with an illegal instruction",
        ),
        "chance": HazardCase(
            "more threads arrive at barrier {value} than it counts, in no defined order",
            note="which of them meet is undefined: give each group a barrier number of its own, or "
            "put a __syncthreads() between the two uses",
        ),
        "count": HazardCase(
            "a barrier for {value:,} threads: the count has to be a multiple of 32"
        ),
        "number": HazardCase("barrier number {value:,}: a block has 16 barriers, 0 to 15"),
    },
)  # fmt: skip
_NEVER = "threads wait at a barrier that others never reach"
_WAITS = "it waits for {value} threads; there are {who}"
_FOR_EVER = HazardCase("threads loop for ever: whatever runs next, nothing changes any more")
SHORT = "short"
"""The case in which an mbarrier expects more arrivals than come."""
_SHORT = HazardCase(
    "threads wait at an mbarrier for arrivals that never come",
    note="let that many threads arrive in each phase, or initialise it with their number",
)
AWAITED = "it expects {value:,} arrivals in a phase; {come} come in this one"
STILL, BEYOND = (f", and {{value:,}} bytes of copies {how}" for how in ("are to come", "too many"))
UNDEFINED = ": more arrivals than expected, or .noComplete completing a phase, are undefined"
IN_PART = "{part:,} blocks of the grid ran together, more than a GPU holds"
DEADLOCK = HazardKind(
    "deadlock", "", "error", "Threads wait for something that never happens",
    "Some threads wait at a barrier that others never reach, or the launch was given up after "
    "its steps. Move the barrier to where all threads come, and let every thread that a count "
    "names arrive.",
    cases={
        "never": HazardCase(_NEVER, branch=_KEEPS, advice=MOVE, waits=_WAITS),
        "arrivals": HazardCase(
            _NEVER, branch=_KEEPS, advice=MOVE, waits=_WAITS,
            note="a thread that arrives continues, and may arrive again before others do",
        ),
        "cluster": HazardCase(
            "threads wait at their cluster's barrier, at which others of the cluster never arrive",
            branch=_KEEPS, advice=MOVE,
        ),
        "crossed": HazardCase("threads wait at different barriers, each for the others"),
        "orders": HazardCase(
            "threads may wait for ever at barrier {value}: in another order others fill it",
            note="every arrival counts, so that a second or late one may find the barrier "
            "released: use another barrier for each round, or a count for all threads",
        ),
        "repeats": _FOR_EVER,
        SHORT: _SHORT,
        "limit": HazardCase(
            "gave up after {value:,} steps (--step-limit), while threads still ran"
        ),
    },
    is_endless=True,
)  # fmt: skip
LIVELOCK = HazardKind(
    "livelock", "", "error", "Threads loop without end",
    "No fair schedule makes progress: they loop on a value that nobody changes. Set the value "
    "in a thread that does not wait, read it by a volatile or atomic access, and release each "
    "lock.",
    cases={"repeats": _FOR_EVER, SHORT: _SHORT}, is_endless=True,
)  # fmt: skip
OUT_OF_BOUNDS = HazardKind(
    "out-of-bounds", "memory", "error", "An access outside the array",
    "Guard the access with the array's length, or round the launch differently.",
    "{verb} out of bounds: {place} ({extent})",
    {
        "nowhere": HazardCase("{verb} outside any array, at address {place}"),
        "picture": HazardCase("{verb} out of bounds: {place}"),
    },
    by_address=True, causes=True,
)  # fmt: skip
MISALIGNED = HazardKind(
    "misaligned", "memory", "error", "A misaligned access",
    "An access of 2, 4, 8 or 16 bytes needs an address that is a multiple of its size. Pad rows to "
    "such a multiple, begin there, or access narrower elements.",
    "misaligned {verb} of {place}: not a multiple of {width} bytes",
)  # fmt: skip
READ_ONLY = HazardKind(
    "read-only", "memory", "error", "A write to read-only memory",
    "The array was passed as read-only, or lies in constant memory. Write to another array, or "
    "pass one that may be written.",
    "{verb} to read-only {place}",
)  # fmt: skip
ADDRESS_SPACE = HazardKind(
    "address-space", "memory", "error", "An access through the wrong address space",
    "A pointer of one address space was used in an instruction for another. Use generic pointers, "
    "or convert with __cvta_generic_to_shared() exactly where an instruction wants it.",
    "{verb} as {space} memory of an address that is not: {place}",
    {"picture": HazardCase("{verb} of {place}")}, by_instruction=True,
)  # fmt: skip
UNINITIALISED = HazardKind(
    "uninitialised", "uninitialised", "error", "A read of uninitialised memory",
    "Shared and local memory hold no zeros at the start. Write the element before it is used. "
    "A shuffle has a value of those lanes alone that execute it and are in its member mask.",
    "uninitialised read of {place}",
    {
        "left out": HazardCase(
            "{who} reads lane {value}, which the member mask leaves out: its value is undefined",
            note="put each source lane into the mask and let it execute this; or clamp the index",
        ),
        "absent": HazardCase(
            "{who} reads lane {value}, which does not execute this: its value is undefined",
            note="let every source lane execute this: put the shuffle before the if or the return",
        ),
        "nobody": HazardCase(
            "{who} reads lane {value}, which its warp does not have: its value is undefined",
            note="read within the lanes there are: a smaller offset or width, or whole warps",
        ),
    },
    causes=True,
)  # fmt: skip
LEFT_OUT = "left-out"
"""Case of a member mask that excludes a lane that executes the instruction."""
BAD_MASK = HazardKind(
    "bad-mask", "", "error", "A warp instruction waits for lanes that never arrive",
    "The member mask of a shuffle, vote or __syncwarp names lanes that do not execute it, or "
    "leaves out one that does. Move the instruction out of the branch and name all lanes, or name "
    "exactly those that enter: __ballot_sync() in front of the branch gives them.",
    may_continue=True,
    cases={
        "absent": HazardCase(
            "a member mask names lanes that never reach this instruction",
            note="move it out of the branch, or name only the lanes that enter",
        ),
        LEFT_OUT: HazardCase(
            "threads execute this, but their own member mask excludes them", role="left out",
            note="name every lane that executes this: 0xffffffff for whole warps",
        ),
        "warpgroup": HazardCase(
            "not all four warps of a warpgroup execute this wgmma",
            note="the four warps of each 128 threads execute a wgmma together: put it where no "
            "branch or return keeps one of them from it, in blocks of whole warpgroups",
        ),
    },
)  # fmt: skip
ASSERT = HazardKind(
    "assert", "", "error", "An assertion failed",
    "An assert() of the kernel was false for some thread. Look at that thread's values with "
    "tilescope view, and correct what breaks the condition.", "an assertion failed",
)  # fmt: skip
TRAP = HazardKind(
    "trap", "", "error", "The kernel executed a trap",
    "The kernel stopped itself, or the compiler found behaviour that C++ leaves undefined. Remove "
    "the condition that leads there.",
    "the kernel executed a trap",
    {"undefined": HazardCase("the compiler put a trap at undefined behaviour", condition="{text}"),
     "astray": HazardCase("a call through a pointer that holds no function of this program"),
     "stack": HazardCase("calls nest too deeply for a thread's stack (stack_bytes, --stack)"),
     "free": HazardCase("free() of a pointer that malloc() did not return, or that is free")},
)  # fmt: skip
TOO_MANY_RESOURCES = HazardKind(
    "too-many-resources", "", "error", "A launch that the GPU has too few resources for",
    "The driver refuses the launch: a block takes more registers or shared memory than it may. Use "
    "smaller blocks, or __launch_bounds__(), which holds the compiler to fewer registers.",
    cases={
        "registers": HazardCase(
            "{threads:,} threads of {registers} registers do not fit on {gpu}, where a block has "
            "{most:,} registers: the launch fails",
            note="at most {fit:,} threads of so many registers fit: use smaller blocks, or {how}, "
            "for which the compiler takes no more than {each} registers a thread",
        ),
        "shared memory": HazardCase(
            "{bytes:,} bytes of shared memory in a block do not fit on {gpu}, which has {most:,} "
            "for one: the launch fails",
            note="static and dynamic shared memory count together; use smaller tiles, fewer stages",
        ),
    },
    of_machine_code=True,
)  # fmt: skip
UNSET_CONSTANT = HazardKind(
    "unset-constant", "uninitialised", "warning", "A constant that nothing has filled",
    "The __constant__ variable has no initial value in the source, and the host's copy into "
    "it is not part of the launch: it reads as zeros here. Give its contents with --symbol "
    "(symbols in Python), or run the whole program with tilescope exec.",
    "read of constant {place}, which nothing has filled: zeros here", once=True,
)  # fmt: skip
ALIASED = "aliased"
"""The case in which two ``__restrict__`` pointers reach the same bytes."""
CACHE, PICTURE = "cache", "picture"
"""The cases of a load, and of a texture fetch."""
READ_ONLY_PATH = HazardKind(
    "read-only-path", "races", "error",
    "A read-only load of what the launch writes",
    "__ldg(), textures, and what the compiler makes of const __restrict__, promise that nothing "
    "writes the bytes while the kernel runs: the load may go through a cache that is not coherent "
    "within a launch, or to another place in the code. Use plain loads without __restrict__, or "
    "let the kernel write to an array of its own.",
    "Drop __ldg() or __restrict__: {place} is read through the read-only cache ({line}), and this "
    "launch writes it ({word})",
    {
        CACHE: HazardCase(
            note="the read-only path (__ldg(), const __restrict__) is not coherent within a "
            "launch: no barrier or fence helps. Load it plainly, or write to a copy"
        ),
        PICTURE: HazardCase(
            "Texture of what the launch writes: {place} is fetched ({line}) and written ({word})",
            note="textures are not coherent within a launch: no barrier or fence helps. Load it by "
            "a plain pointer, or write to a copy",
        ),
        ALIASED: HazardCase(
            "Drop __restrict__: {who} reach the same bytes, {place}, and write there",
            note="__restrict__ promises that bytes which are written are reached in one way: the "
            "compiler may reorder or drop accesses. Drop __restrict__, or pass a copy",
        ),
    },
)  # fmt: skip
BUILDS_DIFFER = HazardKind(
    "builds-differ", "", "error",
    "The two builds of a kernel leave different results",
    "The optimised and the unoptimised build of one source leave different values, which neither "
    "the order of threads nor fused multiply-adds explain: the source has a race, a wrong "
    "__restrict__, or other undefined behaviour that the optimiser relies on. Remove it: "
    "volatile, an atomic or a barrier makes both builds access memory alike.",
    "the two builds leave different results: {place} is {value}",
)  # fmt: skip
HOST_ORDER = HazardKind(
    "host-order", "", "error", "A launch does not wait for what it depends on",
    "Work in two streams touches the same bytes, at least one writes, and nothing orders the two. "
    "Let the later stream wait for an event that is recorded behind the earlier work, put both "
    "into one stream, or let the host synchronise in between.",
    "{who} {verb} {place}, which {word}: nothing orders the two",
    {"streams": HazardCase(note="let its stream wait for an event behind the earlier one, put both "
                           "into one stream, or synchronise in between"),
     "host": HazardCase(note="let the host wait first: synchronise the stream, or an event behind "
                        "it")},
)  # fmt: skip

HOST_POINTER = HazardKind(
    "host-pointer", "", "error", "A kernel is given the address of host memory",
    "A GPU cannot read memory of malloc, new or the stack. Copy it to memory of cudaMalloc, or "
    "allocate it with cudaMallocManaged or cudaMallocHost.",
    "{who}: {place} is an address of the host's own memory",
)  # fmt: skip
USE_AFTER_FREE = HazardKind(
    "use-after-free", "", "error", "Memory is used after cudaFree",
    "The allocation was given back before this use; its bytes may be another allocation's by now. "
    "Free it after the last use, and synchronise before that.",
    "{who}: {place} points into {how}",
)  # fmt: skip
BAD_COPY = HazardKind(
    "bad-copy", "", "error", "A copy does not fit its memory",
    "The copy's size, direction and addresses have to match the allocations: sizes are bytes, "
    "not elements. Give the number of elements times sizeof.",
    "{who}: {how}",
)  # fmt: skip
LAUNCH_ERROR = HazardKind(
    "launch-error", "", "error", "A launch that a GPU refuses",
    "Nothing runs, and cudaGetLastError says why: check it after each launch.",
    "{who} is refused: {how}",
)  # fmt: skip
LEAK = HazardKind(
    "leak", "", "note", "Memory is never freed",
    "The driver frees it when the program ends; a program that goes on runs out of memory. Call "
    "cudaFree() for each allocation.",
    "{value:,} bytes in {word} are never freed",
)  # fmt: skip
HOST_UNSET = HazardKind(
    "host-unset", "", "note", "The host reads uninitialised bytes",
    "Neither a copy nor a kernel has written these bytes: a smaller launch than the array, or a "
    "copy of more than was computed. Copy what was written, or write the whole array.",
    "{who}: {value:,} of {extent} bytes are uninitialised",
)  # fmt: skip

CHECKS = tuple(dict.fromkeys(row.check for row in KINDS.values() if row.check))
"""What ``checks`` of a launch may name."""
