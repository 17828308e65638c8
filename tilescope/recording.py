"""``session``: every launch made inside of it, in one report."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from kernels import Kernel
from simulator import Hazard, Run
from simulator.launch import listen

_OWN = ("simulator", "kernels", "device", "tilescope", "numba", "triton", "cuda", "torch",
        "contextlib", "importlib", "runpy")  # fmt: skip
"""Packages whose frames are no place that launches: the user's is behind them."""


@dataclass(frozen=True)
class Launch:
    """One launch.

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
    def place(self) -> tuple[str, str, int]:
        """The kernel's name, and where it was launched."""
        return self.kernel.name, self.file, self.line

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what ``Run.to_dict`` has, and the place."""
        return {"file": self.file, "line": self.line} | self.run.to_dict()


@dataclass
class Session:
    """Launches in the order in which they were made."""

    launches: list[Launch] = field(default_factory=list)

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of all launches."""
        return [hazard for launch in self.launches for hazard in launch.run.hazards]

    def places(self) -> dict[tuple[str, str, int], list[Launch]]:
        """Launches of one kernel from one place together, in the order of their first ones."""
        found: dict[tuple[str, str, int], list[Launch]] = {}
        for launch in self.launches:
            found.setdefault(launch.place, []).append(launch)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: ``schema``, ``launches``, and ``kernels`` by name and place."""
        kernels = [
            {"kernel": name, "file": file, "line": line, "launches": len(some),
             "hazards": sum(len(launch.run.hazards) for launch in some)}
            for (name, file, line), some in self.places().items()
        ]  # fmt: skip
        launches = [launch.to_dict() for launch in self.launches]
        return {"schema": 1, "launches": launches, "kernels": kernels}


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """Collect every ``simulator.launch`` made inside a ``with``."""
    made = Session()

    def tell(kernel: Kernel, run: Run) -> None:
        file, line = _caller()
        made.launches.append(Launch(kernel, file, line, run))

    with listen(tell):
        yield made


def _caller() -> tuple[str, int]:
    """The innermost line of code that is the user's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _OWN and not package.startswith("_numba"):
            return os.path.abspath(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back
    return "", 0
