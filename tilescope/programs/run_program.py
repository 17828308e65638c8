"""Run a built program: start it with the shim, answer its calls, and say how it ended."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernels import KernelError
from simulator import SimulatorError, Source
from simulator.host_order import Order

from ..scripts.virtual_device import RefusedError, StopScriptError, VirtualDevice
from .connection import Connection, Disconnected, Listener
from .executable import ProgramRefusedError
from .fatbin import FatBinaryError
from .libraries import cublas, cufft, curand, cusparse  # noqa: F401 - they fill the table of calls
from .libraries.shims import CURRENT, library_stand_ins
from .runtime import stand_ins  # noqa: F401 - it fills the table of calls
from .runtime.calls import UnsupportedCallError
from .runtime.state import Runtime
from .shim.build import shims

_POLL = 0.05
"""Seconds between looks whether the program has ended."""
_ALONE = 2
"""Files that are waited for if one process runs: its connection, and the listener."""
_LINGER = 5.0
"""Seconds that a program has to end by itself after it is asked to."""


@dataclass
class ProgramEnd:
    """How a program ended.

    Attributes:
        how: ``exit``, ``signal``, or ``refused`` (tilescope ended it).
        code: Its exit code, or the signal's number.
        message: Why tilescope ended it, if it did; ``place``: the line, where it is known.
        errors: What calls of the runtime gave, other than success, and how often.
        library_calls: Calls computed on the host, by library, function and line.
    """

    how: str = "exit"
    code: int = 0
    message: str = ""
    place: str = ""
    errors: Counter[str] = field(default_factory=Counter)
    library_calls: Counter[tuple[str, str, Source]] = field(default_factory=Counter)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """End like Ctrl-C if this process is asked to terminate: the report is written, all ends."""

    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class ProgramRun:
    """One program and the processes that it starts.

    Args:
        command: The program's path and its arguments.
        machine: How launches are simulated, for the first process.
        make_machine: Gives one for each further process, by its order of work.
        folders: Where the user's own sources are.
        stdout: File descriptor of its standard output; ``None``: this process's.
        needed: Sonames of the libraries that the program is linked with.
    """

    def __init__(
        self, command: Sequence[str], machine: VirtualDevice,
        make_machine: Callable[[Order], VirtualDevice], folders: list[Path],
        stdout: int | None = None, needed: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.command, self.folders = list(command), folders
        self.checks, self.end = machine.checks, ProgramEnd()
        self._first, self._make_machine = machine, make_machine
        self._runtimes: dict[int, Runtime] = {}
        self._stdout, self._needed = stdout, needed
        self._selector = selectors.DefaultSelector()

    def run(self) -> ProgramEnd:
        """Run it to its end.

        Raises:
            ShimError: The shim cannot be built here.
        """
        # The stand-ins for libraries call the first shim: that of the program's own version.
        runtimes = sorted(shims(), key=lambda one: one.name not in self._needed)
        libraries = library_stand_ins([*self._needed, *CURRENT])
        preloaded = [*runtimes, *(one for one in libraries if one.name in self._needed)]
        folders = [runtimes[0].parent, *(one.parent for one in libraries)]
        with tempfile.TemporaryDirectory(prefix="tilescope-") as folder:
            listener = Listener(folder)
            self._selector.register(listener, selectors.EVENT_READ, listener)
            preload = " ".join(
                filter(None, [*map(str, preloaded), os.environ.get("LD_PRELOAD", "")])
            )
            paths = [*map(str, folders), os.environ.get("LD_LIBRARY_PATH", "")]
            found = {"LD_PRELOAD": preload, "TILESCOPE_SOCKET": listener.path,
                     "LD_LIBRARY_PATH": ":".join(filter(None, paths))}  # fmt: skip
            program = subprocess.Popen(self.command, stdout=self._stdout, env=os.environ | found)
            try:
                with _terminable():
                    self._serve(program, listener)
            finally:
                self._finish(program)
                listener.close()
                self._selector.close()
        for runtime in self._runtimes.values():
            self.end.errors.update(runtime.errors)
            self.end.library_calls.update(runtime.libraries.calls)
        if self._runtimes and self.end.how == "exit" and not self.end.message:
            main = next(iter(self._runtimes.values()))
            self.checks.leak(main.leaked())
        return self.end

    def _serve(self, program: "subprocess.Popen[bytes]", listener: Listener) -> None:
        """Answer calls until the program has ended."""
        try:
            while True:
                ready = self._selector.select(_POLL)
                for key, _ in ready:
                    if key.data is listener:
                        self._connect(listener.accept())
                    else:
                        self._answer(key.data)
                if not ready and program.poll() is not None:
                    break
        except (ProgramRefusedError, UnsupportedCallError, RefusedError, FatBinaryError) as error:
            self._stop("refused", str(error), 2)
        except (KernelError, SimulatorError) as error:
            self._stop("refused", str(error), 2)
        except StopScriptError:
            self._stop("exit", self._first.stopped, 0)
        except KeyboardInterrupt as stop:
            number = stop.args[0] if stop.args else signal.SIGINT
            self._stop("signal", "interrupted", number)
        if not self.end.message:
            code = program.wait()
            if code < 0:
                self.end.how, self.end.code = "signal", -code
            else:
                self.end.code = code

    def _stop(self, how: str, message: str, code: int) -> None:
        places = [runtime.ended_at for runtime in self._runtimes.values() if runtime.ended_at]
        self.end.how, self.end.message, self.end.code = how, message, code
        self.end.place = places[-1] if places else ""

    def _finish(self, program: "subprocess.Popen[bytes]") -> None:
        """Close every connection, and end what still runs."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                key.data.close()
                if key.data.process.pid != program.pid:  # made by fork, and still alive
                    with contextlib.suppress(OSError):
                        os.kill(key.data.process.pid, signal.SIGTERM)
        if program.poll() is None:
            program.terminate()
            try:
                program.wait(_LINGER)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()

    def _connect(self, connection: Connection) -> None:
        pid = connection.process.pid
        first = not self._runtimes
        machine = self._first if first else self._make_machine(self._first.order)
        machine.checks = self.checks
        runtime = Runtime(machine, self.folders)
        if not first:
            runtime.inherit(next(iter(self._runtimes.values())))
        runtime.attach(connection)
        machine.printed = runtime.printed
        self._runtimes[pid] = runtime
        self._selector.register(connection, selectors.EVENT_READ, connection)

    def _answer(self, connection: Connection) -> None:
        try:
            connection.serve(is_alone=len(self._selector.get_map()) == _ALONE)
        except Disconnected:
            self._selector.unregister(connection)
            connection.close()
