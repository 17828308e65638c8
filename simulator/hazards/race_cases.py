"""Cases of races: name, severity and message of each."""

from __future__ import annotations

from dataclasses import dataclass

from .relaxed_reads import BEHIND_RELAXED


@dataclass(frozen=True)
class HazardCase:
    """One case of a hazard kind; texts are format strings.

    Attributes:
        message: The finding in a sentence; if empty, the row's.
        severity: ``error``, ``warning`` or ``note``; if empty, the row's.
        note: An additional line.
        branch: What a branch does that controls a barrier.
        advice: How to repair that.
        waits: Which threads a barrier with a thread count waits for.
        condition: Wording for the condition of an assertion.
        role: Role of the instruction at which it occurs.
        policy: Option of ``tilescope``'s policy that sets the severity, if it is disputed.
    """

    message: str = ""
    severity: str = ""
    note: str = ""
    branch: str = "{line} sends {who} another way"
    advice: str = ""
    waits: str = ""
    condition: str = "the condition is {text}"
    role: str = "at"
    policy: str = ""


TOO_FEW = "it waits, but with {left} for {needed}: "
WAITS = {
    "copy": "cp.async.wait_group {needed}, __pipeline_wait_prior({needed})",
    "product": "wgmma.wait_group {needed}",
    "bulk": "cp.async.bulk.wait_group.read {needed}",
    "sent": "cp.async.bulk.wait_group {needed}",
}
"""What to wait with, by the case, where a wait leaves too many groups under way."""
REACHES = {
    "copy": "an asynchronous copy that is under way",
    **dict.fromkeys(("product", "registers"), "a wgmma that is under way"),
    **dict.fromkeys(("bulk", "transaction", "sent"), "a copy in bulk that is under way"),
    "proxy": "a thread, with no fence.proxy.async since,",
    "ungrouped": "a wgmma that is in no group",
    "unfenced": "the thread, with no wgmma.fence since,",
    "lane": "another lane of the warp",
    "warp": "another warp",
    "block": "another block",
}
"""Between whom a race is: how far its two threads are apart."""

_VOLATILE = "volatile neither makes an update atomic nor orders it: use atomics and fences"
_FLAG = "a __threadfence_block() before a lane sets a flag, and behind where another waits for it"
_CHECKED = "a compare-and-swap checks what was read; tell the compiler by an atomic load"
_LANES = "lanes of a warp need __syncwarp() between them"
LOST = "an update is lost: both read the old value, and each writes what it made of it"
_UPDATE = "an update takes several steps: another thread's may come between its read and write"
EQUAL = "equal"
"""The case in which every write of a race leaves the same value."""
LOOK = "look"
"""The case in which a location is looked at and then written, in two steps."""
UPDATES = ("lost", "update", "update in step", LOOK)
"""The cases in which an update that is no single operation races with itself."""
OVERRUN = "overrun"
"""The case in which one of the accesses of a race is out of bounds of its own array."""
GUESS = "guess"
"""The case in which a read is the first guess of a loop that swaps if it was right."""
ANY_RACE = {
    "blocks": HazardCase(
        note="no __syncthreads() alone orders blocks: use atomics, two launches or a grid.sync(); "
        "an atomic or a flag that hands on needs a __threadfence() before it, and one behind "
        "where it is read; and a __syncthreads() at either, if other threads write or read the rest"
    ),
    "far": HazardCase(
        note="only what the blocks of a cluster share orders them: put a cluster.sync() "
        "(barrier.cluster.arrive, barrier.cluster.wait) between the two"
    ),
    **{case: HazardCase("", *said) for case, said in BEHIND_RELAXED.items()},
    "scope": HazardCase(
        note="an atomic of block scope (_block, .cta) is not atomic to other blocks"
    ),
    "steps": HazardCase(
        note="of this atomic ptxas makes a load and a store where it is another block's shared "
        "memory: updates are lost on an H100 and H200; use a 32-bit one, or add, exch or cas"
    ),
    OVERRUN: HazardCase(
        note="one of the two is out of bounds of its own array, and lands in this one"
    ),
    "freed": HazardCase(note="free() takes the memory from all: what uses it has to be done"),
    "size": HazardCase(note="strong accesses of different sizes are not atomic to each other"),
    "volatile": HazardCase(note=_VOLATILE),
    "polled": HazardCase("", "warning", _VOLATILE),
    "volatile lanes": HazardCase("", "warning", f"{_LANES}: volatile orders nothing"),
    "copy": HazardCase(
        note="wait for the copy first: cp.async.wait_group 0, __pipeline_wait_prior(0); then a "
        "__syncthreads() where other threads read it"
    ),
    "product": HazardCase(
        note="wgmma.wait_group 0 first; then a barrier where other warps write there"
    ),
    "bulk": HazardCase(
        note="wait for the copy first: cp.async.bulk.wait_group.read 0; then a barrier where other "
        "threads write there"
    ),
    "sent": HazardCase(
        note="wait until it is written: cp.async.bulk.wait_group 0, without .read, which waits for "
        "what the copy reads alone; then a barrier where other threads touch it"
    ),
    "transaction": HazardCase(
        note="wait first until the phase of its mbarrier is over, for the right parity"
    ),
    "proxy": HazardCase(
        note="copies in bulk and wgmma read another way than threads write: put a "
        "fence.proxy.async (fence_proxy_async()) behind the write, before the barrier"
    ),
    "registers": HazardCase(
        note="wait for it first: wgmma.wait_group, for so few groups that its own is done"
    ),
    "ungrouped": HazardCase(
        note="a wait is for groups: put a wgmma.commit_group behind the wgmma, and a "
        "wgmma.wait_group 0 in front of what touches its registers"
    ),
    "unfenced": HazardCase(
        note="a wgmma.fence has to come before the first wgmma, and after its accumulators, or "
        "registers with A, were touched"
    ),
    "silent": HazardCase(
        "", "warning", "the atomic changes nothing (it adds zero, say): it serves as a read"
    ),
    GUESS: HazardCase("", "warning", _CHECKED),
    "in step": HazardCase("", "warning", _LANES, policy="warp_synchronous"),
    "update": HazardCase(note=_UPDATE),
    LOOK: HazardCase(
        note="the location is looked at and written in two steps, and another thread may come "
        "between them: let one atomic operation do both, as atomicCAS(), atomicExch(), "
        "atomicAdd() or atomicMax() do"
    ),
    "update in step": HazardCase("", "warning", _UPDATE, policy="warp_synchronous"),
    "flag": HazardCase("", "warning", _FLAG, policy="warp_synchronous"),
}
