"""A launch is run until its observers have seen enough.

Usually once. Again, from the start, where races need a table that costs too much to keep
without a suspicion (``LookCloser``), where blocks turn out to wait for blocks of another batch
(``BlocksWait``), and, with other content, where local memory is read that nothing wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .analysis.perturbation import without_effect
from .events import Told
from .execute.batches import BlocksWait, Progress, batches, run_batches
from .execute.prepare import Prepared
from .memory.spaces import Allocation
from .observe.instructions import InstructionCounter
from .observe.observers import Observers
from .observe.trace import Trace
from .races.accesses import Closer, LookCloser


@dataclass(frozen=True)
class Seen:
    """What the last attempt at a launch left: its observers, and global memory."""

    observers: Observers
    allocations: dict[int, Allocation]


def run_until_seen(
    launch: Prepared, checks: Collection[str], trace: Trace | None, progress: Progress | None,
    parts: int = 1,
) -> Seen:  # fmt: skip
    """Run a launch, as often as its observers want.

    Args:
        launch: What to run.
        checks: What to look for.
        trace: Records the last attempt.
        progress: Told after each batch.
        parts: How many sets of observers share the batches; what they saw is merged.
    """
    closer: Closer = {}
    together = False
    while True:
        allocations = launch.allocations()
        try:
            todo = list(batches(launch, together))
            each = -(-len(todo) // (1 if together else parts))
            seen = []
            for first in range(0, len(todo), each):
                part = Trace(trace.wanted, trace.max_bytes) if trace and first else trace
                observers = Observers(launch, checks, part, allocations, closer)
                share = todo[first : first + each]
                run_batches(launch, allocations, observers.told, share, together, progress)
                seen.append(observers)
            for observers in seen[1:]:
                seen[0].merge(observers)
            seen[0].end()
            break
        except LookCloser as suspicion:
            closer[suspicion.number] = suspicion.places
        except BlocksWait:
            together = True
    _drop_harmless_reads(launch, seen[0], together)
    return Seen(seen[0], allocations)


def _drop_harmless_reads(launch: Prepared, observers: Observers, together: bool) -> None:
    """Of local memory that nothing wrote: does it matter what it holds?"""
    reads = observers.findings.local_reads
    if not reads:
        return

    def outcome(local_start: Mapping[int, int]) -> Any:
        """What a user could see of the run: where threads went, what arrays hold."""
        allocations = launch.allocations()
        ran = InstructionCounter(len(launch.program.blocks), len(launch.program.arithmetic))
        run_batches(
            launch, allocations, Told([ran]), batches(launch, together), together,
            local_start=local_start,
        )  # fmt: skip
        contents = [a.content().tobytes() for a in allocations.values() if a.writable]
        return ran.threads, contents

    observers.findings.drop_local_reads(
        without_effect(launch.program, reads, launch.granule, outcome)
    )
