"""Fixes: source edits that remove a hazard, verified by compiling and running them."""

from .barrier_study import BarrierVerdict, barriers_of, judge_barriers
from .budget import trial_steps
from .edits.ptx_edit import without_barriers
from .progress import BUDGET, INTERRUPTED, TIME, Stopped, Watch
from .search import find_fixes, find_source_fixes

__all__ = [
    "BUDGET",
    "INTERRUPTED",
    "TIME",
    "BarrierVerdict",
    "Stopped",
    "Watch",
    "barriers_of",
    "find_fixes",
    "find_source_fixes",
    "judge_barriers",
    "trial_steps",
    "without_barriers",
]
