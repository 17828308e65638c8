"""An old repository: comments that ignore, a baseline, JUnit's XML."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command_line import tilescope
from tilescope.cli.project import touches

SOURCE = """__global__ void k(const float *a, float *o) {
    __shared__ float s[64];
    int i = threadIdx.x;
    s[i] = a[i];
    o[i] = s[63 - i];COMMENT
}
"""
LAUNCH = ("k", "--grid", 1, "--block", 64, "f32[64]", "f32[64]")


def file(folder: Path, comment: str = "") -> Path:
    path = folder / "old.cu"
    path.write_text(SOURCE.replace("COMMENT", comment))
    return path


@pytest.mark.parametrize(
    ("comment", "left_out"),
    [
        ("", False),
        ("  // tilescope: ignore[raw-race] one warp at a time", True),
        ("  // tilescope: ignore  known since 2019", True),
        ("  /* tilescope: ignore[waw-race, raw-race] */", True),
        ("  // tilescope: ignore[waw-race]", False),
        ("  // tilescope: ignored", False),
        ("  // ignore[raw-race]", False),
    ],
)
def test_a_comment_leaves_a_hazard_out(
    comment: str, left_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file(tmp_path, comment).parent)
    path = "old.cu"
    checked, ran = (
        tilescope(c, path, *LAUNCH, *m) for c, m in (("check", ["--no-fix-search"]), ("run", []))
    )
    assert checked.exit_code == ran.exit_code == int(not left_out)
    assert ("ignored by comments or the baseline: 1 hazard" in checked.stdout) == left_out
    assert ("hazards: none but 1 ignored by comments (" in ran.stdout) == left_out
    assert ("verdict: no hazards but 1 ignored;" in ran.stdout) == left_out
    told = json.loads(tilescope("run", path, *LAUNCH, "--json", "-").stdout)
    assert (told["set_aside"], len(told["hazards"])) == (int(left_out), int(not left_out))


@pytest.mark.parametrize(
    ("commented", "left_out"), [((5,), False), ((6,), False), ((5, 6), True), ((4,), True)]
)
def test_a_comment_leaves_out_the_races_of_its_line(
    commented: tuple[int, ...], left_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that two lines read is told as one hazard, and is two races."""
    monkeypatch.chdir(tmp_path)
    lines = SOURCE.replace("COMMENT", "\n    o[i] += s[i ^ 33];").splitlines()
    for number in commented:
        lines[number - 1] += " // tilescope: ignore[raw-race]"
    Path("two.cu").write_text("\n".join(lines) + "\n")
    done = tilescope("check", "two.cu", *LAUNCH, "--build", "device", "--no-fix-search")
    assert done.exit_code == int(not left_out)


def test_only_what_is_new_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file(tmp_path).parent)
    path, known = Path("old.cu"), Path("known.json")
    first = tilescope("check", path, *LAUNCH, "--no-fix-search", "--write-baseline", known)
    assert first.exit_code == 1
    assert json.loads(known.read_text())["hazards"][0]["kind"] == "raw-race"
    assert tilescope("check", path, *LAUNCH, "--baseline", known).exit_code == 0
    path.write_text("// a line more\n" + path.read_text())
    assert tilescope("check", path, *LAUNCH, "--baseline", known).exit_code == 0
    path.write_text(path.read_text().replace("s[63 - i]", "s[i ^ 32]"))
    assert tilescope("check", path, *LAUNCH, "--no-fix-search", "--baseline", known).exit_code == 1


NEXT = """__global__ void next(float *x, int n) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    x[threadIdx.x] = s[(threadIdx.x + 1) % n];
}
"""


@pytest.mark.slow_cases("builds1")
@pytest.mark.parametrize("builds", [(), ("--build", "device")])
def test_a_baseline_hides_no_worse_race(
    builds: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lanes of a warp are a warning; two warps that race at the same lines are an error."""
    monkeypatch.chdir(tmp_path)
    Path("next.cu").write_text(NEXT)

    def check(threads: int, *words: str) -> int:
        shape = ("--grid", 1, "--block", threads, "f32[64]", threads)
        return tilescope(
            "check", "next.cu", "next", *shape, "--no-fix-search", *builds, *words
        ).exit_code

    assert check(32, "--write-baseline", "known.json") == 0
    assert check(32, "--baseline", "known.json", "--fail-on", "warning") == 0
    assert check(64, "--baseline", "known.json") == 1
    assert check(64, "--write-baseline", "known.json", "--equal-writes", "error") == 1
    assert check(64, "--baseline", "known.json", "--fail-on", "warning") == 0


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 7, "hazards": []}', '{"hazards": [1]}'])
def test_what_is_no_baseline_is_refused(content: str, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(content)
    done = tilescope("check", file(tmp_path), *LAUNCH, "--baseline", known)
    assert done.exit_code == 2
    assert "baseline" in done.stderr
    done = tilescope("check", file(tmp_path), *LAUNCH, "--baseline", tmp_path / "none.json")
    assert "--write-baseline" in done.stderr


def test_junit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file(tmp_path).parent)
    out = Path("out.xml")
    tilescope("check", "old.cu", *LAUNCH, "--no-fix-search", "--junit", out, "--expect", "o=7")
    suite = ElementTree.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "4")
    assert [c.get("name") for c in suite] == ["k (device)", "k (source)"]
    assert {f.get("type") for f in suite.iter("failure")} == {"raw-race", "result"}
    file(tmp_path, " // tilescope: ignore")
    tilescope("check", "old.cu", *LAUNCH, "--junit", out)
    assert ElementTree.parse(out).getroot().get("failures") == "0"


PROJECT = """
[tool.tilescope]
fail-on = "warning"

[[tool.tilescope.kernels]]
file = "src/old.cu"
grid = 1
block = "{n}"
args = ["f32[{n}]=ones", "f32[{n}]"]
sizes = [{n = 64}, {n = 32}]

[[tool.tilescope.kernels]]
file = "src/fine.cu"
grid = 1
block = 64
args = ["f32[64]"]
"""


def project(folder: Path) -> Path:
    (folder / "src").mkdir()
    (folder / "src" / "part.cuh").write_text("#define VALUE 1\n")
    fine = '#include "part.cuh"\n__global__ void fine(float *x) { x[threadIdx.x] = VALUE; }\n'
    (folder / "src" / "fine.cu").write_text(fine)
    file(folder / "src", "  // tilescope: ignore")
    (folder / "pyproject.toml").write_text(PROJECT)
    return folder / "pyproject.toml"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_projects_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = tilescope("check", "pyproject.toml", "--build", "device")
    assert done.exit_code == 0
    assert "== k, pyproject.toml:5\n" in done.stdout
    assert done.stdout.endswith("3 checked; 2 hazards ignored\n")
    file(tmp_path / "src")
    done = tilescope("check", "pyproject.toml", "--build", "device", "--no-fix-search")
    assert done.exit_code == 1
    path.write_text(PROJECT.replace("{n = 32}", "{m = 32}"))
    done = tilescope("check", "pyproject.toml")
    assert (done.exit_code, "'n' is no size of {'m': 32}" in done.stderr) == (2, True)
    path.write_text("[tool.other]\n")
    assert "no [[tool.tilescope.kernels]]" in tilescope("check", "pyproject.toml").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = 3\n", "tool = 3 is not a table"),
        ("[tool]\ntilescope = []\n", "tilescope = [] is not a table"),
        ("x = " + "[" * 5000 + "]" * 5000, "too deep"),
        (PROJECT.replace('"{n}"', '"{n.real}"'), "'{n.real}' is not a whole number or a list"),
        (PROJECT.replace('"{n}"', '"{n:>99999999999}"'), "is not a whole number or a list"),
        (PROJECT.replace('"{n}"', '"{}"'), "'{}' is not a whole number or a list"),
    ],
)
def test_bad_projects(text: str, message: str, tmp_path: Path) -> None:
    """One line; a size is put in by its name, nothing else in braces is asked for anything."""
    project(tmp_path).write_text(text)
    done = tilescope("check", tmp_path / "pyproject.toml")
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def racy_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(folder)
    file(folder / "src")
    monkeypatch.chdir(folder)


def test_a_projects_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    racy_project(tmp_path, monkeypatch)
    check = ("check", "pyproject.toml", "--no-fix-search", "--build", "device")
    assert "--write-baseline" in tilescope(*check, "--baseline", "known.json").stderr
    assert tilescope(*check, "--write-baseline", "known.json").exit_code == 1
    known = json.loads(Path("known.json").read_text())["hazards"]
    assert [one["kind"] for one in known] == ["raw-race", "uninitialised"]  # of one launch each
    again = tilescope(*check, "--baseline", "known.json")
    assert again.exit_code == 0
    assert "no hazards but 1 known in k, grid 1, block 64" in again.stdout
    assert again.stdout.endswith("3 checked; 2 hazards ignored\n")
    both = tilescope(*check, "--write-baseline", "known.json", "--since", "HEAD")
    assert (both.exit_code, "--since leaves some out" in both.stderr) == (2, True)


def test_a_projects_sarif_and_junit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    racy_project(tmp_path, monkeypatch)
    check = ("check", "pyproject.toml", "--no-fix-search", "--build", "device", "-q")
    tilescope(*check, "--sarif", "out.sarif", "--junit", "out.xml")
    (log,) = json.loads(Path("out.sarif").read_text())["runs"]
    assert [r["ruleId"] for r in log["results"]] == ["raw-race", "uninitialised"]
    assert log["properties"] == {"target": "pyproject.toml"}
    suite = ElementTree.parse("out.xml").getroot()
    assert [(c.get("name"), len(c.findall("failure"))) for c in suite] == [
        ("k, grid 1, block 64 (device)", 1), ("k, grid 1, block 32 (device)", 1),
        ("fine, grid 1, block 64 (device)", 0),
    ]  # fmt: skip
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")


def test_files_on_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    racy_project(tmp_path, monkeypatch)
    for target in (("src/old.cu", *LAUNCH), ("pyproject.toml",)):
        check = ("check", *target, "--no-fix-search", "--build", "device")
        suite = ElementTree.fromstring(tilescope(*check, "--junit", "-").stdout)
        assert suite.get("failures") in ("1", "2")
        made = json.loads(tilescope(*check, "--write-baseline", "-").stdout)
        assert made["hazards"][0]["kind"] == "raw-race"
        both = tilescope(*check, "--junit", "-", "--json", "-")
        assert "--json - and --junit - cannot both have standard output" in both.stderr
    assert not Path("-").exists()


def test_includes_that_are_hard_to_follow(tmp_path: Path) -> None:
    """Each file is read once, however many ways lead to it, and wherever they end."""
    for n in range(60):
        (tmp_path / f"{n}.cuh").write_text(f'#include "{n + 1}.cuh"\n#include "./{n + 1}.cuh"\n')
    ends = '#include "0.cuh"\n#include "\0"\n#include "' + "x" * 5000 + '"\n#include "..//"\n'
    (tmp_path / "60.cuh").write_text(ends)
    assert not touches(tmp_path / "0.cuh", set())
    assert touches(tmp_path / "0.cuh", {(tmp_path / "60.cuh").resolve()})


def test_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")

    def said(ref: str = "HEAD") -> str:
        done = tilescope("check", "pyproject.toml", "--since", ref, "--build", "device")
        return (done.stdout.splitlines() or done.stderr.splitlines())[-1]

    assert said() == "0 checked; 3 unchanged since HEAD, not checked"
    (tmp_path / "src" / "part.cuh").write_text("#define VALUE 2\n")
    assert said() == "1 checked; 2 unchanged since HEAD, not checked"
    assert "nowhere" in said("nowhere")


@pytest.mark.parametrize("options", [["-Ifar"], ["-I", "far"], ["--include-path=far"]])
@pytest.mark.parametrize("included", ['"deep.h"', "<deep.h>", '"../far/deep.h"'])
def test_includes_in_other_folders(
    options: list[str], included: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("far", "src"):
        (tmp_path / name).mkdir()
    file, deep = tmp_path / "src" / "a.cu", tmp_path / "far" / "deep.h"
    file.write_text("#include <near.h>\n")
    (tmp_path / "far" / "near.h").write_text(f"#include {included}\n")
    deep.write_text("")
    assert touches(file, {deep}, options)
    assert not touches(file, {deep})
    assert touches(file, {tmp_path / "far" / "new.h"}, ["-include", "far/new.h"])
    assert touches(file, {tmp_path / "far" / "new.h"}, ["--pre-include=far/new.h"])
