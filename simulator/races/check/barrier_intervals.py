"""Barrier intervals of shared memory, checked once for each pattern of accesses.

Locations that one thread accesses, that are only read, or that only atomics access do not race
(``ownership.OwnershipTable``). The other accesses are checked against warp barriers.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from ...core.geometry import Addresses, Flat, Geometry, Lanes, Mask
from ...memory.site import Site
from ..accesses import SHARED, EscalateCheck, by_block, columns_of, dense
from ..order.happens_before import HappensBefore
from ..shadow.conflicts import WRITTEN, race_kind, use
from ..shadow.ownership import OwnershipTable
from ..shadow.shadow_memory import ShadowMemory

_Event = tuple[tuple[Site, ...], Lanes, Mask | None]
"""An access, or several from one base; or (no site) a warp barrier's member masks."""
_Step = tuple[int, int, tuple[tuple[int, int, Hashable, Hashable], ...]]
Memo = dict[str, Any]
"""What is known of intervals, by what it is."""
_LONG = 50_000
"""Accesses between two barriers that are kept to be judged together."""


def _content(value: Lanes | None) -> Hashable:
    """Return a small key that is equal for equal arrays."""
    if value is None or not value.ndim:
        return None if value is None else value.item()
    return hash((value.shape, value.tobytes()))


def _which(sites: tuple[Site, ...]) -> tuple[int, int]:
    """Return a key of a group of sites."""
    return (sites[0].number, len(sites)) if sites else (-1, 0)


def _each(events: Iterable[_Event]) -> Iterator[tuple[Site, Lanes, Mask | None]]:
    """Yield the accesses of groups one by one."""
    return ((site, address, mask) for sites, address, mask in events for site in sites)


class BarrierIntervals:
    """Check of shared memory without shadow memory, one barrier interval at a time.

    The set of written locations is a state. A state and an interval give the next state or a
    suspicion; these transitions are cached across batches and launches.

    The arguments are those of ``RaceCheck``. ``reserved``: bytes that are initialised.
    """

    def __init__(
        self, granule: int, shared_bytes: int, races: bool, initialised: bool,
        memo: Memo, reserved: int = 0,
    ) -> None:  # fmt: skip
        self.granule, self.shared_bytes = granule, shared_bytes
        self.races, self.initialised, self.reserved = races, initialised, reserved
        self.steps: dict[_Step, int] = memo.setdefault("steps", {})
        self.states: list[Mask | None] = memo.setdefault(
            "states", [_first(reserved, granule, shared_bytes)]
        )
        self.full: dict[int, bool] = memo.setdefault("full", {})
        self.harmless: dict[Hashable, bool] = memo.setdefault("harmless", {})
        self.tokens: dict[int, tuple[Lanes, Hashable]] = {}
        self.kinds: dict[tuple[tuple[int, int], ...], bool] = memo.setdefault("kinds", {})

    def start(self, geometry: Geometry) -> None:
        """Begin a batch: nothing is written."""
        self.geometry = geometry
        self.state = 0
        self.pending: list[_Event] = []
        self.tokens = {}

    def add(self, sites: tuple[Site, ...], address: Addresses, mask: Mask | None) -> None:
        """Add accesses from one base, or (without a site) a warp barrier with its member masks."""
        self.pending.append((sites, address, mask))
        if len(self.pending) > _LONG:
            raise EscalateCheck(SHARED)

    def close(self) -> None:
        """Handle a barrier: check the interval that it ends."""
        pending = self.pending
        if not pending:
            return
        self.pending = []
        if self._full and self._one_kind(pending):
            return
        key = (
            self.state,
            self.geometry.columns if self._wide(pending) > 1 else 1,
            tuple([(*_which(s), self._token(a), self._token(m)) for s, a, m in pending]),
        )
        following = self.steps.get(key)
        if following is None:
            following = self.steps[key] = self._judge(pending)
        self.state = following

    def _wide(self, pending: list[_Event]) -> int:
        return max(columns_of(a, m) for _, a, m in pending)

    def _token(self, value: Lanes | None) -> Hashable:
        """Return a small key that is equal for equal arrays."""
        if value is None:
            return None
        known = self.tokens.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        token = _content(value)
        if len(self.tokens) > 4096:
            self.tokens = {}
        self.tokens[id(value)] = (value, token)
        return token

    def _judge(self, pending: list[_Event]) -> int:
        g = self.geometry
        before = self.states[self.state]
        races = self.races and not (self._one_kind(pending) or self._is_race_free(pending))
        if self._full and not races:
            return self.state
        columns = g.columns if self._wide(pending) > 1 else 1
        if before is not None:
            columns = max(columns, len(before))
        one = Geometry(g.grid, g.block, np.arange(columns))
        granules = -(-self.shared_bytes // self.granule)
        written = np.zeros((columns, granules), bool)
        if before is not None:
            written |= before
        owners, flat = OwnershipTable(granules * columns, g.threads * columns), written.reshape(-1)
        for site, address, mask in _each(pending):
            for place, thread in self._places(one, site, address, mask):
                at = dense(place)
                if self.initialised and site.access != "store" and not flat[at].all():
                    raise EscalateCheck(SHARED)
                if site.access != "load":
                    flat[at] = True
                if races:
                    owners.access(site, place, thread)
        if owners.has_contention:
            self._check_contested(owners.contested, pending, one)
        if before is not None and np.array_equal(np.broadcast_to(before, written.shape), written):
            return self.state
        self.states.append(written)
        return len(self.states) - 1

    @property
    def _full(self) -> bool:
        """Whether all locations are written; race-free intervals then change no state."""
        if self.state not in self.full:
            written = self.states[self.state]
            self.full[self.state] = written is not None and bool(written.all())
        return self.full[self.state]

    def _one_kind(self, pending: list[_Event]) -> bool:
        """Whether all accesses are of one use (``conflicts.use``), so that none can race."""
        which = tuple([_which(sites) for sites, _, _ in pending])
        if which not in self.kinds:
            uses = {use(site) for sites, _, _ in pending for site in sites}
            self.kinds[which] = len(uses) <= 1 and WRITTEN not in uses
        return self.kinds[which]

    def _is_race_free(self, pending: list[_Event]) -> bool:
        """Whether an interval cannot race under the union of all blocks' masks.

        It is race-free if no two threads access one location with every lane active that is active
        in any block.
        """
        if self._wide(pending) == 1 or columns_of(*(a for s, a, _ in pending if s)) > 1:
            return False
        union = [
            (sites, address, mask if mask is None or columns_of(mask) == 1 else
             np.logical_or.reduce(mask, axis=3, keepdims=True))
            for sites, address, mask in pending if sites
        ]  # fmt: skip
        key = tuple([(*_which(s), self._token(a), _content(m)) for s, a, m in union])
        if key not in self.harmless:
            one = Geometry(self.geometry.grid, self.geometry.block, np.arange(1))
            owners = OwnershipTable(-(-self.shared_bytes // self.granule), one.threads)
            for site, address, on in _each(union):
                for place, thread in self._places(one, site, address, on):
                    owners.access(site, place, thread)
            self.harmless[key] = not owners.has_contention
        return self.harmless[key]

    def _places(
        self, g: Geometry, site: Site, address: Addresses, mask: Mask | None
    ) -> Iterator[tuple[Flat, Flat]]:
        """Yield the locations of an access and the accessing threads."""
        granules = -(-self.shared_bytes // self.granule)
        at, thread = by_block(g, site, address, mask)
        place = at // self.granule + thread // g.threads * granules
        for part in range(max(1, site.nbytes // self.granule)):
            yield place + part, thread

    def _check_contested(self, contested: Mask, pending: list[_Event], g: Geometry) -> None:
        """Check whether warp barriers order the accesses to contested locations."""
        shadow, happens_before = ShadowMemory(g.threads * g.columns, g.threads), HappensBefore(g)
        for now, (sites, address, mask) in enumerate(pending, 1):
            if not sites:
                happens_before.warp_sync(mask, address, now)
            for site in sites:
                for place, thread in self._places(g, site, address, mask):
                    at = np.flatnonzero(contested[place])
                    if at.size:
                        self._check(site, place[at], thread[at], shadow, happens_before, now)

    def _check(
        self, site: Site, place: Flat, thread: Flat, shadow: ShadowMemory,
        happens_before: HappensBefore, now: int,
    ) -> None:  # fmt: skip
        column, mine = np.divmod(thread, self.geometry.threads)
        ordered, asked = happens_before.before(mine, column), shadow.asked(place, thread)
        for history, _ in shadow.conflicting_histories(site):
            if any(True for _ in shadow.races(history, asked, ordered, "near")):
                raise EscalateCheck(SHARED)
        if race_kind(site, site) and any(
            True for _ in shadow.intra_instruction_conflicts(place, thread, "near")
        ):
            raise EscalateCheck(SHARED)
        values, since = np.zeros(len(place), np.uint64), np.zeros(len(place), np.int64)
        shadow.record(site, place, thread, now, values, since)


def _first(reserved: int, granule: int, nbytes: int) -> Mask | None:
    """Return the initially written locations.

    The system's part of shared memory, if there is one.
    """
    return np.arange(-(-nbytes // granule))[None] < reserved // granule if reserved else None
