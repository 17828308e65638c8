"""Lane groups: which lanes of a warp at one block execute it together.

Lanes converge at convergence points (``compile/cfg/convergence.py``), warp barriers, other warp
instructions, and aligned block barriers. Elsewhere lanes that reach a block at different times, or
on different paths, execute it group by group, as on a GPU.

Each lane has a *token*; lanes of a warp at one block form a group if their tokens are equal. Lanes
that reach a block without converging get a new token. At a convergence point lanes get back the
token that they had at the start of its region. Invariant: lanes that were one group there are one
group again, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.geometry import Lanes, Mask, as_mask
from ...memory.storage.word_ops import unique
from ..lane_state import LaneState
from ..schedule import Groups
from .convergence_regions import NEW, Convergence

_LATEST = np.iinfo(np.int32).max


class Splits:
    """Tokens of the lanes of one batch, and lanes released by a ``YIELD``.

    Attributes:
        ahead: Lanes that run before the others of their warps; ``None``: none.
    """

    def __init__(self, state: LaneState, facts: Convergence) -> None:
        self.state, self.facts = state, facts
        self.ahead: Mask | None = None
        self._served: Mask | None = None
        self._token: Lanes | None = None
        self._saved: dict[tuple[int, int], Lanes] = {}

    # -- tokens -----------------------------------------------------------------

    def arrive(self, at: int, to: int, lanes: Mask | None) -> None:
        """Update tokens of lanes that move from one block to another."""
        what = self.facts.edges.get((at, to))
        if what is None:
            return
        if what == NEW:
            self.renew(lanes)
        elif self._token is not None:
            for frame, here in self._frames(what, as_mask(lanes)):
                saved = self._saved.get(frame)
                np.copyto(self._token, 0 if saved is None else saved, where=here)

    def renew(self, lanes: Mask | None) -> None:
        """Give lanes a new token: those of one warp become one group."""
        g, on = self.state.geometry, as_mask(lanes)
        if self._token is None:
            others = as_mask(self.state.alive) & ~on
            if not (g.any_of_warp(others) & g.any_of_warp(on)).any():
                return
            self._token = np.zeros(g.shape, np.int32)
        np.copyto(self._token, self.state.step, where=on)

    def meet(self, lanes: Mask | None) -> None:
        """Merge lanes that meet at a warp instruction or barrier into one group."""
        if self._token is not None:
            np.copyto(self._token, self.state.step, where=as_mask(lanes))

    def _save(self, number: int, lanes: Mask | None) -> None:
        if self._token is None:
            return
        for point in self.facts.saves.get(number, ()):
            for frame, here in self._frames(point, as_mask(lanes)):
                saved = self._saved.get(frame)
                if saved is None:
                    saved = self._saved[frame] = np.zeros_like(self._token)
                np.copyto(saved, self._token, where=here)

    def _frames(self, point: int, on: Mask) -> Iterator[tuple[tuple[int, int], Mask]]:
        """Group lanes by call depth, in recursive functions."""
        number = self.facts.depths.get(point)
        if number is None:
            yield (point, 0), on
            return
        depth = self.state.registers[number]
        for each in unique(depth).tolist():
            yield (point, each), on & (depth == each)

    def together(self, number: int, mask: Mask | None) -> Mask | None:
        """Return the lanes of each warp's first group at a block; ``mask`` if all are one group."""
        if self._token is None or number not in self.facts.affected:
            return mask
        g = self.state.geometry
        on = np.broadcast_to(as_mask(mask), g.shape)
        tokens = np.where(on, self._token, _LATEST)
        first = g.by_warp(tokens, _LATEST).min(axis=1)
        here: Mask = on & (self._token == g.spread(first))
        return mask if (here == on).all() else here

    def settle(self, number: int) -> bool:
        """Whether the lanes of each warp form one group, when all live lanes are at one block."""
        self._served = None
        if self._token is None:
            return True
        alive = self.state.alive
        if self.together(number, alive) is not alive:
            return False
        self._token, self._saved = None, {}
        return True

    # -- lanes that are let go --------------------------------------------------------

    def waits_for(self, number: int, mask: Mask | None) -> bool:
        """Handle lanes that reach a waiting loop: other lanes of their warps go first.

        Returns:
            Whether there are any.
        """
        state = self.state
        on = as_mask(mask)
        if self._served is not None and not (on & ~self._served).any():
            return False
        g = state.geometry
        warps = g.any_of_warp(np.broadcast_to(on, g.shape))
        mine = g.spread(warps)
        others = np.zeros(g.shape, bool)
        for at, lanes in state.groups.items():
            if at != number:
                others |= as_mask(lanes) & mine
        if not others.any():
            return False
        self._served = on if self._served is None else self._served | on
        self.let_go(others)
        return True

    def let_go(self, lanes: Mask) -> None:
        """Let lanes run before the others of their warps, until they exit or wait themselves."""
        self.renew(lanes)
        self.ahead = lanes

    def leaders(self, number: int, groups: Groups) -> Mask | None:
        """Return the lanes at a block whose warps have no lane at an earlier block."""
        g, mask = self.state.geometry, groups[number]
        earlier = [as_mask(m) for n, m in groups.items() if n < number]
        if not earlier:
            return mask
        lower = np.broadcast_to(np.logical_or.reduce(
            [np.broadcast_to(one, g.shape) for one in earlier]), g.shape)  # fmt: skip
        here: Mask = as_mask(mask) & ~g.spread(g.any_of_warp(lower))
        return here

    def free(self, groups: Groups) -> bool:
        """Release lanes that wait for others of their warps; return whether there were any."""
        waiting = [as_mask(m) & ~as_mask(self.leaders(n, groups)) for n, m in groups.items()]
        lanes = np.logical_or.reduce(
            [np.broadcast_to(one, self.state.geometry.shape) for one in waiting])  # fmt: skip
        if lanes.any():
            self.let_go(lanes)
        return bool(lanes.any())

    def next_ahead(self) -> tuple[int, Mask] | None:
        """Return the released lanes that run next."""
        if self.ahead is None:
            return None
        for number in sorted(self.state.groups):
            here = as_mask(self.state.groups[number]) & self.ahead
            if here.any():
                return number, here
        self.ahead = None
        return None

    def start(self, number: int, mask: Mask | None) -> None:
        """Handle lanes that execute a block."""
        self._save(number, mask)
        if number in self.facts.yields and self._served is not None:
            self._served = self._served & ~as_mask(mask)

    def came(self, number: int, mask: Mask | None) -> None:
        """Handle lanes that reach a block: released lanes wait at waiting loops."""
        if self.ahead is not None and number in self.facts.yields:
            self.ahead = self.ahead & ~as_mask(mask)
