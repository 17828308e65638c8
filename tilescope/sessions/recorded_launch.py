"""One launch of a session, and the place in the user's code that made it."""

from dataclasses import dataclass
from typing import Any

from kernels import Kernel
from simulator import Run

Place = tuple[str, str, int]
"""A kernel's name, and the file and line that launch it."""


@dataclass(frozen=True)
class RecordedLaunch:
    """One launch of a session.

    Attributes:
        kernel: What was launched.
        file: Where, in the user's own code; ``line`` of it.
        run: What it did.
    """

    kernel: Kernel
    file: str
    line: int
    run: Run

    @property
    def place(self) -> Place:
        """The kernel's name, and where it was launched."""
        return self.kernel.name, self.file, self.line

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what ``Run.to_dict`` has, and the place."""
        return {"file": self.file, "line": self.line} | self.run.to_dict()
