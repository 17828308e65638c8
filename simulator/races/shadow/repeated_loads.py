"""Loads that come again as they did, since all threads of each block last met.

Nothing that was before such a barrier races with what comes after it. So an access of a block's own
memory races as it did before, if all accesses since the barrier are those that there were then; and
if nothing else is between them that puts threads in order.
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
    """Accesses by what came before them, from the last barrier on."""

    def __init__(self) -> None:
        self._after: dict[tuple[object, ...], int] = {}
        self._state: int | None = None
        self._now = 0

    def meet(self, now: int) -> None:
        """All threads of each block meet at a barrier."""
        self._state, self._now = 0, now

    def pass_over(self, site: Site, now: int) -> None:
        """An access of an array, which puts nobody in order if it is a plain one."""
        if self._now == now - 1 and not site.strong and not site.asynchronous:
            self._now = now

    def again(self, event: AccessEvent, now: int) -> bool:
        """Whether an access of the blocks' own memory came before, behind the same accesses."""
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
    """Equal for equal arrays; of what is too long nothing."""
    if array is None:
        return ()
    if isinstance(array, LaneAddressList) or array.size > _LONGEST:
        return None
    return array.shape, array.tobytes()
