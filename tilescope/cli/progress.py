"""Progress bar on stderr, for runs of more than a moment on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import TimeRemainingColumn as Remaining
from rich.text import Text

PATIENCE = 2.0
"""Seconds before the bar appears."""
BRIEF = 0.25
"""Seconds that one launch of many takes at least to have a bar, which later ones have at once."""
ADVICE = 20.0
"""Seconds of the bar after which it gives its hint."""
_HINT = "--step-limit N gives up sooner"


class _Advice(ProgressColumn):
    """Hint that appears after a while, as a loop may be endless."""

    def render(self, task: Task) -> Text:
        """Return the current text."""
        return Text(task.fields["hint"] if (task.elapsed or 0) > ADVICE else "")


class ProgressBar:
    """Counts blocks and elapsed time; appears after ``PATIENCE``, on a terminal only.

    ``began``: when the whole work began. ``least``: seconds from now before which it stays hidden.
    """

    def __init__(
        self, name: str, quiet: bool = False, began: float | None = None, hint: str = _HINT,
        least: float = 0.0,
    ) -> None:  # fmt: skip
        self._name, self._hint = name, hint
        self._wanted = not quiet and sys.stderr.isatty()
        now = time.monotonic()
        self._appears = max(now + least, (now if began is None else began) + PATIENCE)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._wanted:  # blocks of a batch end together: none may end for a long time
            wait = max(0.0, self._appears - time.monotonic())
            self._timer = threading.Timer(wait, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _start(self) -> None:
        """Show the bar, unless it is visible."""
        with self._lock:
            if self._bar is None and self._wanted:
                bar = Progress(*self._columns(), console=Console(stderr=True), transient=True)
                self._task = bar.add_task(self._name, total=None, hint=self._hint)
                bar.start()
                self._bar = bar

    def _columns(self) -> list[ProgressColumn]:
        """Return the columns of the bar."""
        return [
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            TextColumn("blocks"), TimeElapsedColumn(), Remaining(), _Advice(),
        ]  # fmt: skip

    def __call__(self, done: int, total: int) -> None:
        """Update the number of finished blocks, and of all blocks."""
        self._update(completed=done, total=total)

    def _update(self, **what: Any) -> None:
        if self._wanted and time.monotonic() >= self._appears:
            self._start()
            assert self._bar is not None
            self._bar.update(self._task, **what)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._wanted = False
            if self._bar is not None:
                self._bar.stop()


class WaitBar(ProgressBar):
    """Elapsed time of something that cannot be counted."""

    def _columns(self) -> list[ProgressColumn]:
        return [
            TextColumn("{task.description}", markup=False), TimeElapsedColumn(), _Advice()
        ]  # fmt: skip


class SearchBar(WaitBar):
    """Progress bar of a search for fixes, after the findings."""

    def __init__(self, quiet: bool = False, began: float | None = None) -> None:
        super().__init__("looking for fixes", quiet, began, "Ctrl-C ends the search alone")

    def __call__(self, done: int, total: int) -> None:
        """Update the number of the current fix, from 1, and the approximate total."""
        self._update(description=f"trying fix {done} of {total}")
