"""What stands in for a GPU while a script runs: how launches are made, what memory is."""

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.unset import Unset, unset

from ..progress import ProgressBar

ARCH = "compute_90"
CAPABILITY = (9, 0)
NAME = "H200, simulated by tilescope"
PROPERTIES = {
    "max_shared_mem": 232_448, "multiprocessor_count": 132, "max_num_regs": 65_536,
    "warpSize": 32, "sm_clock_rate": 1_980_000, "mem_clock_rate": 3_201_000, "mem_bus_width": 6144,
}  # fmt: skip
"""Of an H200, by the names that Triton gives them (data sheet, ``cuDeviceGetAttribute``)."""


class StopScriptError(BaseException):
    """The script made as many launches as it may."""


class RefusedError(NotImplementedError):
    """What a script asks for has no stand-in."""


def refuse(what: str, instead: str = "") -> Callable[..., Any]:
    """A function that says that something has no stand-in."""

    def refused(*_: Any, **__: Any) -> Any:
        more = f"; {instead}" if instead else ""
        raise RefusedError(f"tilescope exec has no stand-in for {what}{more}")

    return refused


@dataclass
class Machine:
    """How a script's launches are simulated.

    Attributes:
        only: Names of the kernels that are checked; empty: all.
        most: Launches after which the script is stopped; 0: none.
        traced: Whether to record the first launch that is checked.
        sample: Of launches that are alike (kernel, shapes, types) so many are checked; 0: all.
        quiet: Whether no progress is shown.
        unchecked: Launches that were made without checks, by kernel.
    """

    only: Collection[str] = ()
    most: int = 0
    sample: int = 0
    schedule: str | int = "lockstep"
    traced: bool = False
    quiet: bool = True
    launches: int = 0
    unchecked: dict[str, int] = field(default_factory=dict)
    _alike: dict[object, int] = field(default_factory=dict)

    def launch(
        self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
        shared_bytes: int = 0, **how: Any,
    ) -> simulator.Run:  # fmt: skip
        """``simulator.launch``, with checks where they are wanted."""
        if self.most and self.launches >= self.most:
            raise StopScriptError
        self.launches += 1
        kind = (kernel.sha256, kernel.entry, tuple(grid), tuple(block), tuple(map(_kind, args)))
        self._alike[kind] = seen = self._alike.get(kind, 0) + 1
        wanted = (not self.only or kernel.name in self.only) and not (
            self.sample and seen > self.sample
        )
        if not wanted:
            self.unchecked[kernel.name] = self.unchecked.get(kernel.name, 0) + 1
        traced, self.traced = self.traced and wanted, self.traced and not wanted
        with ProgressBar(kernel.name, self.quiet) as progress:
            return simulator.launch(
                kernel, grid, block, args, shared_bytes, self.schedule,
                "all" if wanted else "none", progress, trace=traced, workers="all", **how,
            )  # fmt: skip


def _kind(arg: Any) -> object:
    return (arg.shape, arg.dtype.str) if isinstance(arg, np.ndarray) else type(arg)


class DeviceArray(Unset):
    """Memory of the simulated GPU as Numba's and CuPy's users know it: a NumPy array."""

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """The contents in a new array, or in ``ary``."""
        found = np.array(self, copy=True, subok=False, order="K")
        if ary is None:
            return found
        ary[...] = found
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Take the contents of ``ary``."""
        self[...] = np.asarray(ary).reshape(self.shape)

    def is_c_contiguous(self) -> bool:
        """As Numba's arrays say it."""
        return self.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        """As Numba's arrays say it."""
        return self.flags.f_contiguous

    @property
    def alloc_size(self) -> int:
        """Bytes."""
        return self.nbytes


def device_array(shape: Any, dtype: Any = np.float64, order: str = "C") -> Any:
    """Memory that nothing has written."""
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    made = unset(sizes if order == "C" else sizes[::-1], dtype).view(DeviceArray)
    return made if order == "C" else made.T


def to_device(values: Any) -> Any:
    """Memory with a copy of some values."""
    return np.array(values, copy=True, order="K").view(DeviceArray)


@dataclass
class Stream:
    """A queue of work: all of it is done when it is asked for."""

    number: int = field(default_factory=functools.partial(next, itertools.count(1)))

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    sync = synchronize

    def __bool__(self) -> bool:
        return True


class Event:
    """A moment of which the time is not known: there is no GPU."""

    def record(self, stream: Any = 0) -> None:
        """Nothing to note."""

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def wait(self, stream: Any = 0) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """Whether it has come to pass."""
        return True

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds: not a number, for nothing was timed."""
        return float("nan")


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def setting(names: Mapping[str, Any]) -> type:
    """A class with some attributes, for what scripts only read."""
    return type("Properties", (), dict(names))
