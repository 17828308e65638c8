"""An old repository: comments that ignore, a baseline, JUnit's XML."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import tilescope

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
        tilescope(c, path, *LAUNCH, *m) for c, m in (("check", ["--no-cure"]), ("run", []))
    )
    assert checked.exit_code == ran.exit_code == int(not left_out)
    assert ("ignored by comments or the baseline: 1 hazard" in checked.stdout) == left_out
    assert ("ignored by comments: 1 of the hazards found" in ran.stdout) == left_out


def test_only_what_is_new_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file(tmp_path).parent)
    path, known = Path("old.cu"), Path("known.json")
    first = tilescope("check", path, *LAUNCH, "--no-cure", "--write-baseline", known)
    assert first.exit_code == 1
    assert json.loads(known.read_text())["hazards"][0]["kind"] == "raw-race"
    assert tilescope("check", path, *LAUNCH, "--baseline", known).exit_code == 0
    path.write_text("// a line more\n" + path.read_text())
    assert tilescope("check", path, *LAUNCH, "--baseline", known).exit_code == 0
    path.write_text(path.read_text().replace("s[63 - i]", "s[i ^ 32]"))
    assert tilescope("check", path, *LAUNCH, "--no-cure", "--baseline", known).exit_code == 1


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
    tilescope("check", "old.cu", *LAUNCH, "--no-cure", "--junit", out, "--expect", "o=7")
    suite = ElementTree.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "4")
    assert [c.get("name") for c in suite] == ["k (device)", "k (source)"]
    assert {f.get("type") for f in suite.iter("failure")} == {"raw-race", "result"}
    file(tmp_path, " // tilescope: ignore")
    tilescope("check", "old.cu", *LAUNCH, "--junit", out)
    assert ElementTree.parse(out).getroot().get("failures") == "0"
