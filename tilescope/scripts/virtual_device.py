"""Stand-in for a GPU while a script runs: launches and memory."""

import itertools
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.adapter import as_array
from kernels.arguments.uninitialised import Unset, missing_of
from simulator import Device, Source
from simulator.gpus.table import Gpu
from simulator.host_checks import HostChecks
from simulator.host_order import Clock, Order
from simulator.host_order import Stream as Queue
from simulator.observe.checks.array_footprint import ArrayFootprint

from ..cli.progress import BRIEF, ProgressBar
from ..gpu.launch_forecasts import LaunchForecasts
from ..gpu.predicted_timeline import PredictedTimeline, StreamMoment, elapsed_ms
from ..gpu.prediction_inputs import Forecast
from ..host_calls.graphs import CaptureError, Captures
from ..host_calls.launch_words import launch_words
from ..programs.fixes import LaunchKeeper
from ..sessions.recording import user_line

ARCH = "compute_90"
CAPABILITY = (9, 0)
NAME = "H200, simulated by tilescope"
PROPERTIES = {
    "max_shared_mem": 232_448, "multiprocessor_count": 132, "max_num_regs": 65_536,
    "warpSize": 32, "sm_clock_rate": 1_980_000, "mem_clock_rate": 3_201_000, "mem_bus_width": 6144,
}  # fmt: skip
"""Of an H200, by the names that Triton gives them (data sheet, ``cuDeviceGetAttribute``)."""


_RECORDED = 32
"""Launches that are recorded, at most."""


class StopScriptError(BaseException):
    """The script made as many launches as it may."""


class RefusedError(NotImplementedError):
    """The script uses a feature without a stand-in."""


def refuse(what: str, instead: str = "") -> Callable[..., Any]:
    """Return a function that says that something has no stand-in."""

    def refused(*_: Any, **__: Any) -> Any:
        more = f"; {instead}" if instead else ""
        raise RefusedError(f"tilescope exec has no stand-in for {what}{more}")

    return refused


@dataclass
class VirtualDevice:
    """How a script's launches are simulated.

    Attributes:
        only: Names of the kernels that are checked; empty: all.
        max_launches: Launches after which the script is stopped; 0: none.
        traced: Whether to record launches that are checked: the first of those that are alike.
        sample: Of launches that are alike (kernel, shapes, types) so many are checked; 0: all.
        quiet: Whether no progress is shown.
        unchecked: Launches that were made without checks, by kernel.
        order: What orders them and copies: the session's.
        array: What makes an array of a front end's argument; PyTorch's stand-in has its own.
        printed: What gets the texts that kernels print.
        began: When the script began: progress is shown from two seconds on.
        gpu: The GPU that has to have what a block takes; by default an H200.
        forecasts: Predicts the time of each launch, where that is requested.
        on_launch: Gets each run, whether it was checked (``sampled``: one that is alike was), its
            forecast, if any, and the launch as words of a command.
        keeper: Keeps launches that had errors, for a search for fixes.
        device: Its memory: an address is one to all front ends.
        checks: Mistakes of the host's code.
        captures: Streams whose work is recorded for graphs.
        driver: Stand-ins of the driver's calls, once a front end needs them.
        timeline: Sums of predicted times, for events.
        tags: Which of PyTorch's tensors are on it, once the script imports PyTorch.
        extensions: The runtime of PyTorch's extensions, once the script builds one.
    """

    only: Collection[str] = ()
    max_launches: int = 0
    sample: int = 0
    schedule: str | int = "lockstep"
    traced: bool = False
    quiet: bool = True
    launches: int = 0
    unchecked: dict[str, int] = field(default_factory=dict)
    order: Order = field(default_factory=Order)
    array: Callable[[Any], Any] = as_array
    gpu: Gpu | None = None
    forecasts: LaunchForecasts | None = None
    on_launch: Callable[[simulator.Run, bool | str, Forecast | None, tuple[str, ...]], Any] = (
        lambda *_: None
    )
    keeper: LaunchKeeper | None = None
    printed: Callable[[str], Any] = sys.stdout.write
    began: float = field(default_factory=time.monotonic)
    device: Device = field(default_factory=Device)
    checks: HostChecks = field(default_factory=HostChecks)
    captures: Captures = field(default_factory=Captures)
    driver: dict[str, Callable[..., Any]] | None = None
    timeline: PredictedTimeline = field(default_factory=PredictedTimeline)
    tags: Any = None
    extensions: Any = None
    _launch_counts: dict[object, int] = field(default_factory=dict)

    def launch(
        self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
        shared_bytes: int = 0, stream: Any = None, **how: Any,
    ) -> simulator.Run:  # fmt: skip
        """``simulator.launch`` on the device, in a stream, with checks where they are wanted.

        What the kernel prints goes to standard output, at once.
        """
        if self.max_launches and self.launches >= self.max_launches:
            raise StopScriptError
        how["device"] = self.device
        self.launches += 1
        kinds = tuple(map(self._kind, args))
        kind = (kernel.sha256, kernel.entry, tuple(grid), tuple(block), kinds)
        self._launch_counts[kind] = count = self._launch_counts.get(kind, 0) + 1
        named = not self.only or kernel.name in self.only
        wanted = named and not (self.sample and count > self.sample)
        if not wanted:
            self.unchecked[kernel.name] = self.unchecked.get(kernel.name, 0) + 1
        forecast = None
        if self.forecasts is not None:
            forecast = self.forecasts.of(kernel, grid, block, args, shared_bytes, how)
        traced = self.traced and wanted and count == 1 and len(self._launch_counts) <= _RECORDED
        if self.keeper is not None:
            self.keeper.before(kernel, self.device)
        name = f"launch {self.launches:,}, {kernel.name}"
        bar = ProgressBar(name, self.quiet, self.began, "", BRIEF)
        queue = self.queue(stream)
        with self.order.on(queue), bar as progress:
            run = simulator.launch(
                kernel, grid, block, args, shared_bytes, self.schedule,
                "all" if wanted else "none", progress, trace=traced, workers="all",
                limits=self.gpu, **how,
            )  # fmt: skip
        if not named:
            run.hazards = [hazard for hazard in run.hazards if not hazard.row.may_continue]
        forecast = forecast.after(run) if forecast else None
        prediction = forecast.prediction if forecast else None
        self.timeline.add(queue, prediction.time_ms if prediction else None)
        if self.keeper is not None:
            self.keeper.after(kernel, grid, block, args, shared_bytes, how, run)
        words = () if count > 1 else launch_words(
            self.device, kernel, grid, block, args, shared_bytes, how
        )  # fmt: skip
        self.on_launch(run, wanted or ("sampled" if named else False), forecast, words)
        self.printed(run.output)
        return run

    @property
    def stopped(self) -> str:
        """Message for a script that made as many launches as it may."""
        word = "launch" if self.launches == 1 else "launches"
        return f"stopped after {self.launches:,} {word} (--max-launches)"

    def _kind(self, arg: Any) -> object:
        """Return a key that is equal for arguments of similar launches."""
        if isinstance(arg, np.ndarray):
            return arg.shape, arg.dtype.str, missing_of(arg) is not None
        word = int.from_bytes(arg, "little") if isinstance(arg, bytes) and len(arg) == 8 else arg
        found = self.device.find(int(word)) if isinstance(word, (int, np.integer)) else None
        return type(arg), found is not None and missing_of(found.array) is not None

    def queue(self, stream: Any) -> Queue:
        """Return a front end's stream as the order knows it; for ``None`` and 0 the current one."""
        found: Queue = getattr(stream, "queue", stream) or self.order.current
        return found

    def copied(
        self, what: str, stream: Any, waits: bool = False, *, to: Any = None, given: Any = None
    ) -> None:
        """Record a copy among arrays of GPU and host; ``waits``: whether the host waits."""
        some = (to, "its destination", "store"), (given, "its source", "load")
        self.did(what, stream, waits, [of for of in some if of[0] is not None])

    @staticmethod
    def move(to: Any, given: Any) -> None:
        """Copy bytes of the device, with what of them nothing has written."""
        missing = getattr(given, "missing", None)
        missing = None if missing is None else missing.copy()
        to[...] = np.array(given)
        if missing is not None and getattr(to, "missing", None) is not None:
            to.missing[...] = missing

    def host(self, array: Any, how: str) -> None:
        """Record that the host reads (``load``) or writes (``store``) memory of the GPU."""
        self.order.by_host(user_line(), [ArrayFootprint.whole(array, "its array", how)])

    def did(
        self, what: str, stream: Any, waits: bool, touched: Iterable[tuple[Any, str, str]]
    ) -> None:
        """Work on whole arrays: each with its name, and ``load`` or ``store``."""
        queue = self.queue(stream)
        self.enqueue(queue, what, user_line(), [ArrayFootprint.whole(*of) for of in touched])
        if waits:
            queue.synchronize()

    def enqueue(
        self, queue: Queue, what: str, source: Source, touched: Sequence[ArrayFootprint]
    ) -> None:
        """Order work that is no launch in a stream; its time is not predicted."""
        self.timeline.add(queue, None)
        with self.order.on(queue):
            self.order.work(what, source, touched)


class DeviceArray(Unset):
    """Memory of the simulated GPU as Numba's users know it: a NumPy array."""

    def is_c_contiguous(self) -> bool:
        """Whether the array is contiguous in this order (Numba's name)."""
        return self.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        """Whether the array is contiguous in this order (Numba's name)."""
        return self.flags.f_contiguous

    @property
    def alloc_size(self) -> int:
        """Bytes."""
        return self.nbytes


_EVENTS = itertools.count()


class SimulatedStream:
    """A queue of work as front ends have them: all of it is done when it is asked for."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def synchronize(self) -> None:
        """Make the host wait."""
        self.queue.synchronize()

    def query(self) -> bool:
        """Whether all of it is done."""
        self.synchronize()
        return True


class SimulatedEvent:
    """A moment in a stream."""

    def __init__(self, machine: VirtualDevice) -> None:
        self._machine, self._number = machine, next(_EVENTS)
        self.moment: Clock = {}
        self.is_recorded = False
        self.predicted: StreamMoment | None = None

    def record(self, stream: Any = None) -> None:
        """Record the event: it completes when all earlier work of the stream has."""
        queue = self._machine.queue(stream)
        if not self._machine.captures.record(self._number, queue):
            self.moment, self.is_recorded = queue.record(), True
            self.predicted = self._machine.timeline.moment(queue)

    def wait(self, stream: Any = None) -> None:
        """Make a stream wait for the event.

        Raises:
            CaptureError: The stream is captured, and the event is not.
        """
        queue = self._machine.queue(stream)
        if self._machine.captures.wait(self._number, queue):
            return
        if self._machine.captures.of(queue):
            raise CaptureError("a captured stream waits for an event that is not captured")
        queue.wait(self.moment)

    def synchronize(self) -> None:
        """Make the host wait."""
        self._machine.order.waits(self.moment)

    def query(self) -> bool:
        """Whether it has come to pass."""
        self.synchronize()
        return True

    def elapsed_time(self, other: "SimulatedEvent") -> float:
        """Predicted milliseconds up to a later event; see ``elapsed_ms`` for what is not predicted.

        Without a GPU to predict (``--predict``) there is no time: not a number.
        """
        return elapsed_ms(self.predicted, other.predicted)


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def setting(names: Mapping[str, Any]) -> type:
    """Return a class with some attributes, for what scripts only read."""
    return type("Properties", (), dict(names))
