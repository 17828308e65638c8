"""Combined lookup of the accesses of several instructions, most of which happen before the lanes.

A loop that is unrolled eight times acquires its lock at eight instructions, and each later access
is checked against all of them. One combined lookup costs a fifth of eight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.geometry import Flat, Mask
from ..order.locks import Lock
from ..order.stale_reads import Reads, needed
from ..order.vector_clock import Ordered
from ..shadow.access_history import AccessHistory
from ..shadow.lookups import Asked

Locked = tuple[Flat, Flat, Lock, Flat]
"""Lanes, and threads whose earlier accesses a lock puts before the lanes'; and which pairs of those
that were asked for these are."""
_FEW = 2
"""Instructions that were at the lanes' locations before: more are looked at together."""
_MAX_ROWS = 1 << 16
"""Pairs that are looked at together."""


def all_before(
    histories: Sequence[AccessHistory], asked: Asked, ask: Callable[..., Ordered]
) -> dict[int, list[Locked]]:
    """Return the instructions whose accesses all happen before the lanes, with lock-ordered pairs.

    ``ask``: ``ShadowChecker.ordered`` without the instruction, ``locked`` and ``strong``.
    """
    groups: dict[tuple[bool, bool], list[AccessHistory]] = {}
    for history in histories if len(histories) > _FEW else ():
        if history.site.queue != "product":
            writes = history.site.strong and not history.loads
            groups.setdefault((needed(history.site) >= Reads.MET, writes), []).append(history)
    found: dict[int, list[Locked]] = {}
    for (_, writes), those in groups.items():
        locked: list[Locked] = []
        found |= _before(those, asked, ask(those[0].site, locked=locked, strong=writes), locked)
    return found


def _before(
    histories: Sequence[AccessHistory], asked: Asked, ordered: Ordered, locked: list[Locked]
) -> dict[int, list[Locked]]:
    """Look up instructions that ask alike in ``all_before``; ``ordered`` adds to ``locked``."""
    pairs = [_pairs(history, asked) for history in histories]
    stops = np.cumsum([len(lane) for _, _, lane in pairs]).tolist()
    if stops[-1] > _MAX_ROWS:
        return {}
    starts = [0, *stops[:-1]]
    times, earlier, lane = (np.concatenate(column) for column in zip(*pairs, strict=True))
    late = ~ordered(times, earlier, lane) if len(lane) else np.zeros(0, bool)
    found = {}
    for history, start, end in zip(histories, starts, stops, strict=True):
        if not late[start:end].any():
            parts = [(one, (one[3] >= start) & (one[3] < end)) for one in locked]
            found[history.site.whole] = [_some(one, part) for one, part in parts if part.any()]
    return found


def _pairs(history: AccessHistory, asked: Asked) -> tuple[Flat, Flat, Flat]:
    """Return times and threads of earlier accesses to the lanes' locations, and the lanes."""
    if asked.low > history.high or asked.high <= history.low:
        return (np.zeros(0, np.int64),) * 3
    keys = history.table.keys
    ((low, high),) = asked.ranges("any")
    begin = np.searchsorted(keys, low)
    counts = np.searchsorted(keys, high) - begin
    sums = np.cumsum(counts)
    lane = np.repeat(np.arange(len(counts)), counts)
    entry = np.arange(len(lane)) - np.repeat(sums - counts - begin, counts)
    earlier = keys[entry] % asked.threads
    others = earlier != asked.thread[lane]
    return history.table.times[entry[others]], earlier[others], lane[others]


def _some(one: Locked, part: Mask) -> Locked:
    lane, earlier, lock, pair = one
    return lane[part], earlier[part], lock, pair[part]
