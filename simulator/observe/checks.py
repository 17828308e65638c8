"""The checks that have nothing to work out: what they are told of is a hazard."""

from __future__ import annotations

from ..events import Apart, Observer
from ..hazards.findings import Findings
from ..memory.event import BadAccess


class MemoryCheck(Observer):
    """Accesses out of bounds, misaligned, of another address space, to what is read-only."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def bad_access(self, bad: BadAccess) -> None:
        """See ``Observer``."""
        self.findings.memory(*bad)


class BarrierCheck(Observer):
    """Barriers that the threads of a block do not come to together."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def apart(self, apart: Apart) -> None:
        """See ``Observer``."""
        self.findings.control.apart(apart)
