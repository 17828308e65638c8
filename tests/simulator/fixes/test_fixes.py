"""Fixes are edits of the source: where they go, what is written, and that they hold.

``barrier_deletion.py`` asks the same of every barrier of the library.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.fixes import find_fixes
from tests.simulator.fixes.fix_check import DEFECTS, check, hazards, launch
from tests.support.launches import every_other

PROGRAMS = {
    "reduce_braces": ((4, 256, "f32[1000]=ones", "f32[4]", 1000), [("after", 11)]),
    "fix_inside_if": ((1, 64, "i32[4]"), [("after", 4)]),
    "fix_loop_end": ((1, 64, "i32[64]=arange"), [("after", 10)]),
    "fix_one_statement": ((1, 64, "i32[65]=arange"), [("split by", 2)]),
    "multiline": ((1, 128, "f32[128]=arange", "f32[128]"), [("after", 6)]),
    "oneline": ((1, 64, "f32[64]"), [("after", 1)]),
    "macro": ((1, 128, "f32[128]=arange", "f32[128]"), [("after", 7)]),
    "fix_two_stores": ((1, 64, "f32[64]=arange", "f32[64]"), [("after", 5)]),
}
"""Programs whose fix used to be said of a place where it does not fix: shape, right place."""


@pytest.mark.slow_but("multiline")
@pytest.mark.parametrize("name", every_other([*PROGRAMS]))
def test_a_fix_said_is_a_fix_written(name: str, tmp_path: Path) -> None:
    """Once written, the same check finds nothing; taken out again, it is back."""
    shape, places = PROGRAMS[name]
    file = tmp_path / f"{name}.cu"
    before = (DEFECTS / file.name).read_bytes()
    file.write_bytes(before)
    words = launch(file, *shape)
    fixes = [hazard["fix"] for hazard in hazards(*words)]
    assert sorted({(fix["where"], fix["line"]) for fix in fixes}) == places
    assert file.read_bytes() == before
    patch = check(*words, "--diff").stdout_bytes
    assert check(*words, "--fix").exit_code == 0
    written = file.read_bytes()
    assert written != before
    again = check(*words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout
    file.write_bytes(before)
    subprocess.run(["git", "apply", "-p1", "--unsafe-paths", "--directory", str(tmp_path), "-"],
                   input=patch.replace(str(tmp_path).encode(), b""), check=True,
                   cwd=tmp_path)  # fmt: skip
    assert file.read_bytes() == written


def test_line_ends_and_encoding_stay(tmp_path: Path) -> None:
    text = (DEFECTS / "multiline.cu").read_text()
    content = ("// Gr\u00f6\u00dfe\r\n" + text.replace("\n", "\r\n")).encode("latin-1")
    for mark in (b"", b"\xef\xbb\xbf"):
        file = tmp_path / "my.cu"
        file.write_bytes(mark + content)
        words = launch(file, 1, 128, "f32[128]=arange", "f32[128]")
        assert check(*words, "--fix").exit_code == 0
        expected = content.replace(b"2.0f;\r\n", b"2.0f;\r\n    __syncthreads();\r\n")
        assert file.read_bytes() == mark + expected


def test_lines_that_end_with_cr_alone_are_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    text = (DEFECTS / "multiline.cu").read_text().encode()
    words = launch(file, 1, 128, "f32[128]=arange", "f32[128]")
    for end, told in ((b"\r", True), (b"\r\n", False)):
        file.write_bytes(text.replace(b"\n", end))
        said = " ".join(check(*words).stdout.split())
        assert ("no fix looked for: " in said and "CR alone, not LF" in said) == told
        assert ("verified" in said) != told
        assert "no fix: " not in said


def test_a_file_that_changed_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilescope.check import checker

    file = tmp_path / "my.cu"
    file.write_bytes((DEFECTS / "multiline.cu").read_bytes())
    search = checker.find_source_fixes

    def slow(*words: Any) -> int:
        found = search(*words)
        file.write_bytes(file.read_bytes() + b"// meanwhile\n")
        return found

    monkeypatch.setattr(checker, "find_source_fixes", slow)
    result = check(*launch(file, 1, 128, "f32[128]=arange", "f32[128]"), "--fix")
    assert result.exit_code == 2
    assert "has changed since it was read; nothing written" in result.stderr
    assert file.read_bytes().endswith(b"// meanwhile\n")
    assert b"    __syncthreads" not in file.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("matmul_missing_first_barrier", "--fix"), "comes along with tilescope"),
        (("my.ptx", "--fix"), "is PTX"),
        (("my.ptx", "--diff"), "is PTX"),
        (
            ("matmul_missing_first_barrier", "--diff", "--no-fix-search"),
            "--diff needs the search for fixes",
        ),
        (("matmul_missing_first_barrier", "--diff", "--json", "-"), "standard output"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], message: str) -> None:
    result = check(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.slow
def test_the_report_of_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One missing barrier is told once, with its edit; every line fits."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cu").write_bytes((DEFECTS / "reduce_braces.cu").read_bytes())
    shape, _ = PROGRAMS["reduce_braces"]
    said = check(*launch(Path("my.cu"), *shape)).stdout
    assert said.count("fix  __syncthreads() after line 11: verified, 0 errors left") == 1
    assert "\n        +        __syncthreads();\n" in said
    assert "explains these" not in said
    assert "between lanes of one warp as well" in " ".join(said.split())
    assert "at grid 4, block 256 and at another shape, grid 4, block" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


def test_the_changed_part_of_a_long_line_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cu").write_bytes((DEFECTS / "oneline.cu").read_bytes())
    said = check(*launch(Path("my.cu"), 1, 64, "f32[64]")).stdout
    assert "s[t] = t; __syncthreads(); out[t] = s[63 - t]; }\n" in said
    assert max(map(len, said.splitlines())) <= 80


def test_edits_that_leave_the_race_follow_no_undefined_bits() -> None:
    """Uninitialised memory is followed bit by bit in runs of its own: for likely fixes alone."""
    kernel = Kernel.from_ptx("""
        .version 9.0
        .target sm_90
        .visible .entry k(.param .u64 x) {
        .reg .b32 %s, %t, %u, %v, %w; .reg .b64 %x, %d; .shared .b32 a[64]; .shared .b32 unset;
        ld.param.u64 %x, [x]; mov.u32 %t, %tid.x; mov.u32 %s, a; shl.b32 %w, %t, 2;
        cvt.u64.u32 %d, %w; add.u64 %x, %x, %d; add.u32 %w, %s, %w; xor.b32 %v, %w, 252;
        st.shared.u32 [%w], %t;
        ld.shared.u32 %u, [unset];
        ld.shared.u32 %t, [%v];
        after: add.u32 %u, %u, %t;
        st.global.u32 [%x], %u;
        ret; }""")
    tried: list[tuple[str, bool]] = []

    def runner(name: str, checks: object) -> Callable[[Kernel], simulator.Run]:
        def rerun(edited: Kernel) -> simulator.Run:
            run = simulator.launch(edited, 1, 64, [np.zeros(64, np.int32)], checks=checks)
            tried.append((name, any(h.row.is_race for h in run.hazards)))
            return run

        return rerun

    everything = runner("all", "all")
    races = runner("races", {*simulator.CHECKS} - {"uninitialised"})
    run = everything(kernel)
    found = []
    for quick in (None, races):
        tried.clear()
        find_fixes(kernel, run, everything, races=quick)
        found.append(([h.fix for h in run.hazards], tried.count(("all", True))))
    (slow, wasted), (fast, none) = found
    assert slow == fast
    assert any(slow)
    assert (wasted > 0, none) == (True, 0)
