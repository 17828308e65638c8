"""Hazards are told before the search for fixes, and nothing that ends the search loses them."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simulator.fixes import Watch, source_search, verification
from tests.support.command_line import KERNELS, flat, tilescope
from tests.tilescope.sessions.test_pipeline import ARRAYS, LAUNCH, run
from tilescope.check import checker, launcher
from tilescope.commands import check as command

WORDS = ("check", "my.cu", "two_steps", "--grid", 1, "--block", 64, "f32[64]=arange")
"""Two barriers are missing: each is a fix of its own."""
TREE = """\
__global__ void tree(const int* in, int* out) {
    __shared__ int part[96];
    const int t = threadIdx.x, lane = t % 32;
    int* mine = part + t - lane;
    mine[lane] = in[blockIdx.x * 96 + t];
    if (lane < 16) mine[lane] += mine[lane + 16];
    if (lane < 8) mine[lane] += mine[lane + 8];
    if (lane < 4) mine[lane] += mine[lane + 4];
    if (lane < 2) mine[lane] += mine[lane + 2];
    if (lane == 0) out[blockIdx.x * 3 + t / 32] = mine[0] + mine[1];
}
"""
NO_FIX = """\
__global__ void k(int* a) {
    __shared__ int s;
    s = threadIdx.x;
    __syncthreads();
    a[threadIdx.x] = s;
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cu").write_text(KERNELS)
    return tmp_path


def compiling(monkeypatch: pytest.MonkeyPatch, at: int = 1) -> list[str]:
    """What was told by the time of an edit's compilation, which Ctrl-C ends."""
    there, told = verification.recompiled, list[str]()

    def interrupted(*words: Any) -> Any:
        buffer: Any = getattr(sys.stdout, "buffer", None)
        told.append(buffer.getvalue().decode() if isinstance(buffer, io.BytesIO) else "")
        if len(told) == at:
            raise KeyboardInterrupt
        return there(*words)

    monkeypatch.setattr(verification, "recompiled", interrupted)
    return told


def test_ctrl_c_ends_the_search_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = compiling(monkeypatch)
    done = tilescope(*WORDS, "--json", "it.json", "--sarif", "it.sarif", "--junit", "it.xml")
    assert done.exit_code == 1
    assert done.stdout.startswith(told[0])
    assert told[0].count("error: Missing barrier: shared") == 2
    assert "on: device and source builds" in told[0]
    assert "no fix found before the search was interrupted" in flat(done)
    assert "no fix found: 1 edit was tried; the search was interrupted" in flat(done)
    content = json.loads((here / "it.json").read_text())
    assert len(content["hazards"]) == 2
    assert content["fix_search"] == {"tried": 1, "ended": "interrupted"}
    assert len(json.loads((here / "it.sarif").read_text())["runs"][0]["results"]) == 2
    assert "(RAW) race" in (here / "it.xml").read_text()


def test_fixes_that_were_found_by_then_stay(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two; the second is looked for by the next check."""
    whole = flat(tilescope(*WORDS))
    assert whole.count("verified, 1 error left, 0 with the other fixes") == 2
    assert "no fix" not in whole
    fixed = 0

    class Ended(Watch):
        def trying(self, number: int, planned: int, hazard: Any) -> None:
            nonlocal fixed
            assert 1 <= number <= planned
            fixed = sum(h.fix is not None for h in verdict.hazards)
            if fixed:
                raise KeyboardInterrupt

    Ended.stops = (KeyboardInterrupt,)
    target = checker.Checker(launcher.Launcher(_target()))
    verdict = target.find(("device", "source"))
    target.find_fixes(verdict, Ended())
    assert fixed == 1
    assert [hazard.fix is not None for hazard in verdict.hazards] == [True, False]
    assert verdict.stopped
    left = [h.notes[-1] for h in verdict.hazards if not h.fix and h.severity == "error"]
    assert left == ["no fix found before the search was interrupted"]


def _target() -> Any:
    from tilescope.cli.request import Request
    from tilescope.cli.target import resolve

    return resolve(Request("my.cu", ("two_steps", "f32[64]=arange"), grid="1", block="64"))


def test_ctrl_c_is_a_library_s_callers_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling(monkeypatch)
    target = checker.Checker(launcher.Launcher(_target(), quiet=True))
    with pytest.raises(KeyboardInterrupt):
        target.check(("device", "source"))


def test_ctrl_c_between_two_builds(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first found is told; a clean one says nothing of both."""
    there = launcher.simulate

    def simulate(target: Any, kernel: Any, *words: Any, **how: Any) -> Any:
        if kernel.build == "source":
            raise KeyboardInterrupt
        return there(target, kernel, *words, **how)

    monkeypatch.setattr(launcher, "simulate", simulate)
    done = tilescope(*WORDS, "--no-fix-search")
    assert (done.exit_code, flat(done).count("error: Missing barrier: shared")) == (1, 2)
    assert "not checked: source build: interrupted" in flat(done)
    clean = tilescope("check", "my.cu", "idle", "--grid", 1, "--block", 32, "f32[32]")
    assert clean.exit_code == 130
    assert "not checked: source build: interrupted" in flat(clean)


def test_ctrl_c_in_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling(monkeypatch)
    text = ARRAYS + LAUNCH.format("racy", '"x"') + LAUNCH.format("copy", '"x", "y"')
    code, out, err = run(tmp_path, text, "check", "--json", "it.json")
    assert code == 1
    assert "error: Missing barrier: shared `s`" in out
    assert "interrupted: 1 launch not checked" in err
    content = json.loads((tmp_path / "it.json").read_text())
    assert [len(one["hazards"]) for one in content["launches"]] == [1]


@pytest.mark.parametrize(
    "wanted", [pytest.param((), marks=pytest.mark.slow), ("--json", "it.json")]
)
def test_a_reader_that_has_gone(here: Path, wanted: tuple[str, ...]) -> None:
    """Nobody waits for fixes then, unless a file is to be written; the exit code stays."""
    words = [sys.executable, "-m", "tilescope", *map(str, WORDS), *wanted]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout
    assert child.stderr
    first = child.stdout.readline()
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (1, b"")
    assert first.startswith(b"2 errors")
    if wanted:
        found = json.loads((here / "it.json").read_text())["hazards"]
        assert all(hazard["fix"] for hazard in found)


def test_nobody_waits(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "reader_gone", lambda: True)
    assert "verified" not in flat(tilescope(*WORDS))
    assert "verified" in tilescope(*WORDS, "-q").stderr
    assert "__syncthreads" in tilescope(*WORDS, "--diff").stdout


def test_seconds_are_a_further_limit(here: Path) -> None:
    done = tilescope(*WORDS, "--fix-time", 0)
    assert done.exit_code == 1
    assert "no fix found within the time given" in flat(done)
    assert "no fix found: 0 edits were tried; the time given is over" in flat(done)
    assert "verified" in flat(tilescope(*WORDS, "--fix-time", 1000))


def test_diff_says_that_there_is_none(here: Path) -> None:
    words = ("--grid", 1, "--block", 64, "i32[64]", "--diff")
    (here / "no.cu").write_text(NO_FIX)
    done = tilescope("check", "no.cu", "k", *words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("--diff: no fix found: ")
    assert "edits were tried" in done.stderr
    clean = tilescope("check", "my.cu", "idle", "--grid", 1, "--block", 32, "f32[32]", "--diff")
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert clean.stderr == "--diff: no fix to show\n"


def test_the_fix_that_is_tried_is_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilescope.check import fix_search
    from tilescope.cli import progress

    shown: list[str] = []

    class Bar(progress.SearchBar):
        def _update(self, **what: Any) -> None:
            shown.append(what["description"])

    monkeypatch.setattr(fix_search, "SearchBar", Bar)
    (here / "no.cu").write_text(NO_FIX)
    done = flat(tilescope("check", "no.cu", "k", "--grid", 1, "--block", 64, "i32[64]"))
    assert shown[0].startswith("trying fix 1 of ")
    assert f"no fix found: {len(shown)} edits were tried" in done
    for text in shown:
        number, planned = text.removeprefix("trying fix ").split(" of ")
        assert 1 <= int(number) <= int(planned)


@pytest.mark.slow
def test_lanes_that_take_turns_in_a_tree(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``__syncwarp()`` behind each step, and none that is not needed: all are tried at once."""
    (here / "tree.cu").write_text(TREE)
    tried: list[int] = []

    class Counting(source_search.Watch):
        def trying(self, number: int, planned: int, hazard: Any) -> None:
            tried.append(number)

    monkeypatch.setattr(source_search, "Watch", Counting)
    words = ("tree.cu", "tree", "--grid", 2, "--block", 96, "i32[192]=arange", "i32[6]")
    assert tilescope("check", *words, "--fix").exit_code == 0
    steps = TREE.splitlines()
    for at in (9, 8, 7, 6, 5):
        steps.insert(at, "    __syncwarp();")
    assert (here / "tree.cu").read_text().splitlines() == steps
