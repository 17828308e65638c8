"""One case in a process of its own: its first launch, its next ones, and the memory they take.

``python -m benchmarks.measure NAME BUILD WAY REPEAT`` prints JSON; a way is ``all`` (every check,
and counters), ``counted`` (counters alone), ``checked`` (checks alone) or ``bare``.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass

WAYS = {
    "all": ("all", "all"), "counted": ("none", "all"), "checked": ("all", "none"),
    "bare": ("none", "none"),
}  # fmt: skip
"""Checks and counters of each way."""


@dataclass
class Figures:
    """Seconds of CPU of a process's first launch, and of the fastest later one; bytes of memory.

    ``peak``: all that the process ever took, ``arrays``: the launch's arguments; ``work``: units.
    """

    first: float
    warm: float
    peak: int
    arrays: int
    work: int


def figures(name: str, build: str, way: str, repeat: int, fresh: int = 1) -> Figures:
    """Measured in so many fresh processes, of which the fastest counts.

    Raises:
        RuntimeError: A process failed; says its last line.
    """
    found = []
    for _ in range(fresh):
        command = [sys.executable, "-m", "benchmarks.measure", name, build, way, str(repeat)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
        found.append(Figures(**json.loads(done.stdout)))
    return Figures(
        min(f.first for f in found), min(f.warm for f in found), max(f.peak for f in found),
        found[0].arrays, found[0].work,
    )  # fmt: skip


def one_core() -> None:
    """Stay on one core, where the system lets us choose."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def peak_bytes() -> int:
    """The bytes of memory the process has taken at most; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Measure one case here."""
    one_core()
    import numpy as np

    import simulator
    from benchmarks.cases import CASES

    name, build, way, repeat = sys.argv[1:]
    case = next(case for case in CASES if case.name == name)
    kernel, (checks, counters) = case.kernel(build), WAYS[way]
    seconds = []
    for _ in range(int(repeat) + 1):
        shape = case.shape()
        began = time.process_time()
        simulator.launch(
            kernel, shape.grid, shape.block, shape.args, shape.shared_bytes,
            checks=checks, counters=counters,
        )  # fmt: skip
        seconds.append(time.process_time() - began)
    arrays = sum(a.nbytes for a in shape.args if isinstance(a, np.ndarray))
    found = Figures(seconds[0], min(seconds[1:]), peak_bytes(), arrays, shape.work)
    print(json.dumps(found.__dict__))


if __name__ == "__main__":
    main()
