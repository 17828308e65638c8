"""Whole programs under ``exec``: what host code does, what it prints, what is found."""

import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.paths import ROOT
from tests.support.programs import found, run
from tilescope.cli.main import main
from tilescope.programs import host_process
from tilescope.programs.compile import compile_program

pytestmark = pytest.mark.slow  # nvcc takes seconds
SOURCE = Path(__file__).with_name("host.cu")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("program") / "host"
    compile_program([SOURCE], [], out)
    return out


# Both tables are what an H200 prints (2026-11-27, driver 580.159, CUDA 13.0).
RIGHT = {
    "list": "before\ndevice 6\nafter\n",
    "table": "3\n",
    "constant": "9\n",
    "managed": "43 2 4\n",
    "threads": "20\n",
    "fork": "child -1\nparent 0\n",  # the parent had used CUDA
    "fork-early": "child 1\nparent 1\n",
    "handle": "400 400\n",  # events that are none
    "callback": "callback once\n",
}


@pytest.mark.parametrize("word", RIGHT)
def test_a_right_program_prints_what_it_prints_on_a_gpu(program: Path, word: str) -> None:
    code, printed, report = run(program, word)
    assert (code, printed, found(report)) == (0, RIGHT[word], [])
    assert report["outcome"]["how"] == "exit"


WRONG = {
    "wrong-freed": ("use-after-free", ""),
    "wrong-host": ("host-pointer", "an illegal memory access was encountered\n"),
    "wrong-copy": ("bad-copy", "invalid argument\n"),
    "wrong-way": ("bad-copy", ""),
    "wrong-shape": ("launch-error", "invalid argument\n"),
    "wrong-race": ("waw-race", ""),
}


@pytest.mark.parametrize("word", WRONG)
def test_a_mistake_of_the_host_is_found_at_its_line(program: Path, word: str) -> None:
    code, printed, report = run(program, word)
    kind, text = WRONG[word]
    assert (code, printed, found(report)) == (1, text, [kind])
    lines = SOURCE.read_text().splitlines()
    (hazard,) = [h for launch in report["launches"] for h in launch["hazards"]] + report["copies"]
    where = hazard["involved"][0]
    assert Path(where["file"]).name == "host.cu"
    body = "\n".join(lines[lines.index(f'  }} else if (is("{word}")) {{') :])
    assert kind == "waw-race" or lines[where["line"] - 1] in body.split("} else if", 2)[1]


GUARDED = {"guarded": "1 1 1 0\n"}


def test_copies_of_memory_that_the_host_has_not_are_refused(program: Path) -> None:
    code, printed, report = run(program, "guarded")
    assert (code, printed, found(report)) == (1, GUARDED["guarded"], ["bad-copy"])
    assert len(report["copies"]) == 3


@pytest.mark.parametrize(("word", "code", "how"), [
    ("exit", 3, "exit"), ("crash", 134, "signal"), ("unknown", 2, "refused"), ("none", 3, "exit"),
])  # fmt: skip
def test_how_it_ends_is_the_exit_code(program: Path, word: str, code: int, how: str) -> None:
    found_code, _, report = run(program, word)
    assert (found_code, report["outcome"]["how"]) == (code, how)
    assert len(report["launches"]) == (word in ("exit", "crash"))


def test_nothing_is_left_behind_without_a_cache(program: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tilescope", "exec", str(program), "unknown"]
    settings = os.environ | {"TILESCOPE_CACHE": "off", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=120, env=settings
    )
    assert (done.returncode, done.stdout) == (2, "first\n")  # its buffer was not full
    assert "cudaIpcGetMemHandle" in done.stderr
    assert "host.cu:" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_arguments_without_sense_are_refused_in_a_sentence(program: Path) -> None:
    code, printed, report = run(program, "nonsense")
    assert (code, printed, found(report)) == (2, "1 2\n", ["bad-copy"])
    assert "cudaGraphAddEmptyNode has arguments that" in report["outcome"]["message"]
    assert report["outcome"]["place"].startswith("host.cu:")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its new parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_the_report_is_written(
    program: Path, tmp_path: Path, number: signal.Signals
) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "tilescope", "exec", "--json", str(report), str(program)]
    settings = os.environ | {"TMPDIR": str(tmp_path)}
    command.append("hang")
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=settings) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.send_signal(number)
        assert running.wait(60) == 128 + number
    assert json.loads(report.read_text())["outcome"]["how"] == "signal"
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]
    deadline = time.monotonic() + 20
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(child)


def test_what_is_a_note_does_not_fail(program: Path) -> None:
    for word, kind in (("unset", "host-unset"), ("leak", "leak")):
        code, _, report = run(program, word)
        assert (code, found(report)) == (0, [kind])


def test_a_source_is_compiled_with_the_words_for_nvcc(tmp_path: Path) -> None:
    source = tmp_path / "main.cu"
    source.write_text(
        '#include <cstdio>\n#include "part.h"\n__global__ void k(int *a) { *a = VALUE; }\n'
        "int main(int c, char **v) { int *a, r; cudaMalloc(&a, 4); k<<<1, 1>>>(a);\n"
        "  cudaMemcpy(&r, a, 4, cudaMemcpyDeviceToHost); cudaFree(a);\n"
        '  printf("%d %s %d\\n", r, v[1], part()); }\n'
    )
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "part.h").write_text("int part();\n")
    other = tmp_path / "part.cpp"
    other.write_text('#include "part.h"\nint part() { return 5; }\n')
    command = [sys.executable, "-m", "tilescope", "exec", "-I", str(tmp_path / "inc"),
               "-DVALUE=7", "-std=c++17", str(source), str(other), "word"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.returncode, done.stdout) == (0, "7 word 5\n"), done.stderr
    assert "1 launch of 1 kernel; no hazards" in done.stderr


def test_files_have_variables_of_their_own_and_pointers_to_each_others(tmp_path: Path) -> None:
    sources = [SOURCE.with_name(name) for name in ("first.cu", "second.cu")]
    compile_program(sources, [], tmp_path / "both")
    code, printed, report = run(tmp_path / "both")
    assert (code, printed, found(report)) == (0, "2 73\n", [])


def test_where_the_system_forbids_it_the_program_moves_its_own_memory(
    program: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1

    for name in ("process_vm_readv", "process_vm_writev"):
        monkeypatch.setattr(host_process._LIBC, name, refuse)
    for word in ("list", "managed", "guarded"):
        CliRunner().invoke(main, ["exec", "-q", str(program), word], catch_exceptions=False)
        assert capfd.readouterr().out == {**RIGHT, **GUARDED}[word]
