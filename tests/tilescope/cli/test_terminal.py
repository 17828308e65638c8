"""People and pipes: help, interrupts, progress, numbers, and words that become arguments."""

import io
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from tests.support.command_line import tilescope
from tilescope.cli import progress
from tilescope.cli.argument_spec import parse_arguments
from tilescope.cli.errors import UserError
from tilescope.cli.main import main
from tilescope.cli.menu.commands import ENTRIES
from tilescope.text import layout


@pytest.mark.parametrize("command", ["", *(name for name in ENTRIES if name != "_launch")])
def test_help_has_examples_and_fits(command: str) -> None:
    result = tilescope(*command.split(), "--help")
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


@pytest.mark.slow
def test_module_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tilescope", "run", "matmul_tiled", "--size", "5x3x7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5x3x7" in done.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "tilescope", "run", "matmul_tiled", "--by-line"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout
    assert child.stderr
    child.stdout.close()  # long before the child has anything to say
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (141, b"")


@pytest.mark.slow_but("2>&-")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "words", ["list", pytest.param("run matmul_tiled --size 5x3x7", marks=pytest.mark.slow)]
)
def test_closed_streams_are_no_error(words: str, closed: str) -> None:
    """What a shell closed is not there for Python either: ``sys.stdout`` is ``None``."""
    command = f"{shlex.quote(sys.executable)} -m tilescope {words} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


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


def test_view_has_progress_in_the_search_and_while_it_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("COLUMNS", "120")
    words = ["view", "faulty_shared_raw", "-o", str(tmp_path / "page.html")]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    shown = stream.getvalue()
    assert "looking for fixes" in shown
    assert "trying fix 1 of " in shown
    assert "writing " in shown


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


# -- words that become arguments of a kernel ------------------------------------------------------


def parse(*words: str) -> list[Any]:
    return parse_arguments(words, np.random.default_rng(0))


def test_array_words(tmp_path: Path) -> None:
    zeros, ones, ramp, sevens = parse("f32[2,3]", "u8[4]=ones", "i16[2,2]=arange", "f16[2]=-7.5")
    assert zeros.dtype == np.float32
    assert zeros.shape == (2, 3)
    assert not zeros.any()
    assert ones.dtype == np.uint8
    assert ones.tolist() == [1, 1, 1, 1]
    assert ramp.tolist() == [[0, 1], [2, 3]]
    assert ramp.dtype == np.int16
    assert sevens.tolist() == [-7.5, -7.5]
    assert sevens.dtype == np.float16
    normal, uniform, whole = parse("f64[1000]=normal", "f32[1000]=uniform", "u8[1000]=uniform")
    assert abs(normal.mean()) < 0.2
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert whole.max() == 255
    assert whole.min() == 0
    file = tmp_path / "a.npy"
    np.save(file, np.arange(6, dtype=np.int32).reshape(2, 3))
    (loaded,) = parse(f"i32[2,3]=@{file}")
    assert loaded.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded.flags.writeable
    with pytest.raises(UserError, match=r"holds int32 \[2, 3\]"):
        parse(f"i32[6]=@{file}")


def test_bfloat16_words(tmp_path: Path) -> None:
    """Numbers become the nearest bfloat16, of two the even one; files hold numbers or bits."""
    ramp, halves, normal, scalar = parse(
        "bf16[600]=arange", "bf16[2,2]=0.5", "bf16[4,250]=normal", "bf16:-1.5"
    )
    assert ramp.dtype == halves.dtype == scalar.dtype == np.uint16
    assert halves.tolist() == [[0x3F00] * 2] * 2
    assert int(scalar) == 0xBFC0
    held = (ramp.astype(np.uint32) << 16).view(np.float32)
    for number, got in enumerate(held.tolist()):  # 8 bits of fraction: steps of 2, then of 4
        step = 1 if number < 256 else 2 if number < 512 else 4
        assert got == round(number / step) * step
    assert normal.shape == (4, 250)
    exact = parse("f32[4,250]=normal")[0]
    close = (normal.astype(np.uint32) << 16).view(np.float32)
    assert (np.abs(close / exact - 1) <= 2.0**-8).all()
    odd = np.array([np.nan, -np.inf, 3.4e38, 1e-40, -0.0, 2.0**-126], np.float32)
    for file, array in (("n.npy", odd), ("b.npy", ramp[:6]), ("v.npy", ramp[:6].view("V2"))):
        np.save(tmp_path / file, array)
    numbers, bits, named = parse(*(f"bf16[6]=@{tmp_path / f}.npy" for f in "nbv"))
    assert numbers.tolist() == [0x7FFF, 0xFF80, 0x7F80, 0x0001, 0x8000, 0x0080]
    assert bits.tolist() == named.tolist() == ramp[:6].tolist()
    np.save(tmp_path / "i.npy", np.zeros(6, np.int32))
    with pytest.raises(UserError, match=r"holds int32 \[6\]"):
        parse(f"bf16[6]=@{tmp_path / 'i.npy'}")


def test_scalar_words() -> None:
    values = parse("64", "-3", "0x10", "1.5", "-1e-3", "u8:3", "f32:2", "f16:-inf")
    assert values == [64, -3, 16, 1.5, -1e-3, 3, 2.0, -np.inf]
    assert [type(v) for v in values[:5]] == [int, int, int, float, float]
    assert [v.dtype.name for v in values[5:]] == ["uint8", "float32", "float16"]


@pytest.mark.parametrize(
    "word",
    [
        "word", "f33[4]", "f33:4", "f32[]", "f32[4", "f32[-4]", "f32[4]=oops", "u8[4]=300",
        "u8:-1", "i32:1.5", "i32[4]=normal", "f32[4]=@nowhere.npy", "f32[99999999,99999999,9]",
        pytest.param("f32[4]=@" + __file__, id="a-file-of-text"),
    ],
)  # fmt: skip
def test_bad_words(word: str) -> None:
    with pytest.raises(UserError, match="argument") as caught:
        parse(word)
    assert word in str(caught.value)


# -- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80])
def test_help_keeps_to_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Examples stay as they are: a command that is broken in two cannot be pasted."""
    monkeypatch.setenv("COLUMNS", str(width))
    shown = CliRunner().invoke(main, ["--help"]).output
    prose = [line for line in shown.splitlines() if not line.startswith("    tilescope ")]
    assert len(prose) > 15
    assert max(map(len, prose)) <= width
