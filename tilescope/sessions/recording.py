"""``session``: collects every launch inside a ``with`` in one report."""

import contextlib
import dataclasses
import linecache
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from kernels import Kernel
from kernels.machine_code.cubin import known_registers
from simulator import Hazard, Run, Source
from simulator.host_order import Order, Stream
from simulator.launch import listen
from simulator.memory.storage.module_state import ModuleMemory, keep
from simulator.observe.checks.array_footprint import ArrayFootprint

from ..check.policy import Policy, apply, set_aside
from ..gpu.prediction_inputs import Forecast
from .recorded_launch import Place, Predicted, RecordedLaunch

_WITH_LINES = 16
"""Launches of a kernel from one place whose counters by line are part of the JSON."""
_ELEMENT = re.compile(r"\[\d+\]")
_OWN = ("simulator", "kernels", "device", "tilescope", "numba", "triton", "cuda", "torch",
        "contextlib", "importlib", "runpy")  # fmt: skip
"""Packages whose frames are no place that launches: the user's is behind them."""


@dataclass
class Session:
    """Launches in the order in which they were made, and their order on a GPU.

    A launch outside ``with stream:`` is in the legacy default stream. A launch that accesses what
    an unordered one accesses has a ``host-order`` hazard.

    Attributes:
        set_aside: Number of ignored hazards of each place, by source comments.
        left_out: Number of hazards that the policy ignores, likewise.
    """

    launches: list[RecordedLaunch] = field(default_factory=list)
    order: Order = field(default_factory=Order, repr=False)
    set_aside: Counter[Place] = field(default_factory=Counter, repr=False)
    left_out: Counter[Place] = field(default_factory=Counter, repr=False)

    @property
    def hazards(self) -> list[Hazard]:
        """Hazards of all launches, and between copies."""
        own = [hazard for launch in self.launches for hazard in launch.run.hazards]
        return own + self.order.hazards

    def annotate(
        self, run: Run, checked: bool | str, forecast: Forecast | None, words: tuple[str, ...] = ()
    ) -> None:
        """Add to the last launch whether it was checked, its forecast, and a command's words."""
        if not self.launches or self.launches[-1].run is not run:
            return
        self.launches[-1] = dataclasses.replace(
            self.launches[-1], checked=checked, forecast=forecast, words=words
        )

    def judge(self, policy: Policy) -> None:
        """Apply a policy and source comments to all hazards."""
        self.set_aside += self._keep(lambda found, name: set_aside(policy, found, name)[0])
        self.left_out += self._keep(lambda found, _: apply(policy, found)[0])

    def _keep(self, chosen: Callable[[list[Hazard], str], list[Hazard]]) -> Counter[Place]:
        """Filter the hazards; return the number of removed ones by place."""
        before = self._found()
        for launch in self.launches:
            launch.run.hazards = chosen(launch.run.hazards, launch.kernel.name)
        self.order.hazards[:] = chosen(self.order.hazards, "")
        return before - self._found()

    def _found(self) -> Counter[Place]:
        """Return the number of hazards of each place; those between copies have none."""
        found = Counter({place: len(distinct(some)) for place, some in self.places().items()})
        found["", "", 0] = len(self.order.hazards)
        return found

    def stream(self, blocking: bool = True) -> Stream:
        """Create a stream, for ``with stream:``, ``record``, ``wait`` and ``synchronize``.

        Args:
            blocking: Whether it synchronises with the default stream, unlike
                ``cudaStreamNonBlocking``.
        """
        return self.order.stream(blocking)

    def synchronize(self) -> None:
        """Make the host wait for all launches."""
        self.order.synchronize()

    def show(self) -> Any:
        """Return all launches as one page, which Jupyter draws inline.

        Its ``save(file)`` writes it.

        Raises:
            NoTrace: No launch recorded a trace.
        """
        from ..view.launches import launches_page

        return launches_page(self.launches)

    def places(self) -> dict[Place, list[RecordedLaunch]]:
        """Return the launches of each kernel and place, in order of their first launch."""
        found: dict[Place, list[RecordedLaunch]] = {}
        for launch in self.launches:
            found.setdefault(launch.place, []).append(launch)
        return found

    def to_dict(self, capability: str = "9.0") -> dict[str, Any]:
        """JSON-ready: ``schema``, ``launches``, ``kernels`` by name and place; also ``copies``.

        The first 16 launches of each kernel and place have counters by line (``lines``), the others
        ``None``: a program may have thousands, of 50 kB each.

        ``capability``: compute capability for which registers are listed, where they are known.
        """
        places = self.places()
        kernels = [
            {"kernel": name, "file": file, "line": line, "launches": len(some),
             "hazards": sum(len(launch.run.hazards) for launch in some),
             "predicted_ms": Predicted.of(some).ms}
            | dict(zip(("registers", "registers_source"),
                       known_registers(some[0].kernel, capability), strict=True))
            for (name, file, line), some in places.items()
        ]  # fmt: skip
        detailed = {id(one) for some in places.values() for one in some[:_WITH_LINES]}
        launches = [launch.to_dict(id(launch) in detailed) for launch in self.launches]
        copies = [hazard.to_dict() for hazard in self.order.hazards]
        gone: dict[str, Any] = {
            "set_aside": self.set_aside.total(),
            "left_out": self.left_out.total(),
        }
        gone |= {"predicted": Predicted.of(self.launches).to_dict()}
        return {"schema": 1, "launches": launches, "kernels": kernels, "copies": copies} | gone


def distinct(launches: list[RecordedLaunch]) -> list[Hazard]:
    """Return the distinct hazards of launches of a kernel from one place, errors first.

    The same statements of several launches are one hazard, whichever elements they access.
    """
    found: dict[object, list[Hazard]] = {}
    for launch in launches:
        of_launch: dict[object, Hazard] = {}
        for hazard in launch.run.hazards:
            of_launch.setdefault(_statements(hazard), hazard)
        for statements, hazard in of_launch.items():
            found.setdefault(statements, []).append(hazard)
    made = [_of_launches(some, len(launches)) for some in found.values()]
    return sorted(made, key=lambda h: h.severity != "error")


def _statements(hazard: Hazard) -> object:
    return hazard.kind, _ELEMENT.sub("[]", hazard.message), *hazard.sources


def _of_launches(some: list[Hazard], launches: int) -> Hazard:
    """Return the first one, which says in how many of the launches it is."""
    if len(some) == launches:
        return some[0]
    return dataclasses.replace(
        some[0], notes=(*some[0].notes, f"in {len(some):,} of {launches:,} launches")
    )


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """Collect every ``simulator.launch`` inside a ``with``.

    Module variables persist between launches, as in one program on a GPU.
    """
    made = Session()

    def tell(kernel: Kernel, run: Run, touched: Sequence[ArrayFootprint]) -> None:
        source = user_line()
        checked = bool(run.checked)
        made.launches.append(RecordedLaunch(kernel, source.file, source.line, run, checked))
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
    """Return the innermost running line of the user's own code."""
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
