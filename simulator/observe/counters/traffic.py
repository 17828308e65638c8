"""What accesses of one kind cost."""

from __future__ import annotations

from dataclasses import dataclass

from .banks import SECTOR


@dataclass(frozen=True)
class Traffic:
    """Accesses of one kind to one space.

    Attributes:
        requests: Instructions of a warp, with any lane on.
        accesses: Threads that took part, summed.
        bytes: Bytes they asked for, summed.
        distinct_bytes: Distinct bytes a request touches, summed.
        sectors: 32-byte sectors a request touches, summed (global and local memory).
        wavefronts: Passes through the 32 banks of shared memory, see ``bank_passes``.
        bank_conflicts: Wavefronts beyond one for each group of lanes.
        ideal_sectors: Sectors, were the distinct bytes side by side and aligned.
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
        """The figures, in order of declaration."""
        return tuple(self.__dict__.values())

    @property
    def sectors_per_request(self) -> float:
        """32-byte sectors a request touches, on average."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def coalescing(self) -> float:
        """Share of the sectors' bytes that some lane asked for; 1.0 wastes nothing."""
        return self.distinct_bytes / (self.sectors * SECTOR) if self.sectors else 1.0

    def to_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return dict(self.__dict__)


NOTHING = Traffic()
