"""Wording for weak reads after a relaxed read of a flag, without a fence in between."""

from ..races.report.race_log import UNACQUIRED

_FENCE = (
    "a relaxed read of a flag or counter orders no weak read behind it, nor does a barrier: put a "
    "__threadfence() between it and the __syncthreads(), in the thread that looks, or look with "
    "an acquire (ld.acquire, cuda::atomic)"
)
FRESH = "unacquired, not in L1"
"""The case in which L1 can hold nothing stale; ``UNACQUIRED``: it can."""
BEHIND_RELAXED = {
    UNACQUIRED: ("error", _FENCE),
    FRESH: ("warning", f"{_FENCE}; L1 can hold nothing older: the reader's block never loaded it"),
}
"""Severity and note of each case."""
