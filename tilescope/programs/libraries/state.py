"""State of CUDA's libraries in one process: handles, and calls computed on the host."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from simulator import Source

_FIRST = 0x7E0000000000
"""The first handle: an address that no process on Linux maps."""


@dataclass
class LibraryState:
    """Handles by number, cuFFT's plans likewise, and computed calls by library, function, line."""

    handles: dict[int, Any] = field(default_factory=dict)
    plans: dict[int, Any] = field(default_factory=dict)
    calls: Counter[tuple[str, str, Source]] = field(default_factory=Counter)
    _next: int = _FIRST

    def add(self, made: Any) -> int:
        """Return the handle of a new object."""
        self._next += 64
        self.handles[self._next] = made
        return self._next

    def count(self, library: str, function: str, source: Source) -> None:
        """Count a call that is computed on the host."""
        self.calls[library, function, source] += 1
