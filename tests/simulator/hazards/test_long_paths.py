"""Reports of files in folders with long names: what is left of a path is its end."""

from pathlib import Path

import pytest

from simulator.hazards.wording.text import shortened, wrap
from tests.support.command_line import tilescope

FILE = "a_folder_with_a_long_name/of_some-project/src/kernels/called_from_here.cu"
SOURCE = """\
__device__ float deeper(float *s, int i)
{
    return s[i + 1];
}
__device__ float deep(float *s, int i)
{
    return deeper(s, i) + 1;
}
__global__ void shifted(float *a)
{
    __shared__ float s[128];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = deep(s, threadIdx.x) + deep(s, threadIdx.x + 1);
    __syncthreads();
}
"""


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path(FILE).parent.mkdir(parents=True)
    Path(FILE).write_text(SOURCE)
    return FILE


@pytest.mark.slow
def test_calls_are_told_by_their_lines(long: str) -> None:
    shape = ("--grid", 1, "--block", 64, "f32[64]")
    report = tilescope("check", long, "shifted", *shape).stdout
    lines = report.splitlines()
    assert max(map(len, lines)) <= 80
    for line in (7, 13):
        assert (
            f"        called from .../of_some-project/src/kernels/called_from_here.cu:{line}"
            in lines
        )
    assert f"    {FILE}:12" in lines
    assert f"    {FILE}:3" in lines
    assert "between lanes of one warp as well" in " ".join(report.split())


def test_titles_keep_the_name_of_the_file(long: str) -> None:
    shape = ("--grid", 1, "--block", 64, "f32[64]")
    report = tilescope("run", long, "shifted", *shape).stdout
    [title] = [line for line in report.splitlines() if line.startswith("busiest lines")]
    assert title.endswith("/src/kernels/called_from_here.cu")
    assert len(title) <= 80
    report = tilescope("barriers", long, "shifted", *shape).stdout
    assert f"{FILE}:14" in report
    assert max(map(len, report.splitlines())) <= 80


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (30, "/home/me/src/kernels/file.cu:7"),
        (29, ".../me/src/kernels/file.cu:7"),
        (20, ".../file.cu:7"),
        (12, "...file.cu:7"),
        (8, "....cu:7"),
    ],
)
def test_a_path_loses_its_head(width: int, shown: str) -> None:
    assert shortened("/home/me/src/kernels/file.cu:7", width) == shown


def test_text_is_not_parted_within_a_path() -> None:
    path = "/a-folder/" + "b-c/" * 10 + "d.cu:3"
    assert wrap(f"seen at {path}, and there", 70) == [f"seen at {path}, and", "there"]
    assert wrap(f"seen at {path}, and there", 60, "  ", "    ") == [
        "  seen at", "    .../b-c/b-c/b-c/b-c/b-c/b-c/b-c/b-c/b-c/b-c/d.cu:3, and", "    there",
    ]  # fmt: skip
    assert all(len(line) <= 40 for line in wrap(f"seen at {path} by {'k' * 90}", 40))
