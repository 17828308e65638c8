"""``session``: every launch made inside of it, in one report."""

import contextlib
import linecache
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from kernels import Kernel
from simulator import Hazard, Run, Source
from simulator.host_order import Order, Stream
from simulator.launch import listen
from simulator.memory.storage.module_state import ModuleMemory, keep
from simulator.observe.checks.array_footprint import ArrayFootprint

from ..check.policy import Policy, apply, set_aside
from .recorded_launch import Place, RecordedLaunch

_OWN = ("simulator", "kernels", "device", "tilescope", "numba", "triton", "cuda", "torch",
        "contextlib", "importlib", "runpy")  # fmt: skip
"""Packages whose frames are no place that launches: the user's is behind them."""


@dataclass
class Session:
    """Launches in the order in which they were made, and what orders them on a GPU.

    A launch outside ``with stream:`` is in the legacy default stream. One that touches what
    another touched which it is not ordered after is a ``host-order`` hazard of it.

    Attributes:
        set_aside: How many hazards of a place comments say are to be ignored.
        left_out: How many the policy leaves out.
    """

    launches: list[RecordedLaunch] = field(default_factory=list)
    order: Order = field(default_factory=Order, repr=False)
    set_aside: Counter[Place] = field(default_factory=Counter, repr=False)
    left_out: Counter[Place] = field(default_factory=Counter, repr=False)

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of all launches, and between copies."""
        own = [hazard for launch in self.launches for hazard in launch.run.hazards]
        return own + self.order.hazards

    def judge(self, policy: Policy) -> None:
        """Keep the hazards that a policy and comments leave, for all that tells of them."""
        self.set_aside += self._keep(lambda found, name: set_aside(policy, found, name)[0])
        self.left_out += self._keep(lambda found, _: apply(policy, found)[0])

    def _keep(self, chosen: Callable[[list[Hazard], str], list[Hazard]]) -> Counter[Place]:
        """Keep the hazards that are chosen; how many others there were."""
        before = self._found()
        for launch in self.launches:
            launch.run.hazards = chosen(launch.run.hazards, launch.kernel.name)
        self.order.hazards[:] = chosen(self.order.hazards, "")
        return before - self._found()

    def _found(self) -> Counter[Place]:
        """How many hazards each place has; those between copies are of none."""
        found = Counter({place: len(distinct(some)) for place, some in self.places().items()})
        found["", "", 0] = len(self.order.hazards)
        return found

    def stream(self, blocking: bool = True) -> Stream:
        """A stream, for ``with stream:``, with ``record``, ``wait`` and ``synchronize``.

        Args:
            blocking: Whether it and the default stream wait for each other; not so with
                ``cudaStreamNonBlocking``.
        """
        return self.order.stream(blocking)

    def synchronize(self) -> None:
        """The host waits for all that was launched."""
        self.order.synchronize()

    def show(self) -> Any:
        """All launches as one page, drawn inline in Jupyter; its ``save(file)`` writes it.

        Raises:
            NoTrace: None was launched with ``trace=True``.
        """
        from ..view.launches import launches_page

        return launches_page(self.launches)

    def places(self) -> dict[Place, list[RecordedLaunch]]:
        """Launches of one kernel from one place together, in the order of their first ones."""
        found: dict[Place, list[RecordedLaunch]] = {}
        for launch in self.launches:
            found.setdefault(launch.place, []).append(launch)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: ``schema``, ``launches``, ``kernels`` by name and place; also ``copies``."""
        kernels = [
            {"kernel": name, "file": file, "line": line, "launches": len(some),
             "hazards": sum(len(launch.run.hazards) for launch in some)}
            for (name, file, line), some in self.places().items()
        ]  # fmt: skip
        launches = [launch.to_dict() for launch in self.launches]
        copies = [hazard.to_dict() for hazard in self.order.hazards]
        gone = {"set_aside": self.set_aside.total(), "left_out": self.left_out.total()}
        return {"schema": 1, "launches": launches, "kernels": kernels, "copies": copies} | gone


def distinct(launches: list[RecordedLaunch]) -> list[Hazard]:
    """The hazards of launches, errors first, each once."""
    found: dict[object, Hazard] = {}
    for launch in launches:
        for hazard in launch.run.hazards:
            found.setdefault((hazard.kind, hazard.message, *hazard.sources), hazard)
    return sorted(found.values(), key=lambda h: h.severity != "error")


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """Collect every ``simulator.launch`` made inside a ``with``.

    Module variables keep what launches leave in them, as in one program on a GPU.
    """
    made = Session()

    def tell(kernel: Kernel, run: Run, touched: Sequence[ArrayFootprint]) -> None:
        source = user_line()
        made.launches.append(RecordedLaunch(kernel, source.file, source.line, run))
        made.order.work(f"the launch of {kernel.name}", source, touched, run.hazards)

    with listen(tell), keep(ModuleMemory()):
        yield made


_places: list[Callable[[], Source]] = []


@contextlib.contextmanager
def placed_at(find: Callable[[], Source]) -> Iterator[None]:
    """Inside, launches and copies are made at the line that ``find`` gives: a C++ program's."""
    _places.append(find)
    try:
        yield
    finally:
        _places.pop()


def user_line() -> Source:
    """The innermost line of code that is running and the user's own."""
    if _places:
        return _places[-1]()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _OWN and not package.startswith("_numba"):
            file, line = os.path.abspath(frame.f_code.co_filename), frame.f_lineno
            return Source(file, line, linecache.getline(file, line).strip())
        frame = frame.f_back
    return Source("", 0)
