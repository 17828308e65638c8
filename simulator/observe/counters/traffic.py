"""Traffic of accesses of one kind."""

from __future__ import annotations

from dataclasses import dataclass

from .banks import SECTOR


@dataclass(frozen=True)
class Traffic:
    """Accesses of one kind to one space.

    Attributes:
        requests: Warp-level memory instructions with any active lane.
        accesses: Active threads, summed over requests.
        bytes: Requested bytes, summed over accesses.
        distinct_bytes: Distinct bytes of each request, summed.
        sectors: 32-byte sectors of each request, summed (global and local memory).
        wavefronts: Passes through the 32 banks of shared memory: see ``bank_passes``.
        bank_conflicts: Wavefronts beyond one for each group of lanes.
        ideal_sectors: Sectors if the distinct bytes were contiguous and aligned.
    """

    requests: int = 0
    accesses: int = 0
    bytes: int = 0
    distinct_bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0
    ideal_sectors: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """Return the figures in order of declaration."""
        return tuple(self.__dict__.values())

    @property
    def sectors_per_request(self) -> float:
        """Mean number of 32-byte sectors of a request."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def coalescing(self) -> float:
        """Requested bytes as a share of the sectors' bytes; 1.0 wastes nothing."""
        return self.distinct_bytes / (self.sectors * SECTOR) if self.sectors else 1.0

    def to_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return dict(self.__dict__)


NOTHING = Traffic()
