"""Which engine runs a launch: NumPy, or native code where that pays.

``auto`` begins in NumPy. If a launch takes more than a tenth of a second of CPU time, and native
code would need half of that at most, it begins anew in native code. Short launches of one kernel
are added up: once they have taken half a second together, the next one begins in native code if
that would have needed half of it. What native code could not run to its end is not tried again in
the same shape.

What stays in NumPy takes native forms of single instructions (``ufuncs``) once it has taken as long
as their compilation.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from kernels.arguments.values import Value
from kernels.errors import LaunchError

from ..compile.ir import Compute, MemoryOp
from ..compile.program import CompiledBlock, Program
from ..events import Dispatcher
from ..execute.batches import Progress
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.shadow.read_write_params import in_place
from . import jit
from .block_ranges import GaveUp
from .compiled_kernel import is_compiled, kernel_text
from .eligibility import why_not_launch
from .engine import run
from .row_calls import is_called_back
from .ufuncs import substitution

AUTO, NUMPY, NATIVE = "auto", "numpy", "native"
PATIENCE = 0.1
"""CPU seconds that a launch runs in NumPy before native code is considered."""
MARGIN = 0.5
"""Estimated native time at which to change over, as a share of the time so far; or time to prepare
native forms."""
_BLOCK, _STEP, _ACCESS, _UNIT, _CALL = 20e-9, 3e-9, 250e-9, 300e-9, 15e-6
"""Seconds of native code for a warp: of a basic block, of each step in it, of an access, of
the function unit, of a call of NumPy; measured where NumPy adds small arrays in ``_ADDITION``
seconds (AMD EPYC)."""
_LONG_SUM = 0.5
"""CPU seconds that short launches together run in NumPy before native code is considered: the
first compilation of a machine, with the runtime's own functions, takes 0.6."""
_COMPILATION = 5e-4
"""Seconds that a step takes to be compiled for the first time (AMD EPYC)."""
_ADDITION = 3.4e-7
_LOOKS = 8
"""Looks at the costs while the time of a launch doubles."""

_WORTH = 2.0
"""Seconds that native code would save before ``MissedTime`` says so."""


@dataclass
class MissedTime:
    """Launches in NumPy that native code would have run in less time, had it been there.

    Attributes:
        launches: CPU seconds in NumPy and the estimate of native ones, of each launch.
        why: Why there is no native code.
    """

    launches: list[list[float]] = field(default_factory=list)
    why: str = ""

    @property
    def note(self) -> str:
        """Time that native code would save, in one line; empty if that is little."""
        spent, needed = map(sum, zip([0.0, 0.0], *self.launches, strict=True))
        if spent - needed < _WORTH:
            return ""
        duration = f"about {needed:.1f} s" if needed >= 0.1 else "less than 0.1 s"
        return f"{self.why}; {spent:.0f} s in NumPy would be {duration} in native code"


_preferred = ContextVar("preferred engine", default=AUTO)
"""The engine of launches for which ``auto`` is asked."""
_missed: ContextVar[MissedTime | None] = ContextVar("missed time", default=None)

_Done = tuple[Observers, dict[int, Allocation]]


class ChangeEngine(Exception):
    """A launch that runs in NumPy is to begin anew in native code."""


@contextlib.contextmanager
def preferred(engine: str) -> Iterator[MissedTime]:
    """Have an engine run all launches inside a ``with`` that do not name one themselves.

    Yields:
        What these launches would gain by native code, if it is not installed.

    Raises:
        LaunchError: There is no such engine, or it is not installed.
    """
    check_engine(engine)
    missed = MissedTime()
    tokens = _preferred.set(engine), _missed.set(missed)
    try:
        yield missed
    finally:
        _preferred.reset(tokens[0])
        _missed.reset(tokens[1])


def check_engine(engine: str) -> None:
    """Raise an error if there is no such engine, or it is not installed.

    Raises:
        LaunchError: It is.
    """
    if engine not in (AUTO, NUMPY, NATIVE):
        raise LaunchError(f"engine is 'auto', 'numpy' or 'native', not {engine!r}")
    if engine == NATIVE and (why := jit.why_unavailable()):
        raise LaunchError(f"engine 'native': {why}")


def may_be_native(engine: str) -> bool:
    """Whether the engine that was asked for allows native code."""
    return _wanted(engine) != NUMPY


def _wanted(engine: str) -> str:
    return _preferred.get() if engine == AUTO else engine


class EngineChoice:
    """The choice for one launch.

    Args:
        launch: The launch; ``checks``: what is looked for; ``engine``: what was asked for.
        trace: Its trace, if there is one; ``shared``: whether processes share it.

    Attributes:
        note: Why native code does not run it, as far as that is known.
        missed: Where its time is noted that native code would save, were it installed.
    """

    def __init__(
        self, launch: PreparedLaunch, checks: Collection[str], engine: str, trace: object,
        shared: bool,
    ) -> None:  # fmt: skip
        engine = _wanted(engine)
        self.launch, self.checks, self.engine = launch, checks, engine
        self.memory: dict[str, str] = launch.program.memo("engine", launch.grid, launch.block)
        self.note = ""
        self.missed: MissedTime | None = None
        self._watch: _Watch | None = None
        if engine == NUMPY:
            return
        if trace or shared:
            self.stay("a trace is recorded" if trace else "several processes share the launch")
        elif why := jit.why_unavailable():
            self.stay(why)
            self.missed = _missed.get()
        elif engine == AUTO and "gave up" in self.memory:
            self.stay(self.memory["gave up"])

    def stay(self, why: str) -> None:
        """Let NumPy run the launch, and note why."""
        self.engine, self.note = NUMPY, why

    def run_at_once(self, progress: Progress | None) -> _Done | None:
        """Run natively, if that was asked for, or paid before; ``None``: NumPy begins."""
        known = "pays" in self.memory and is_compiled(self.launch.program, self.launch.block)
        if self.engine == NATIVE or (
            self.engine == AUTO and (known or self._time.is_long(self.launch))
        ):
            return self.run_instead(progress)
        due = self.launch.substituted and self._forms_are_due(0.0)
        if due and (self.engine == NUMPY or not self._time.may_become_long(self.launch)):
            self.substitute(0.0)
        return None

    def run_instead(self, progress: Progress | None) -> _Done | None:
        """Run natively; ``None``: native code gave up, and NumPy has to begin."""
        try:
            tracked: set[int] = self.launch.program.memo("tracked").setdefault("arrays", set())
            tracked.update(arrays_in_place(self.launch))
            done = run(self.launch, self.checks, progress, tracked)
        except GaveUp as why:
            self.memory["gave up"] = str(why)
            self.stay(str(why))
            return None
        if self.engine == AUTO:
            self.memory["pays"] = "yes"
        return done

    def substitute(self, elapsed: float) -> bool:
        """Let native forms stand in for NumPy's functions from now on, if that pays.

        ``elapsed``: seconds of this launch; those of earlier ones of the program are added.

        Returns:
            Whether they do so now, and did not before.
        """
        program = self.launch.program
        if not self._forms_are_due(elapsed) or jit.why_unavailable():
            return False
        needed = substitution.preparation_seconds(program) * _slowness()
        program.substitutes.least = needed / MARGIN
        if not self._forms_are_due(elapsed):
            return False
        substitution.substitute(program)
        program.analysis(_numpy_times).clear()  # NumPy is another engine from now on
        return True

    def _forms_are_due(self, elapsed: float) -> bool:
        known = self.launch.program.substitutes
        return not known.tried and known.seconds + elapsed > max(PATIENCE, known.least)

    def watch(self, dispatcher: Dispatcher) -> None:
        """Have a launch that NumPy begins change over, if that may pay."""
        if self.launch.substituted:
            self._watch = _Watch(self)
            dispatcher.watch_blocks(self._watch.block_executed)

    def ended(self) -> None:
        """Add the time of the last attempt in NumPy to that of launches like this one."""
        if self._watch is None:
            return
        seconds = time.thread_time() - self._watch.began
        self.launch.program.substitutes.seconds += seconds
        if self.engine == AUTO:
            self._time.add(seconds, self._watch.warps)

    @functools.cached_property
    def _time(self) -> _NumpyTime:
        launch = self.launch
        kind = launch.block, math.prod(launch.grid).bit_length()
        return launch.program.analysis(_numpy_times)[kind]

    @functools.cached_property
    def why_not(self) -> str:
        """Why native code cannot run the launch; empty if it may."""
        launch = self.launch
        code = kernel_text(launch.program, launch.block)
        if isinstance(code, str):
            return code
        return why_not_launch(launch, self.checks, launch.allocations())

    @functools.cached_property
    def missed_seconds(self) -> list[float] | None:
        """The launch's entry in ``MissedTime``; ``None``: native code is there, or not wanted."""
        if self.missed is None:
            return None
        self.missed.why = self.note
        self.missed.launches.append([0.0, 0.0])
        return self.missed.launches[-1]


@dataclass
class _NumpyTime:
    """CPU seconds of launches of a kernel in NumPy: of one shape of block, and grids of one size.

    Attributes:
        seconds: Of all of them.
        warps: How many warps executed each basic block.
    """

    seconds: float = 0.0
    warps: list[int] = field(default_factory=list)

    def add(self, seconds: float, warps: list[int]) -> None:
        """Add a launch."""
        self.seconds += seconds
        self.warps = [sum(pair) for pair in zip(self.warps or [0] * len(warps), warps, strict=True)]

    def is_long(self, launch: PreparedLaunch) -> bool:
        """Whether native code takes so much less that it should run the next launch."""
        return (
            self.seconds > self._least(launch)
            and self._favours_native(launch)
            and not isinstance(kernel_text(launch.program, launch.block), str)
        )

    def may_become_long(self, launch: PreparedLaunch) -> bool:
        """Whether native code may run a later launch, for all that is known."""
        return self.seconds <= PATIENCE or (
            self.seconds <= self._least(launch) and self._favours_native(launch)
        )

    def _least(self, launch: PreparedLaunch) -> float:
        if self.seconds <= _LONG_SUM or is_compiled(launch.program, launch.block):
            return _LONG_SUM
        steps = sum(len(block.steps) for block in launch.program.blocks)
        return _LONG_SUM + _COMPILATION * steps * _slowness()

    def _favours_native(self, launch: PreparedLaunch) -> bool:
        return native_seconds(launch.program, self.warps) < MARGIN * self.seconds


def _numpy_times(_: Program) -> defaultdict[object, _NumpyTime]:
    return defaultdict(_NumpyTime)


def native_seconds(program: Program, warps: list[int]) -> float:
    """Estimate the time of native code from the number of warps that execute each basic block."""
    costs = program.analysis(_costs)
    return sum(n * cost for n, cost in zip(warps, costs, strict=True)) * _slowness()


def arrays_in_place(launch: PreparedLaunch) -> list[int]:
    """Return the arrays that a launch reads and writes through one parameter, by number."""
    values = launch.arguments.values
    given = [values[number] for number in launch.program.analysis(_in_place)]
    return [v.addresses[0].array for v in given if isinstance(v, Value) if len(v.addresses) == 1]


def _in_place(program: Program) -> list[int]:
    functions = {b.block.function.name: b.block.function for b in program.blocks}
    return in_place(functions, program.sites)


@functools.cache
def _slowness() -> float:
    """How much slower this machine is than the one of ``_ADDITION``."""
    small, began = np.zeros(8, np.float32), time.thread_time()
    for _ in range(1000):
        np.add(small, small)
    return (time.thread_time() - began) / 1000 / _ADDITION


def _costs(program: Program) -> list[float]:
    return [_cost(block) for block in program.blocks]


def _cost(block: CompiledBlock) -> float:
    """Seconds of native code for a warp that executes a basic block."""
    accesses = sum(isinstance(step, MemoryOp) for step in block.steps)
    calls = sum(map(is_called_back, block.steps))
    computed = [step for step in block.steps if isinstance(step, Compute)]
    unit = sum(step.op.approximate for step in computed)
    steps = _BLOCK + _STEP * len(block.steps)
    return steps + _ACCESS * accesses + _UNIT * unit + _CALL * calls


class _Watch:
    """Looks, while NumPy runs a launch, whether native code would be the faster one."""

    def __init__(self, choice: EngineChoice) -> None:
        self.choice, self.is_settled = choice, False
        self._restart()

    def _restart(self) -> None:
        self.began, self.next_look = time.thread_time(), time.perf_counter() + PATIENCE
        self.warps = [0] * len(self.choice.launch.program.blocks)

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer.block_executed``.

        Raises:
            ChangeEngine: It would be.
        """
        self.warps[block] += warps
        now = time.perf_counter()
        if now < self.next_look or self.is_settled:
            return
        # On a busy machine a launch takes longer than it costs. (thread_time() costs 0.3 us.)
        elapsed = time.thread_time() - self.began
        self.next_look = now + max(elapsed, PATIENCE) / _LOOKS
        if elapsed < PATIENCE:
            return
        choice = self.choice
        if choice.engine == AUTO or choice.missed:
            needed = native_seconds(choice.launch.program, self.warps)
            if needed < MARGIN * elapsed:
                self._change_over(elapsed, needed)
        if choice.substitute(elapsed):
            self._restart()
        self.is_settled = choice.engine == NUMPY and choice.launch.program.substitutes.tried

    def _change_over(self, elapsed: float, needed: float) -> None:
        """Begin anew in native code; or note why not, or what that costs."""
        choice = self.choice
        if choice.why_not:
            choice.stay(choice.why_not)
        elif choice.missed_seconds is None:
            raise ChangeEngine
        else:
            choice.missed_seconds[:] = elapsed, needed
