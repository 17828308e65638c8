"""What people disagree on: races that write equal values, and warp-synchronous code."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from simulator import Hazard

CHOICES = ("error", "warning", "ignore")
"""What a policy may say."""


@dataclass(frozen=True)
class Policy:
    """How severe the disputed hazards are; each is one of ``CHOICES``.

    Attributes:
        equal_writes: Writes of different threads to one place that all leave the same value.
        warp_synchronous: Races between lanes of one warp by different instructions, which
            older GPUs ran in step.
    """

    equal_writes: str = "warning"
    warp_synchronous: str = "warning"

    def severity(self, hazard: Hazard) -> str:
        """The hazard's severity under this policy, or ``ignore``."""
        disputed = hazard.row.case(hazard.case).policy
        return getattr(self, disputed) if disputed else hazard.severity


def apply(policy: Policy, hazards: Iterable[Hazard]) -> tuple[list[Hazard], int]:
    """Hazards as the policy sees them, errors first, and how many it leaves out."""
    judged = [(hazard, policy.severity(hazard)) for hazard in hazards]
    kept = [
        dataclasses.replace(hazard, severity=severity)
        for hazard, severity in judged
        if severity != "ignore"
    ]
    return sorted(kept, key=lambda h: h.severity != "error"), len(judged) - len(kept)
