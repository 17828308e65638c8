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
        kernel: The kernel.
        file: File of the launch, in the user's own code.
        line: Line of the launch.
        run: The result.
    """

    kernel: Kernel
    file: str
    line: int
    run: Run

    @property
    def place(self) -> Place:
        """Name of the kernel, with file and line of the launch."""
        return self.kernel.name, self.file, self.line

    def to_dict(self) -> dict[str, Any]:
        """Return ``Run.to_dict`` with the place."""
        return {"file": self.file, "line": self.line} | self.run.to_dict()
