"""Meanings of the reports' words, for ``--explain`` and ``tilescope help WORD``."""

import re

from .layout import wrapped

WORDS = {
    "accesses": "Loads, stores and atomics of single threads: what a textbook counts.",
    "warp requests": "Memory instructions that warps executed. 32 threads that load together are "
    "one request.",
    "bytes": "Bytes that the threads asked for, each thread's counted.",
    "sectors": "Aligned pieces of 32 bytes of global memory, the unit of the L1 and L2 caches. A "
    "warp that reads 32 neighbouring floats needs 4; 32 scattered ones need 32.",
    "coalescing": "Bytes that the threads asked for, as a share of the bytes of the sectors that "
    "were moved for them. 100% wastes nothing.",
    "wavefronts": "Passes of a request through the shared-memory pipeline. One is the least.",
    "bank conflicts": "Wavefronts beyond those that a request's size needs: lanes of a warp use "
    "different words of one of the 32 banks.",
    "flops": "Floating-point operations; a fused multiply-add is two.",
    "intensity": "FLOPs per byte of global memory. The higher, the less memory limits the kernel.",
    "lanes on": "Active lanes of an executed warp instruction, of 32, on average.",
    "divergence": "Branches that some lanes of a warp take and others do not: both ways run, one "
    "after the other.",
    "warp instructions": "PTX instructions that warps executed.",
    "hazard": "A defect that the simulator found: kind, severity, lines and threads.",
    "error": "A hazard that is wrong on hardware, or undefined. The exit code is 1.",
    "warning": "A hazard that some hardware or compiler forgives. --fail-on warning makes the exit "
    "code 1.",
    "race": "Two threads access the same bytes, at least one writes, and no barrier, fence or "
    "atomic orders them. RAW, WAR and WAW say which access comes first in the program: read after "
    "write, write after read, write after write.",
    "pairs of threads": "Threads that race with each other, each two counted once, up to 4,096 "
    "pairs. The two threads below a race's lines are one of these pairs.",
    "certainty": "The schedules and array contents for which a race occurs. The happens-before "
    "order proves it; no schedule has to show it.",
    "fix": "An edit of the source that was compiled in both builds and verified by running it.",
    "verified": "Compiled in both builds, run in the schedules and sizes that are named, and no "
    "hazard of this kind was left. Another shape or size is a trial besides the launch's own: its "
    "blocks fill no whole warps if possible, as a fix may hold for whole warps alone.",
    "device build": "The optimised PTX, which a GPU runs. Counts are of this build.",
    "source build": "The unoptimised PTX (NVRTC -G). The optimiser may hide a bug today and not "
    "tomorrow: checks look at both builds.",
    "schedule": "The order in which warps and blocks take steps: lockstep, warps (one after the "
    "other), reverse, or random by a seed. Races are found by the happens-before order, not by "
    "luck of the schedule.",
    "not checked": "Nothing is known: the check was turned off, or could not run.",
    "within its error bound": "The result differs from the reference by no more than rounding "
    "explains.",
    "verdict": "The last line: hazards, and whether the result is right.",
    "occupancy": "Warps that a multiprocessor can have at once, as a share of the most it can. "
    "Registers, shared memory or threads limit it.",
    "roofline": "The least time that each part of a GPU needs for the launch; the longest is a "
    "lower bound.",
    "limiter": "The part of the GPU that determines the predicted time, such as dram or latency.",
    "warm": "Of caches: what the last launch left in L2 is still there. A benchmark that repeats "
    "a launch measures this.",
    "cold": "Of caches: nothing is in L2. The first launch after a large copy sees this.",
    "instruction issue": "Cycles in which a multiprocessor starts instructions; a limiter if all "
    "are taken.",
    "latency": "Warps wait for results of memory or arithmetic, and too few others are ready.",
    "launch overhead": "Time from the call of a launch to its first instruction, and from its last "
    "one to the end. It does not depend on the kernel, and stands apart.",
    "dram": "The GPU's main memory, behind L2.",
    "hit rate": "Sectors that a cache has, as a share of those that it is asked for.",
}  # fmt: skip
"""Words in lower case, in the order of a report."""


def explained(report: str) -> str:
    """Return what each word means that stands in a report."""
    text = " ".join(report.lower().split())
    found = [word for word in WORDS if re.search(rf"\b{re.escape(word.removesuffix('s'))}", text)]
    return "\n".join(["what the words mean", *(meaning(word) for word in found)])


def meaning(word: str) -> str:
    """Return a word and its meaning, wrapped; raises ``KeyError`` for others."""
    return wrapped(f"{word}: {WORDS[word]}")
