"""Cures: edits that remove a race, proved by running with them."""

from .search import BarrierVerdict, cure_source, find_cures, judge_barriers

__all__ = ["BarrierVerdict", "cure_source", "find_cures", "judge_barriers"]
