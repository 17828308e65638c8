"""One more run of a launch, from its start, as the searches behind a first run need it."""

from collections.abc import Callable, Collection

from kernels.errors import SimulatorError

from ..execute.batches import InterBlockWait, batches, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.definedness import DefinednessMemory
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.accesses import EscalateCheck, PrecisionPlan

_ATTEMPTS = 8
"""Attempts at most: each begins with more precision than the one before."""

Attach = Callable[[Observers, dict[int, Allocation]], DefinednessMemory | None]
"""Change what the observers receive; return V bits of memory if the program computes V bits."""


def run_again(
    launch: PreparedLaunch, checks: Collection[str], precision: PrecisionPlan, together: bool,
    attach: Attach | None = None,
) -> Observers | None:  # fmt: skip
    """Run a launch once more, with the precision that its races need.

    Returns:
        The observers of the run; ``None``: it did not end.
    """
    precision = dict(precision)
    for _ in range(_ATTEMPTS):
        allocations = launch.allocations()
        observers = Observers(launch, checks, None, allocations, precision)
        memory = attach(observers, allocations) if attach else None
        todo = batches(launch, together)
        try:
            run_batches(launch, allocations, observers.dispatcher, todo, together, undefined=memory)
            observers.end()
        except EscalateCheck as suspicion:
            precision[suspicion.number] = suspicion.places
        except (InterBlockWait, SimulatorError):
            return None
        else:
            return observers
    return None
