"""A launch is run until its observers have seen enough.

Usually once. Again, from the start, where races need a table that costs too much to keep
without a suspicion (``LookCloser``), where blocks turn out to wait for blocks of another batch
(``BlocksWait``), and, with other content, where local memory is read that nothing wrote.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .analysis.perturbation import without_effect
from .events import Told
from .execute.batches import BlocksWait, Progress, batches, run_batches
from .execute.prepare import Prepared
from .memory.spaces import Allocation
from .observe.observers import Observers
from .observe.totals import InstructionCounter
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

    ``trace`` records the last attempt; ``parts`` sets of observers share the batches, and what they
    saw is merged.
    """
    closer: Closer = {}
    together = False
    while True:
        allocations = launch.allocations()
        seen: list[Observers] = []
        try:
            for share in _shares(list(batches(launch, together)), 1 if together else parts):
                recorder = Trace(trace.wanted, trace.max_bytes) if trace and seen else trace
                seen.append(Observers(launch, checks, recorder, allocations, closer))
                run_batches(launch, allocations, seen[-1].told, share, together, progress)
            first, *others = seen
            for other in others:
                first.merge(other)
            first.end()
        except LookCloser as suspicion:
            closer[suspicion.number] = suspicion.places
        except BlocksWait:
            together = True
        else:
            _drop_harmless_reads(launch, first, together)
            return Seen(first, allocations)


def _shares(todo: list[range], parts: int) -> Iterator[list[range]]:
    """Batches cut into so many pieces, as long as there are enough."""
    each = -(-len(todo) // parts)
    for at in range(0, len(todo), each):
        yield todo[at : at + each]


def _drop_harmless_reads(launch: Prepared, observers: Observers, together: bool) -> None:
    """Of local memory that nothing wrote: does it matter what it holds?"""
    reads = observers.findings.local_reads
    if not reads:
        return

    def outcome(local_start: Mapping[int, int]) -> Any:
        """What a user could see of the run: where threads went, what arrays hold."""
        allocations = launch.allocations()
        ran = InstructionCounter(len(launch.program.blocks), len(launch.program.arithmetic))
        try:
            run_batches(
                launch, allocations, Told([ran]), batches(launch, together), together,
                local_start=local_start,
            )  # fmt: skip
        except BlocksWait:  # which they did not before
            return None
        contents = [a.content().tobytes() for a in allocations.values() if a.writable]
        return ran.threads, contents

    observers.findings.drop_local_reads(
        without_effect(launch.program, reads, launch.granule, outcome)
    )
