"""Budget of a search for fixes, counted in work, so that every machine finds the same."""

import time
from collections.abc import Iterable

from ..execute.schedule import PATIENCE
from ..hazards.hazard import Hazard
from ..run import Run
from .progress import BUDGET, TIME

_WORK = 60_000
"""Spent on edits that come to nothing, at most, where a unit is about a step of a launch (0.15 ms):
some ten seconds."""
_LAUNCHES = 4
"""So many launches may be spent whatever they cost: two edits, each in two builds."""
_LAUNCH = 300
"""What a launch costs besides its steps."""
_COMPILED, _TEXT = 150, 20
"""What compiling an edited kernel costs, and so many characters of the kernel's PTX cost one more:
libcu++'s headers, which take a second, put a hundred thousand into it."""
_STEPS, _FEWEST = 16, 4_000 + 2 * PATIENCE[1]
"""So many times the steps of the launch one trial may take, and at least so many: where warps run
one at a time, they spin at a flag or an ``mbarrier`` that they only look at in lockstep."""


class Budget:
    """Remaining work of a search; only unsuccessful edits are charged.

    ``runs``: the original launch in each build; empty if its cost is unknown. ``seconds``: an
    additional time limit.
    """

    def __init__(self, runs: Iterable[Run] = (), seconds: float | None = None) -> None:
        launch = max((_LAUNCH + run.work for run in _ended(runs)), default=0)
        self.remaining = max(_WORK, _LAUNCHES * launch)
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def used_up(self) -> str:
        """Key of ``ENDED`` if no further edit may be tried; else empty."""
        if self.remaining <= 0:
            return BUDGET
        return TIME if self._end is not None and time.monotonic() >= self._end else ""

    def pay(self, run: Run) -> None:
        """Charge a verification run."""
        self.remaining -= _LAUNCH + run.work

    def compiled(self, ptx: int) -> None:
        """Charge a compilation, successful or not; ``ptx``: characters of the original."""
        self.remaining -= _COMPILED + ptx // _TEXT


def trial_steps(runs: Iterable[Run], limit: int) -> int:
    """Return the ``step_limit`` of a trial, as an edit or schedule may make a loop endless.

    ``runs``: as for ``Budget``. ``limit``: that of the launch.
    """
    return min(limit, max(_FEWEST, _STEPS * max((r.batch_steps for r in _ended(runs)), default=0)))


def given_up(hazards: Iterable[Hazard]) -> bool:
    """Whether a launch reached its step limit."""
    return any(hazard.row.is_endless and hazard.case == "limit" for hazard in hazards)


def _ended(runs: Iterable[Run]) -> Iterable[Run]:
    return (run for run in runs if not given_up(run.hazards))
