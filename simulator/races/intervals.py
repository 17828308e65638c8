"""Shared memory between two barriers, judged once for each pattern of accesses."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..geometry import Addresses, Geometry, Lanes, Mask
from ..memory.site import Site
from .accesses import SHARED, Accesses, LookCloser, columns_of, flatten
from .happens_before import HappensBefore
from .shadow import Shadow, clash

_Told = tuple[Site | None, Lanes, Mask | None]
"""An access; or (no site) a warp barrier's member masks."""
_Step = tuple[int, int, tuple[tuple[int, Hashable, Hashable], ...]]
_LONG = 50_000
"""Accesses between two barriers that are kept to be judged together."""


class Intervals:
    """Shared memory without the table: what happens between two barriers, judged once.

    Which locations have been written so far is a state; a state and an interval lead to
    the next state, or to suspicion. The steps are remembered across batches and launches.

    Its arguments are those of ``RaceCheck``.
    """

    def __init__(
        self, granule: int, shared_bytes: int, races: bool, initialised: bool, memo: dict[str, Any]
    ) -> None:
        self.granule, self.shared_bytes = granule, shared_bytes
        self.races, self.initialised = races, initialised
        self.steps: dict[_Step, int] = memo.setdefault("steps", {})
        self.states: list[Mask | None] = memo.setdefault("states", [None])
        self.tokens: dict[int, tuple[Lanes, Hashable]] = {}

    def start(self, geometry: Geometry) -> None:
        """A new batch begins: nothing is written."""
        self.geometry = geometry
        self.state = 0
        self.pending: list[_Told] = []
        self.tokens = {}

    def add(self, site: Site | None, address: Addresses, mask: Mask | None) -> None:
        """An access, or (no site) a warp barrier and its member masks."""
        self.pending.append((site, address, mask))
        if len(self.pending) > _LONG:
            raise LookCloser(SHARED)

    def close(self) -> None:
        """A barrier: judge what has happened since the last one."""
        pending = self.pending
        if not pending:
            return
        self.pending = []
        key = (
            self.state,
            self.geometry.columns if self._wide(pending) > 1 else 1,
            tuple([(s.number if s else -1, self._token(a), self._token(m)) for s, a, m in pending]),
        )
        following = self.steps.get(key)
        if following is None:
            following = self.steps[key] = self._judge(pending)
        self.state = following

    def _wide(self, pending: list[_Told]) -> int:
        return max(columns_of(a, m) for _, a, m in pending)

    def _token(self, value: Lanes | None) -> Hashable:
        """Something small that is equal for equal arrays."""
        if value is None:
            return None
        known = self.tokens.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        token = (value.shape, value.tobytes()) if value.ndim else value.item()
        if value.ndim:
            token = hash(token)
        if len(self.tokens) > 4096:
            self.tokens = {}
        self.tokens[id(value)] = (value, token)
        return token

    def _judge(self, pending: list[_Told]) -> int:
        g = self.geometry
        before = self.states[self.state]
        columns = g.columns if self._wide(pending) > 1 else 1
        if before is not None:
            columns = max(columns, before.shape[1])
        one = Geometry(g.grid, g.block, g.blocks[:columns])
        granules = -(-self.shared_bytes // self.granule)
        shadow, happens_before = Shadow(g.threads * columns, g.threads), HappensBefore(one)
        written = np.zeros((granules, columns), bool)
        if before is not None:
            written |= before
        flat = written.reshape(-1)
        now = 0
        for site, address, mask in pending:
            now += 1
            if site is None:
                happens_before.warp_sync(mask, address, now)
                continue
            lanes = flatten(one, site, address, mask, columns)
            self._check(site, lanes, columns, shadow, happens_before, flat, now)
        if before is not None and np.array_equal(np.broadcast_to(before, written.shape), written):
            return self.state
        self.states.append(written)
        return len(self.states) - 1

    def _check(
        self,
        site: Site,
        lanes: Accesses,
        columns: int,
        shadow: Shadow,
        happens_before: HappensBefore,
        written: Mask,
        now: int,
    ) -> None:
        thread = lanes.column * self.geometry.threads + lanes.thread
        ordered = happens_before.before(lanes.thread, lanes.column)

        for part in range(max(1, site.nbytes // self.granule)):
            place = (lanes.address // self.granule + part) * columns + lanes.column
            if self.initialised and site.access != "store" and not written[place].all():
                raise LookCloser(SHARED)
            if site.access != "load":
                written[place] = True
            if not self.races:
                continue
            for history, _ in shadow.against(site):
                if any(True for _ in shadow.races(history, place, thread, ordered, "near")):
                    raise LookCloser(SHARED)
            if clash(site, site) and any(True for _ in shadow.within(place, thread, "near")):
                raise LookCloser(SHARED)
            shadow.remember(
                site,
                place,
                thread,
                now,
                np.zeros(len(place), np.uint64),
                np.zeros(len(place), np.int64),
            )
