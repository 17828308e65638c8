"""Between which values what is predicted is expected, by the errors that were measured.

``errors.json`` is written by ``python -m benchmarks.predictions`` from launches on GPUs: by how
much nine in ten of them are off at most. Times are judged on those that no constant was adjusted
on.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

Band = tuple[float, float]
"""Least and most, in the unit of what it is of."""


@functools.cache
def errors() -> dict[str, float]:
    """What nine in ten launches are off by at most.

    ``time``, ``dram_read_once`` (nothing that left L2 is read again), ``dram_read_again`` and
    ``dram_written``: by how much the larger of said and read is more than the smaller, as a share
    of that; ``l1_hits`` and ``l2_hits``: of a rate, absolute.
    """
    text = resources.files(__package__).joinpath("errors.json").read_text()
    return {name: float(value) for name, value in json.loads(text).items()}


def around(value: float, share: float) -> Band:
    """A quantity that may be so many times larger or smaller, less one."""
    return value / (1 + share), value * (1 + share)


def rate_around(rate: float, points: float) -> Band:
    """A share of all that may be off by so much."""
    return max(0.0, rate - points), min(1.0, rate + points)
