"""Asks the process in which NVIDIA's compilers run (``worker.py``).

A compiler has faults of its own, and a source may meet one: NVRTC 13.0 ends with a segmentation
fault on some, and is busy for hours with others. In our process that would end the session without
a word, and no key would interrupt it. One process is kept for all compilations.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from ..errors import CompileError

LIMIT = 900.0
"""Seconds after which a compilation is given up."""


class MissingCompiler(CompileError):
    """A compiler is not installed here."""


class CompilerCrash(CompileError):
    """A compiler ended, or was given up (``late``), before it answered; the text says how."""

    late = False


def ask(work: str, **task: Any) -> Any:
    """Have a compiler do something.

    Args:
        work: A row of ``worker.py``.
        task: Its arguments, JSON-ready.

    Raises:
        MissingCompiler: It is not installed.
        CompilerCrash: It crashed, or did not end within ``LIMIT`` seconds.
        CompileError: It failed for another reason than the text.
    """
    task |= {"work": work, "folder": os.getcwd()}  # where relative names start from
    answer = _process(os.getpid()).ask(json.dumps(task) + "\n")
    if "missing" in answer:
        raise MissingCompiler(answer["missing"])
    if "failed" in answer:
        raise CompileError(answer["failed"])
    return answer["made"]


@functools.cache
def _process(_owner: int) -> "_Process":
    """Return the one of this process: one that was forked off has its own."""
    return _Process()


class _Process:
    """Starts when something is asked, and again after a crash."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._running: subprocess.Popen[str] | None = None
        atexit.register(self._stop)

    def ask(self, task: str) -> dict[str, Any]:
        """Send a task, wait for the answer."""
        with self._lock:
            if self._running:
                try:
                    return self._answer(task, self._running)
                except CompilerCrash as crash:
                    if crash.late:
                        raise
                # What a process does after others' texts says nothing of this one.
            return self._answer(task, self._start())

    def _start(self) -> "subprocess.Popen[str]":
        child = Path(__file__).with_name("worker.py")
        try:
            self._running = subprocess.Popen(
                [sys.executable or "python3", "-P", str(child)],  # no name: Python is embedded
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                encoding="utf-8", creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )  # fmt: skip
        except OSError as error:
            raise CompileError(f"no process for the compiler could be started: {error}") from None
        assert self._running.stdin
        with contextlib.suppress(OSError):  # it has ended: so says its answer
            self._running.stdin.write(json.dumps([str(folder) for folder in sys.path]) + "\n")
        return self._running

    def _answer(self, task: str, process: "subprocess.Popen[str]") -> dict[str, Any]:
        assert process.stdin
        assert process.stdout
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(LIMIT, give_up)
        timer.daemon = True
        timer.start()
        line = ""
        try:
            with contextlib.suppress(OSError):  # it ended before it read everything
                process.stdin.write(task)
                process.stdin.flush()
                line = process.stdout.readline()
                if not line.endswith("\n"):
                    process.wait(5)
        finally:
            timer.cancel()
            if not line.endswith("\n"):  # or the user interrupted us, and it goes on for nobody
                self._stop()
        if line.endswith("\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        how = f"did not end within {LIMIT:g} s" if late.is_set() else _crashed(process.returncode)
        crash = CompilerCrash(how)
        crash.late = late.is_set()
        raise crash

    def _stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._running = self._running, None
        if process:
            if self._owner == os.getpid():
                process.kill()
                process.wait()
            else:  # we are forked off, and it is our parent's
                process.returncode = 0
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what it has not read
                    if pipe:
                        pipe.close()


def _crashed(code: int) -> str:
    """Describe how a process ended: by a signal, or a Windows exception."""
    names = {-number: number.name for number in signal.Signals}
    return f"crashed ({names.get(code) or hex(code & 0xFFFFFFFF)})"
