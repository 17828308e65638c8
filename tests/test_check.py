"""``tilescope check`` and ``tilescope barriers``: verdicts, reports, exit codes, JSON, SARIF."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from simulator import Hazard, Involved, Source
from simulator.hazards.hazard import SEVERITIES
from tilescope import sarif
from tilescope.builds import SOURCE_ONLY, merge
from tilescope.cli import main
from tilescope.policy import CHOICES, Policy, apply

KERNELS = """\
__global__ void forwarded(int* out) {
    __shared__ int last;
    last = threadIdx.x;
    out[threadIdx.x] = last;
}
__global__ void flag(int* out) {
    out[0] = 1;
}
__global__ void flags(int* out) {
    if (threadIdx.x % 32 == 0)
        out[0] = 1;
}
__global__ void neighbour(float* out) {
    __shared__ float s[32];
    s[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = s[31 - threadIdx.x];
}
__global__ void sum(float* out, const float* x) {
    atomicAdd(out, x[threadIdx.x]);
}
__global__ void steered(float* out, const int* index) {
    out[index[threadIdx.x]] = 1.0f;
}
__global__ void past(float* x) {
    x[threadIdx.x + 8] = 1.0f;
}
__global__ void idle(float* x) {
    __syncthreads();
    x[threadIdx.x] = 1.0f;
}
__global__ void two_steps(float* x) {
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    a[t] = x[t];
    float other = a[63 - t];
    b[t] = other * 2;
    x[t] = b[63 - t];
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's own file, in the working folder."""
    (tmp_path / "my.cu").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return "my.cu"


def tilescope(*words: Any) -> Result:
    """Run a command line in this process; whatever it prints fits 80 columns."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if "-" not in words:
        assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    return result


def check(*words: Any) -> Result:
    return tilescope("check", *words)


def flat(result: Result) -> str:
    """The report on one line."""
    return " ".join(result.stdout.split())


def launch(entry: str, threads: int, *arguments: Any, grid: int = 1) -> tuple[Any, ...]:
    return (entry, "--grid", grid, "--block", threads, *arguments)


# -- the verdict ------------------------------------------------------------------------


def test_a_race_with_its_lines_and_cure() -> None:
    result = check("matmul_missing_first_barrier", "--size", 64)
    assert result.exit_code == 1
    said = flat(result)
    assert said.startswith(
        "1 error, 1 warning in matmul_missing_first_barrier, grid 4x4, block 16x16 "
        "(all checks ran) error: RAW race on shared Bs (read of what another warp may not have "
        "written yet) write kernels/matmul/faulty.cu:25"
    )
    assert "read kernels/matmul/faulty.cu:27" in said
    assert "cure __syncthreads() after line 25: verified, 0 errors left" in said
    assert "on: device and source builds; schedule lockstep" in said
    assert "only in the" not in said


def test_the_other_missing_barrier_is_cured_too() -> None:
    said = flat(check("matmul_missing_second_barrier", "--size", 32, "--build", "device"))
    assert "1 error, 1 warning in" in said
    assert "verified, 0 errors left" in said


def test_two_races_need_two_barriers(file: str) -> None:
    said = flat(check(file, *launch("two_steps", 64, "f32[64]")))
    assert "cure __syncthreads() after line 34: verified, 1 error left, 0 with the other" in said
    assert "cure __syncthreads() after line 36: verified, 1 error left, 0 with the other" in said


def test_no_cure_is_looked_for_if_not_wanted() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--no-cure")
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
    assert "reach: these inputs alone; what arrays hold steers the kernel at my.cu:22" in flat(
        result
    )


def test_a_wrong_guard_counts_unrolled_copies_once() -> None:
    result = check("matmul_tiled_wrong_guard", "--size", 70)
    assert result.exit_code == 1
    assert result.stdout.startswith("2 errors, 2 warnings in matmul_tiled_wrong_guard")


@pytest.mark.parametrize("schedule", ["warps", "reverse", "7"])
def test_no_schedule_hides_a_race(schedule: str) -> None:
    words = ("--size", 16, "--schedule", schedule, "--no-cure")
    result = check("matmul_missing_first_barrier", *words)
    assert result.exit_code == 1
    assert "race on shared Bs" in flat(result)
    assert f"schedule {schedule}" in result.stdout
    assert check("matmul_tiled", *words).exit_code == 0


# -- builds -----------------------------------------------------------------------------


def test_a_race_that_the_optimiser_removes(file: str) -> None:
    words = (file, *launch("forwarded", 64, "i32[64]"))
    result = check(*words)
    assert result.exit_code == 1
    said = flat(result)
    assert "WAW race on shared last" in said
    found = json.loads(check(*words, "--json", "-").stdout)["hazards"]
    assert len(found) == 4
    assert all(SOURCE_ONLY in hazard["notes"] for hazard in found)
    device = check(*words, "--build", "device")
    assert device.exit_code == 0
    assert "on: device build; schedule lockstep" in device.stdout
    source = check(*words, "--build", "source")
    assert source.exit_code == 1
    assert SOURCE_ONLY not in flat(source)


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


@dataclasses.dataclass
class Seen:
    """As much of a run as merging looks at."""

    build: str
    hazards: list[Hazard]


def hazard(*lines: int, severity: str = "error", also: tuple[str, ...] = ()) -> Hazard:
    involved = tuple(
        Involved("read", Source("a.cu", line), "ld.shared.f32", line) for line in lines
    )
    message = "RAW race on shared s (read of what another warp may not have written yet)"
    return Hazard(
        "raw-race", message, severity, "shared", "s", involved=involved, also=also, reach="warp"
    )


def merged(*hazards: list[Hazard]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    runs: Any = [
        Seen(build, found) for build, found in zip(("device", "source"), hazards, strict=True)
    ]
    return [(h.lines, h.builds) for h in merge(runs)]


def test_builds_are_merged_by_variable_and_lines() -> None:
    both, device, source = ("device", "source"), ("device",), ("source",)
    assert merged([hazard(3, 5)], [hazard(3, 5)]) == [((3, 5), both)]
    assert merged([hazard(3, 5)], [hazard(7, 9)]) == [((3, 5), device), ((7, 9), source)]
    assert merged([hazard(3, 5)], [hazard(4, 5, also=("t",))]) == [((3, 5), both)]
    assert merged([hazard(3, 5)], [hazard(4, 5), hazard(3, 5)]) == [
        ((3, 5), both),
        ((4, 5), source),
    ]
    assert merged([hazard(3, 5, severity="warning")], [hazard(3, 5)]) == [
        ((3, 5), source),
        ((3, 5), device),
    ]
    assert merged([hazard(3, 5), hazard(3, 5)], []) == [((3, 5), device)]


def test_builds_may_tell_the_same_finding_in_other_words() -> None:
    def out_of_bounds(space: str, name: str, line: int) -> Hazard:
        involved = (Involved("read", Source("a.cu", line), "ld.f32", 9),)
        return Hazard("out-of-bounds", name, "error", space, name, involved=involved)

    def trap(place: Source) -> Hazard:
        return Hazard("trap", "a trap", involved=(Involved("at", place, "trap", 9),))

    both = ("device", "source")
    shared, unknown = out_of_bounds("shared", "s", 3), out_of_bounds("global", "", 3)
    assert merged([shared], [unknown]) == [((3,), both)]
    assert len(merged([shared], [out_of_bounds("global", "", 4)])) == 2
    headers = trap(Source("PTX line 40", 0, "trap"))
    assert merged([trap(Source("a.cu", 3))], [headers]) == [((3,), both)]
    assert len(merged([headers], [trap(Source("a.cu", 3)), headers])) == 2


# -- policies ---------------------------------------------------------------------------


EQUAL = Hazard("waw-race", "WAW race", "warning", "shared", "s", case="equal", reach="warp")
LANES = Hazard("raw-race", "RAW race", "warning", "shared", "s", case="in step", reach="lane")
OTHER = Hazard("barrier-divergence", "a barrier after some threads have exited", "warning")
SEVERE = Hazard("out-of-bounds", "write out of bounds: x[1]")


@pytest.mark.parametrize("equal", CHOICES)
@pytest.mark.parametrize("lanes", CHOICES)
def test_a_policy_judges_what_is_disputed_and_nothing_else(equal: str, lanes: str) -> None:
    before = [EQUAL, LANES, OTHER, SEVERE]
    kept, left_out = apply(Policy(equal, lanes), before)
    found = {hazard.message: hazard.severity for hazard in kept}
    assert found.pop(OTHER.message) == "warning"
    assert found.pop(SEVERE.message) == "error"
    assert found.pop(EQUAL.message, "ignore") == equal
    assert found.pop(LANES.message, "ignore") == lanes
    assert left_out == (equal == "ignore") + (lanes == "ignore")
    order = [hazard.severity for hazard in kept]
    assert order == sorted(order)
    assert [EQUAL.severity, LANES.severity] == ["warning", "warning"]


@pytest.mark.parametrize(("choice", "code"), [("error", 1), ("warning", 0), ("ignore", 0)])
def test_equal_writes(file: str, choice: str, code: int) -> None:
    result = check(file, *launch("flags", 64, "i32[1]"), "--equal-writes", choice)
    assert result.exit_code == code
    head = {"error": "1 error in", "warning": "1 warning in", "ignore": "no hazards in"}[choice]
    assert result.stdout.startswith(head)
    assert ("left out by the policy chosen: 1 hazard" in result.stdout) == (choice == "ignore")
    assert ("every write leaves the same value" in result.stdout) == (choice != "ignore")


@pytest.mark.parametrize(("choice", "code"), [("error", 1), ("warning", 0), ("ignore", 0)])
def test_warp_synchronous(file: str, choice: str, code: int) -> None:
    words = (file, *launch("neighbour", 32, "f32[32]"), "--warp-synchronous", choice)
    result = check(*words)
    assert result.exit_code == code
    head = {"error": "1 error in", "warning": "1 warning in", "ignore": "no hazards in"}[choice]
    assert result.stdout.startswith(head)
    cured = "__syncwarp() after line 15: verified, 0 errors left" in result.stdout
    assert cured == (choice != "ignore")
    assert check(*words, "--fail-on", "warning").exit_code == int(choice != "ignore")


# -- output -----------------------------------------------------------------------------


def test_max_limits_what_is_printed_alone(file: str, tmp_path: Path) -> None:
    words = (file, *launch("neighbour", 64, "f32[32]"), "--no-cure")
    everything = check(*words, "--max", 0)
    count = len([line for line in everything.stdout.splitlines() if line[:5] in ("error", "warni")])
    assert count > 1
    result = check(*words, "--max", 1, "--json", tmp_path / "out.json")
    assert f"(and {count - 1} more: --max 0 shows all)" in result.stdout
    assert len(json.loads((tmp_path / "out.json").read_text())["hazards"]) == count
    assert result.stdout.splitlines()[0] == everything.stdout.splitlines()[0]


def test_json() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--json", "-")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["schema"] == 1
    assert (content["name"], content["grid"], content["block"]) == (
        "matmul_missing_first_barrier", [2, 2, 1], [16, 16, 1],
    )  # fmt: skip
    assert [build["build"] for build in content["builds"]] == ["device", "source"]
    assert all(len(build["sha256"]) == 64 for build in content["builds"])
    assert (content["errors"], content["warnings"], content["not_checked"]) == (1, 1, [])
    first = content["hazards"][0]
    assert first["kind"] == "raw-race"
    cure = first["cure"]
    assert {key: cure[key] for key in ("file", "after_line", "left", "left_with_other_cures")} == {
        "file": "kernels/matmul/faulty.cu", "after_line": 25, "left": 0,
        "left_with_other_cures": None,
    }  # fmt: skip
    assert (cure["line"], cure["where"], cure["text"]) == (25, "after", "__syncthreads();")
    assert "\n+        __syncthreads();\n" in cure["diff"]
    assert [hazard["cure"]["group"] for hazard in content["hazards"]] == [1, 1]
    assert first["builds"] == ["device", "source"]


def test_quiet_prints_hazards_on_stderr(file: str) -> None:
    result = check(file, *launch("past", 32, "f32[32]"), "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: write out of bounds: x[32]" in result.stderr
    clean = check("matmul_tiled", "--size", 16, "--quiet")
    assert (clean.exit_code, clean.stdout, clean.stderr) == (0, "", "")


def test_sarif_has_what_the_schema_requires(file: str) -> None:
    result = check(file, *launch("neighbour", 64, "f32[32]"), "--sarif", "-")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    rules = driver["rules"]
    assert driver["name"] == "tilescope"
    assert [rule["id"] for rule in rules] == list(SEVERITIES)
    for rule in rules:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in ("error", "warning")
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert len(run["results"]) > 1
    for found in run["results"]:
        assert rules[found["ruleIndex"]]["id"] == found["ruleId"]
        assert found["level"] in ("error", "warning")
        assert found["message"]["text"]
        assert len(found["locations"]) == 1
        for place in [*found["locations"], *found.get("relatedLocations", ())]:
            physical = place["physicalLocation"]
            assert physical["artifactLocation"] == {"uri": "my.cu"}
            assert physical["region"]["startLine"] in (15, 16)
    prints = [found["partialFingerprints"]["tilescopeHazard/v1"] for found in run["results"]]
    assert all(len(text) == 32 for text in prints)


def test_a_clean_sarif_has_no_results(tmp_path: Path) -> None:
    file = tmp_path / "out.sarif"
    assert check("matmul_tiled", "--size", 16, "--sarif", file).exit_code == 0
    assert json.loads(file.read_text())["runs"][0]["results"] == []


def test_uris_are_relative_and_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert sarif.uri("a b#1.cu") == "a%20b%231.cu"
    assert sarif.uri(str(tmp_path / "here" / "x" / "y.cu")) == "x/y.cu"
    assert sarif.uri(str(tmp_path / "there.cu")) == "../there.cu"


# -- demonstrations ---------------------------------------------------------------------


def test_demonstrate_shows_the_first_element_that_differs() -> None:
    result = check("matmul_missing_first_barrier", "--size", 32, "--no-cure", "--demonstrate")
    lines = result.stdout.splitlines()
    at = lines.index("demonstration, device build: C[0, 0] depends on the schedule")
    values = {line.split()[0]: float(line.split()[1]) for line in lines[at + 1 : at + 4]}
    assert list(values) == ["lockstep", "warps", "reference"]
    assert abs(values["lockstep"] - values["reference"]) < 1e-4
    assert abs(values["warps"] - values["reference"]) > 1e-4
    assert "elements differ" in lines[at + 4]


def test_demonstrate_of_a_race_free_kernel() -> None:
    result = check("matmul_tiled", "--size", 16, "--demonstrate")
    assert result.exit_code == 0
    assert "demonstration: the same bits under 35 schedules" in result.stdout


def test_demonstrate_says_when_every_schedule_agrees_on_a_wrong_result() -> None:
    result = check("matmul_tiled_wrong_guard", "--size", "20x16x16", "--demonstrate", "--no-cure")
    assert "demonstration, device build: C[" in result.stdout
    assert "is wrong under every schedule" in result.stdout


def test_demonstrate_finds_a_race_that_the_device_build_lost(file: str) -> None:
    words = (file, *launch("forwarded", 64, "i32[64]"), "--demonstrate", "--no-cure", "--json", "-")
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


@pytest.mark.parametrize("command", ["check", "barriers"])
def test_help_has_examples_and_fits(command: str) -> None:
    result = tilescope(command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout


# -- barriers ---------------------------------------------------------------------------


def test_both_barriers_of_the_tiled_kernel_are_needed() -> None:
    result = tilescope("barriers", "matmul_tiled", "--size", 64)
    assert result.exit_code == 0
    said = flat(result)
    assert said.startswith("2 barriers in matmul_tiled, grid 4x4, block 16x16 (device build)")
    assert said.count("needed: ") == 2
    assert "needed: RAW race on shared" in said
    assert "needed: WAR race on shared" in said
    assert "no hazard" not in said


def test_a_barrier_that_does_nothing(file: str) -> None:
    result = tilescope("barriers", file, *launch("idle", 64, "f32[64]"))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "1 barrier in idle, grid 1, block 64 (device build)",
        "",
        "my.cu:28  __syncthreads();",
        "  no hazard in this launch without it",
        "",
        "another size or block shape may need what this launch does not",
    ]


def test_one_phase_needs_one_barrier_less() -> None:
    result = tilescope("barriers", "matmul_tiled", "--size", "16x16x16", "--build", "source")
    said = flat(result)
    assert said.count("needed: ") == 1
    assert said.count("no hazard in this launch without it") == 1


def test_hazards_that_are_there_anyway_do_not_count(file: str) -> None:
    words = ("matmul_missing_first_barrier", "--size", "16x16x16")
    said = flat(tilescope("barriers", *words))
    assert "with all barriers in place: not counted below" in said
    assert "no hazard in this launch without it" in said


def test_a_kernel_without_barriers() -> None:
    result = tilescope("barriers", "matmul_naive", "--size", 16)
    assert result.exit_code == 0
    assert result.stdout == "no barrier in matmul_naive, grid 1, block 16x16 (device build)\n"


def test_barriers_as_json() -> None:
    result = tilescope("barriers", "matmul_tiled", "--size", 32, "--json", "-")
    content = json.loads(result.stdout)
    assert content["hazards"] == []
    assert [barrier["needed"] for barrier in content["barriers"]] == [True, True]
    assert all(barrier["hazards"][0]["kind"] for barrier in content["barriers"])


@pytest.mark.parametrize("name", ['a "quoted" name.cu', "back\\slash.cu", "two words.cu"])
def test_files_of_any_name_show_their_lines(file: str, name: str) -> None:
    Path(name).write_text(Path(file).read_text())
    said = flat(check(name, *launch("past", 32, "f32[32]")))
    assert f"write {name}:25 x[threadIdx.x + 8] = 1.0f;" in said


# -- a build that is refused ---------------------------------------------------------------


@pytest.fixture
def device_only(tmp_path: Path) -> Path:
    """A kernel that the source build cannot run: it calls through pointers there."""
    file = tmp_path / "atomic.cu"
    file.write_text(
        "#include <cuda/atomic>\n"
        "__global__ void k(cuda::atomic<int>* a, int* b) {\n"
        "    a[0].fetch_add(1);\n"
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
    assert "not checked: source build: the simulator does not execute 'call' yet" in said
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
    assert alone.stderr.startswith("error: the simulator does not execute 'call' yet")
    recursion = Path(__file__).parent / "defects" / "compile" / "recursion.cu"
    both = tilescope("check", recursion, "k", "--grid", 1, "--block", 32, "i32[32]")
    assert both.exit_code == 2
    assert "'fib' calls itself" in both.stderr
