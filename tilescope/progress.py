"""A progress bar on stderr, for runs that take a while and a person who watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

STEP_LIMIT = 50_000_000
"""Basic blocks that a batch of blocks runs before it is given up as endless."""
PATIENCE = 2.0
"""Seconds before the bar appears."""


class ProgressBar:
    """Counts blocks; shown only after ``PATIENCE``, and only on a terminal."""

    def __init__(self, name: str, quiet: bool = False, began: float | None = None) -> None:
        self._name = name
        self._wanted = not quiet and sys.stderr.isatty()
        self._began = time.monotonic() if began is None else began
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Blocks done so far, and in all."""
        if not self._wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._began < PATIENCE:
                return
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TextColumn("blocks"), Remaining(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task(self._name, total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
