"""Error bounds of predictions, from measurements.

``python -m benchmarks.predictions`` writes ``errors.json`` from launches on GPUs: the error that
nine in ten of them do not exceed. For times it uses only launches on which no constant was fitted.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

Band = tuple[float, float]
"""Least and most, in the unit of what it is of."""


@functools.cache
def errors() -> dict[str, float]:
    """Return the errors that nine in ten launches do not exceed.

    ``time``, ``dram_read_once`` (no re-reads after eviction from L2), ``dram_read_again`` and
    ``dram_written`` are relative: the larger of prediction and measurement over the smaller, minus
    one. ``l1_hits`` and ``l2_hits`` are absolute differences of rates.
    """
    text = resources.files(__package__).joinpath("errors.json").read_text()
    return {name: float(value) for name, value in json.loads(text).items()}


def around(value: float, share: float) -> Band:
    """Return the band of a quantity with a relative error."""
    return value / (1 + share), value * (1 + share)


def rate_around(rate: float, points: float) -> Band:
    """Return the band of a rate with an absolute error."""
    return max(0.0, rate - points), min(1.0, rate + points)
