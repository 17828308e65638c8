"""Cures: edits that remove a race, proved by running with them."""

from .barrier_study import BarrierVerdict, barriers_of, judge_barriers
from .budget import trial_steps
from .edits.ptx_edit import without_barriers
from .progress import BUDGET, INTERRUPTED, TIME, Stopped, Watch
from .search import cure_source, find_cures

__all__ = [
    "BUDGET",
    "INTERRUPTED",
    "TIME",
    "BarrierVerdict",
    "Stopped",
    "Watch",
    "barriers_of",
    "cure_source",
    "find_cures",
    "judge_barriers",
    "trial_steps",
    "without_barriers",
]
