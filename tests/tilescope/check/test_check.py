"""``tilescope check``: verdicts, reports, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import check, flat, launch, tilescope
from tilescope.check.builds import SOURCE_ONLY

# -- the verdict ------------------------------------------------------------------------


def test_a_race_with_its_lines_and_fix() -> None:
    result = check("matmul_missing_first_barrier", "--size", 64)
    assert result.exit_code == 1
    said = flat(result)
    assert said.startswith(
        "1 error, 1 warning in matmul_missing_first_barrier, grid 4x4, block 16x16 "
        "(all checks ran) error: Missing barrier: shared `Bs` is read (line 27) before other "
        "warps have written it (line 25) write kernels/library/matmul/faulty.cu:25"
    )
    assert "read kernels/library/matmul/faulty.cu:27" in said
    assert "fix __syncthreads() after line 25: verified, 0 errors left" in said
    assert "on: device and source builds; schedule lockstep" in said
    assert "only in the" not in said


@pytest.mark.slow
def test_the_other_missing_barrier_is_fixed_too() -> None:
    said = flat(check("matmul_missing_second_barrier", "--size", 32, "--build", "device"))
    assert "1 error, 1 warning in" in said
    assert "verified, 0 errors left" in said


@pytest.mark.slow
def test_two_races_need_two_barriers(file: str) -> None:
    said = flat(check(file, *launch("two_steps", 64, "f32[64]")))
    assert "fix __syncthreads() after line 34: verified, 1 error left, 0 with the other" in said
    assert "fix __syncthreads() after line 36: verified, 1 error left, 0 with the other" in said


def test_no_fix_is_looked_for_if_not_wanted() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--no-fix-search")
    assert result.exit_code == 1
    assert "verified" not in result.stdout


def test_clean_says_what_was_checked() -> None:
    result = check("matmul_tiled", "--size", "70x50x90")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "no hazards in matmul_tiled, grid 4x5, block 16x16 (all checks ran)",
        "",
        "checked: races, barriers, memory, uninitialised",
        "on: device and source builds; schedule lockstep",
        "reach: every content of the arrays, at this launch shape",
    ]


def test_what_was_not_checked_is_not_called_clean() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--checks", "memory,barriers")
    assert result.exit_code == 0
    assert "(checked: barriers, memory; not checked: races, uninitialised)" in flat(result)
    assert "all checks ran" not in result.stdout


def test_a_verdict_that_depends_on_the_data_names_the_line(file: str) -> None:
    result = check(file, *launch("steered", 32, "f32[32]", "i32[32]=arange"))
    assert result.exit_code == 0
    assert (
        "reach: these inputs alone; the verdict may depend on what arrays hold, at my.cu:22"
        in flat(result)
    )


@pytest.mark.slow
def test_a_wrong_guard_counts_unrolled_copies_once() -> None:
    result = check("matmul_tiled_wrong_guard", "--size", 70)
    assert result.exit_code == 1
    assert result.stdout.startswith("2 errors, 2 warnings in matmul_tiled_wrong_guard")


@pytest.mark.slow_but("reverse")
@pytest.mark.parametrize("schedule", ["warps", "reverse", "7"])
def test_no_schedule_hides_a_race(schedule: str) -> None:
    words = ("--size", 16, "--schedule", schedule, "--no-fix-search")
    result = check("matmul_missing_first_barrier", *words)
    assert result.exit_code == 1
    assert "Missing barrier: shared `Bs` is read (line 27)" in flat(result)
    assert f"schedule {schedule}" in result.stdout
    assert check("matmul_tiled", *words).exit_code == 0


# -- builds -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_race_that_the_optimiser_removes(file: str) -> None:
    words = (file, *launch("forwarded", 64, "i32[64]"))
    result = check(*words)
    assert result.exit_code == 1
    said = flat(result)
    assert "shared `last` is written" in said
    found = json.loads(check(*words, "--json", "-").stdout)["hazards"]
    assert len(found) == 2
    assert all(SOURCE_ONLY in hazard["notes"] for hazard in found)
    device = check(*words, "--build", "device")
    assert device.exit_code == 0
    assert "on: device build; schedule lockstep" in device.stdout
    source = check(*words, "--build", "source")
    assert source.exit_code == 1
    assert SOURCE_ONLY not in flat(source)


def test_lines_are_the_source_s_where_the_optimiser_joins_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One load of both branches has the line of one, which thread 0 never comes to."""
    file = tmp_path / "my.cu"
    file.write_text("""\
__global__ void halves(const float* in, float* out) {
    __shared__ float s[2][64];
    int group = threadIdx.x / 64, t = threadIdx.x % 64;
    if (group == 0) {
        s[0][t] = in[t] * 2;
        out[t] = s[0][63 - t];
    } else {
        s[1][t] = in[64 + t] + 1;
        asm volatile("bar.sync 2, 64;" ::: "memory");
        out[64 + t] = s[1][t ^ 32];
    }
}
""")
    monkeypatch.chdir(tmp_path)
    said = flat(
        check("my.cu", "--grid", 1, "--block", 128, "f32[128]", "f32[128]", "--no-fix-search")
    )
    assert "my.cu:6 out[t] = s[0][63 - t];" in said
    assert "only in the" not in said


def test_ptx_is_checked_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels import library

    monkeypatch.chdir(tmp_path)
    kernel = library.get("matmul_missing_first_barrier").kernel()
    lines = [line for line in kernel.ptx.splitlines() if not line.strip().startswith(".loc")]
    Path("bad.ptx").write_text("\n".join(lines))
    arguments = ("f32[16,16]=normal", "f32[16,16]=normal", "f32[16,16]", 16, 16, 16)
    words = ("bad.ptx", "--grid", 1, "--block", "16,16", *arguments)
    result = check(*words, "--sarif", "out.sarif")
    assert result.exit_code == 1
    assert "on: the PTX as given; schedule lockstep" in result.stdout
    place = json.loads(Path("out.sarif").read_text())["runs"][0]["results"][0]["locations"][0]
    physical = place["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "bad.ptx"
    assert "ld.shared" in lines[physical["region"]["startLine"] - 1]
    refused = check(*words, "--build", "source")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "bad.ptx is PTX: there is no build to choose" in refused.stderr


# -- demonstrations ---------------------------------------------------------------------


def test_demonstrate_shows_the_first_element_that_differs() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--no-fix-search", "--demonstrate")
    lines = result.stdout.splitlines()
    at = lines.index("demonstration, device build: C[0, 0] depends on the schedule")
    values = {line.split()[0]: float(line.split()[1]) for line in lines[at + 1 : at + 4]}
    assert list(values) == ["lockstep", "warps", "reference"]
    assert abs(values["lockstep"] - values["reference"]) < 1e-4
    assert abs(values["warps"] - values["reference"]) > 1e-4
    assert "elements differ" in lines[at + 4]


def test_demonstrate_of_a_race_free_kernel() -> None:
    result = check("matmul_tiled", "--size", 8, "--tile", 4, "--demonstrate")
    assert result.exit_code == 0
    assert "demonstration: the same bits under 35 schedules" in result.stdout


@pytest.mark.slow
def test_demonstrate_says_when_every_schedule_agrees_on_a_wrong_result() -> None:
    result = check(
        "matmul_tiled_wrong_guard", "--size", "20x16x16", "--demonstrate", "--no-fix-search"
    )
    assert "demonstration, device build: C[" in result.stdout
    assert "is wrong under every schedule" in result.stdout


def test_demonstrate_finds_a_race_that_the_device_build_lost(file: str) -> None:
    words = (
        file,
        *launch("forwarded", 64, "i32[64]"),
        "--demonstrate",
        "--no-fix-search",
        "--json",
        "-",
    )
    shown = json.loads(check(*words).stdout)["demonstration"]
    if shown is None:  # a schedule that shows it is not promised
        pytest.skip("no schedule shows it")
    assert shown["build"] == "source"


def test_demonstrate_of_a_race_without_an_effect(file: str) -> None:
    result = check(file, *launch("flags", 64, "i32[1]"), "--demonstrate")
    assert "the race is there nevertheless" in flat(result)


def test_the_order_of_atomics_is_told_from_a_race(file: str) -> None:
    result = check(file, *launch("sum", 256, "f32[1]", "f32[256]=normal"), "--demonstrate")
    assert result.exit_code == 0
    assert "no race was found: the order of floating-point atomics, perhaps" in flat(result)


# -- what cannot run --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("matmul_tield",), "did you mean matmul_tiled"),
        (("matmul_tiled", "--checks", "none"), "leaves nothing to check"),
        (("matmul_tiled", "--checks", "luck"), "unknown check 'luck'"),
        (("matmul_tiled", "--schedule", "luck"), "unknown schedule 'luck'"),
        (("matmul_tiled", "--json", "-", "--sarif", "-"), "cannot both have standard output"),
        (("matmul_tiled", "--equal-writes", "maybe"), "'maybe' is not one of"),
        (("matmul_tiled", "--max", "-1"), "-1 is not in the range"),
        (("matmul_tiled", "--fail-no", "error"), "did you mean --fail-on?"),
        (("matmul_tiled", "--size", 16, "--sarif", "no/such/x"), "no/such/x: No such file"),
        ((), "missing argument"),
    ],
)
def test_bad_command_lines(words: tuple[Any, ...], message: str) -> None:
    result = check(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


# -- file names ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ['a "quoted" name.cu', "back\\slash.cu", "two words.cu"])
def test_files_of_any_name_show_their_lines(file: str, name: str) -> None:
    Path(name).write_text(Path(file).read_text())
    said = flat(check(name, *launch("past", 32, "f32[32]")))
    assert f"write {name}:25 x[threadIdx.x + 8] = 1.0f;" in said


# -- a build that is refused ---------------------------------------------------------------


@pytest.fixture
def device_only(tmp_path: Path) -> Path:
    """A kernel that the source build cannot run: what nobody reaches is still there."""
    file = tmp_path / "atomic.cu"
    file.write_text(
        "__global__ void k(int* a, int* b) {\n"
        "    int off = 0;\n"
        '    if (off) asm volatile("tcgen05.fence::before_thread_sync;");\n'
        "    b[threadIdx.x] = 1;\n"
        "}\n"
    )
    return file


@pytest.mark.parametrize(("size", "code"), [(32, 0), (31, 1)])
def test_one_build_refused_leaves_the_others_verdict(
    device_only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, code: int
) -> None:
    shape = ("--grid", 1, "--block", 32, "i32[1]", f"i32[{size}]")
    sarif_file, json_file = tmp_path / "out.sarif", tmp_path / "out.json"
    monkeypatch.chdir(tmp_path)
    result = tilescope(
        "check", device_only, "k", *shape, "--sarif", sarif_file, "--json", json_file
    )
    assert result.exit_code == code, result.output
    said = " ".join(result.stdout.split())
    assert ("no hazards in k" if code == 0 else "1 error in k") in said
    assert "the source build could not be checked" in said
    assert "on: device build; schedule lockstep" in said
    assert "not checked: source build: the simulator does not execute 'tcgen05" in said
    assert "atomic.cu:3" in said.partition("not checked: source build")[2]
    written = json.loads(json_file.read_text())
    assert list(written["refused"]) == ["source"]
    assert [build["build"] for build in written["builds"]] == ["device"]
    [run] = json.loads(sarif_file.read_text())["runs"]
    [notice] = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("source build: ")
    quiet = tilescope("check", device_only, "k", *shape, "-q")
    assert "not checked: source build" in quiet.stderr


def test_nothing_that_could_be_checked_is_exit_code_2(device_only: Path) -> None:
    shape = ("--grid", 1, "--block", 32, "i32[1]", "i32[32]")
    alone = tilescope("check", device_only, "k", *shape, "--build", "source")
    assert alone.exit_code == 2
    assert alone.stderr.startswith("error: the simulator does not execute 'tcgen05.fence")
