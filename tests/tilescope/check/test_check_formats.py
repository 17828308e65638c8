"""What ``tilescope check`` writes for other programs: JSON, SARIF, and what fits a terminal."""

import json
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import tilescope
from simulator.hazards.hazard import SEVERITIES
from tests.support.command_line import check, launch
from tilescope.cli.main import main
from tilescope.formats import sarif


def test_max_limits_what_is_printed_alone(file: str, tmp_path: Path) -> None:
    words = (file, *launch("neighbour", 64, "f32[32]"), "--no-fix-search")
    everything = check(*words, "--max", 0)
    count = len([line for line in everything.stdout.splitlines() if line[:5] in ("error", "warni")])
    assert count > 1
    result = check(*words, "--max", 1, "--json", tmp_path / "out.json")
    assert f"(and {count - 1} more: --max 0 shows all)" in result.stdout
    assert len(json.loads((tmp_path / "out.json").read_text())["hazards"]) == count
    assert result.stdout.splitlines()[0] == everything.stdout.splitlines()[0]


def test_sources_that_are_not_installed_have_pages_and_sarif(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", nowhere)
    words = ["view", "matmul_naive", "--size", "8", "--tile", "4", "-o", str(tmp_path / "a.html")]
    assert CliRunner().invoke(main, words).exit_code == 0
    result = check("matmul_naive", "--size", 8, "--tile", 4, "--sarif", "-", "-q")
    driver = json.loads(result.stdout)["runs"][0]["tool"]["driver"]
    assert driver["version"] == tilescope.version() == "0"


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
    fix = first["fix"]
    assert {key: fix[key] for key in ("file", "after_line", "left", "left_with_other_fixes")} == {
        "file": "kernels/library/matmul/faulty.cu", "after_line": 25, "left": 0,
        "left_with_other_fixes": None,
    }  # fmt: skip
    assert (fix["line"], fix["where"], fix["text"]) == (25, "after", "__syncthreads();")
    assert "\n+        __syncthreads();\n" in fix["diff"]
    assert [hazard["fix"]["group"] for hazard in content["hazards"]] == [1, 1]
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
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
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
    prints = [found["partialFingerprints"]["tilescopeHazard/v2"] for found in run["results"]]
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


@pytest.mark.parametrize("name", ["b\udcfcrnel.cu", "bürnel.cu"])
def test_junit_of_a_file_whose_name_is_no_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every name is that is not ASCII, where the locale is C; JSON escapes it alike."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("__global__ void k(float *x) { x[threadIdx.x] = 1; }\n")
    words = (name, *launch("k", 32, "f32[32]"), "--build", "device")
    assert CliRunner().invoke(main, ["check", *map(str, words), "--junit", "x"]).exit_code == 0
    case = ElementTree.parse("x").getroot()[0]
    assert case.get("classname") == name.replace("\udcfc", r"\udcfc")


@pytest.mark.parametrize("fail_on", ["error", "warning"])
def test_a_doubtful_argument_is_told_alike(
    fail_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fine.cu").write_text("__global__ void k(float *x) { x[threadIdx.x] = 1; }\n")
    files = ("--junit", "out.xml", "--sarif", "out.sarif")
    shape = ("--grid", 1, "--block", 32, "i32[32]")
    done = check("fine.cu", "k", *shape, "--fail-on", fail_on, *files)
    assert done.exit_code == (fail_on == "warning")
    assert done.stdout.startswith("no hazards, 1 doubtful argument in k, ")
    told = "x: the kernel takes float*, the array is int32; its bytes are taken as they are"
    assert f"warning: {told}" in " ".join(done.stdout.split())
    suite = ElementTree.parse("out.xml").getroot()
    failures = [(f.get("type"), f.get("message")) for f in suite.iter("failure")]
    assert failures == [("argument", told)] * 2 * (fail_on == "warning")
    (log,) = json.loads(Path("out.sarif").read_text())["runs"]
    (notice,) = log["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"] == f"argument {told}"
