"""How long a search for cures may take: counted in work, so that every machine finds the same."""

from collections.abc import Iterable

from ..execute.schedule import PATIENCE
from ..hazards.hazard import Hazard
from ..run import Run

USED_UP = "no cure found within the search's budget"
"""What is said of a hazard whose search ended early."""
_TIMES, _LEAST = 20, 100_000
"""So often the work of the launch may be spent on edits that come to nothing; and at least that
much: enough for every place in a small kernel."""
_LAUNCH = 200
"""What a launch costs besides its work, with compiling an edited kernel that includes little."""
_TEXT = 32
"""Characters of the kernel's PTX that cost one more to compile: libcu++'s headers, which take a
second, put a hundred thousand into it."""
_STEPS, _FEWEST = 16, 4_000 + 2 * PATIENCE[1]
"""So many times the steps of the launch one trial may take, and at least so many: where warps run
one at a time, they spin at a flag or an ``mbarrier`` that they only look at in lockstep."""


class Budget:
    """What is left for the search; only what comes to nothing is paid for.

    ``runs``: the launch as it was found, in each build; none: nobody knows how long that takes.
    """

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.left = max(
            _LEAST, _TIMES * max((_LAUNCH + run.work for run in _ended(runs)), default=0)
        )

    @property
    def used_up(self) -> bool:
        """Whether no further edit is to be tried."""
        return self.left <= 0

    def pay(self, run: Run) -> None:
        """A trial has run."""
        self.left -= _LAUNCH + run.work

    def compiled(self, ptx: int) -> None:
        """An edited kernel was compiled, or refused; ``ptx``: characters of the original."""
        self.left -= ptx // _TEXT


def trial_steps(runs: Iterable[Run], limit: int) -> int:
    """The ``step_limit`` of a trial: an edit, or another schedule, may make a loop endless.

    ``runs``: as ``Budget`` takes them; ``limit``: that of the launch.
    """
    return min(limit, max(_FEWEST, _STEPS * max((r.batch_steps for r in _ended(runs)), default=0)))


def given_up(hazards: Iterable[Hazard]) -> bool:
    """Whether a launch was given up after its steps."""
    return any(hazard.row.ends and hazard.case == "limit" for hazard in hazards)


def _ended(runs: Iterable[Run]) -> Iterable[Run]:
    return (run for run in runs if not given_up(run.hazards))
