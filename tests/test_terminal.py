"""People and pipes: help, interrupts, progress, numbers."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from command_line import tilescope

import simulator
from tilescope import progress
from tilescope.text import layout


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["list", "--help"]])
def test_help_has_examples_and_fits(words: list[str]) -> None:
    result = tilescope(*words)
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulator, "launch", stop)
    result = tilescope("run", "matmul_tiled")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "interrupted" in result.stderr


def test_module_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tilescope", "run", "matmul_tiled", "--size", "5x3x7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5x3x7" in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "tilescope", "run", "matmul_tiled", "--by-line"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout
    assert child.stderr
    child.stdout.close()  # long before the child has anything to say
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (141, b"")


class Terminal(io.StringIO):
    """A stderr that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_progress_only_where_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(stream: io.StringIO, patience: float) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.ProgressBar("kernel") as bar:
            bar(1, 4)
            bar(4, 4)
        return stream.getvalue()

    assert "blocks" in shown(Terminal(), 0.0)
    assert shown(Terminal(), 60.0) == ""
    assert shown(io.StringIO(), 0.0) == ""


def test_progress_of_a_loop_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No block ends: the bar says how long it has run, and what to do."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "ADVICE", -1.0)
    monkeypatch.setenv("COLUMNS", "120")
    with progress.ProgressBar("kernel[red]") as bar:
        assert bar._timer
        bar._timer.join()
    shown = stream.getvalue()
    assert "kernel[red]" in shown
    assert "0:00:00" in shown
    assert "--step-limit N gives up sooner" in shown


def test_numbers_as_people_read_them() -> None:
    sizes = [layout.human_bytes(n) for n in (0, 1023, 1024, 1536, 8 << 20, 3 << 40)]
    assert sizes == ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "8.00 MiB", "3.00 TiB"]
    assert [layout.percent(x) for x in (0.0, 0.5, 0.99999, 1)] == [
        "0.0%",
        "50.0%",
        "99.9%",
        "100.0%",
    ]
    assert layout.human_count(690.4e6) == "690 million"
    assert layout.shape((16, 1, 1)) == "16"
    assert layout.shape((4, 1, 2)) == "4x1x2"
