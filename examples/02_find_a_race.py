"""Find a missing barrier, show that it matters, and prove the fix.

The tiled product without the barrier between loading and using its tiles gives right numbers
when all threads of a block run in step, as they do on many a GPU. The check does not depend on
such luck: it follows what orders two accesses, not the order in which they happened to run.
"""

import numpy as np

import simulator
from kernels import Kernel, library
from simulator.fixes import find_fixes

entry = library.get("matmul_missing_first_barrier")
kernel = entry.kernel(tile=16)


def launch(kernel: Kernel, schedule: str | int = "lockstep") -> tuple[simulator.Run, float]:
    """A run on the same inputs each time, and the largest error of its result."""
    ready = entry.launch((48, 48, 48), tile=16, rng=np.random.default_rng(0))
    expected = ready.expected()
    run = simulator.launch(kernel, ready.grid, ready.block, ready.args, schedule=schedule)
    return run, ready.compare(expected)[0].max_error


print("largest error of C by schedule")
for schedule in ("lockstep", "warps", "reverse", 1):
    run, error = launch(kernel, schedule)
    races = sum(hazard.kind in ("raw-race", "war-race") for hazard in run.hazards)
    print(f"  {schedule!s:<9} {error:10.2g}   races found: {races}")
    assert races, "no schedule hides the race"
    assert (error > 1e-3) == (schedule != "lockstep")

run, _ = launch(kernel)
assert find_fixes(kernel, run, lambda edited: launch(edited)[0])
print()
print(run.hazards[0])
