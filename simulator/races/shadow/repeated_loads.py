"""Accesses that repeat a sequence since the last barrier of each block.

Nothing before a full barrier races with anything after it. If all accesses since the barrier equal
an earlier sequence, and nothing else synchronised, an access of a block's own memory races exactly
as it did then.
"""

from __future__ import annotations

from ...core.geometry import Addresses, Mask
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site

_LONGEST = 1 << 14
"""Of longer addresses and masks nothing is kept."""
_MAX_LOADS = 4096
"""Accesses that are kept."""


class Repeats:
    """Accesses by their predecessors since the last barrier."""

    def __init__(self) -> None:
        self._after: dict[tuple[object, ...], int] = {}
        self._state: int | None = None
        self._now = 0

    def meet(self, now: int) -> None:
        """Handle a full barrier of every block."""
        self._state, self._now = 0, now

    def pass_over(self, site: Site, now: int) -> None:
        """Handle an access to an array, which synchronises nothing if it is weak."""
        if self._now == now - 1 and not site.strong and not site.asynchronous:
            self._now = now

    def again(self, event: AccessEvent, now: int) -> bool:
        """Whether an access of the blocks' own memory occurred after the same sequence before."""
        site, address, mask = event.site, event.address, event.mask
        plain = self._now == now - 1 and not site.strong and not site.asynchronous
        contents = _content(address), _content(mask)
        if self._state is None or not plain or None in contents:
            self._state = None
            return False
        self._now = now
        key = self._state, site.number, *contents
        known = key in self._after
        self._state = None
        if known or len(self._after) < _MAX_LOADS:
            self._state = self._after.setdefault(key, len(self._after) + 1)
        return known


def _content(array: Addresses | LaneAddressList | Mask | None) -> tuple[object, ...] | None:
    """Return a key that is equal for equal arrays; ``None`` for long ones."""
    if array is None:
        return ()
    if isinstance(array, LaneAddressList) or array.size > _LONGEST:
        return None
    return array.shape, array.tobytes()
