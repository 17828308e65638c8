"""``tilescope barriers``: which barriers of a kernel are needed."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import flat, launch, tilescope


@pytest.mark.slow
def test_both_barriers_of_the_tiled_kernel_are_needed() -> None:
    result = tilescope("barriers", "matmul_tiled", "--size", 64)
    assert result.exit_code == 0
    said = flat(result)
    assert said.startswith("2 barriers in matmul_tiled, grid 4x4, block 16x16 (device build)")
    assert said.count("needed: ") == 2
    assert "needed: Missing barrier: shared" in said
    assert "is overwritten" in said
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


ONE_LINE = r"""
#define BOTH __syncthreads(); v = s[63 - t]; __syncthreads()
__global__ void k(float *o) {
    __shared__ float s[64];
    int t = threadIdx.x; s[t] = t; __syncthreads(); float v = s[63 - t]; __syncthreads(); // {;}
    o[t] = v; __syncthreads(); o[t + 64] = v; BOTH;
}
"""


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
def test_barriers_of_one_line_are_told_apart(tmp_path: Path, build: str) -> None:
    path = tmp_path / "line.cu"
    path.write_text(ONE_LINE)
    words = ("--grid", 1, "--block", 64, "f32[128]", "--build", build)
    content = json.loads(tilescope("barriers", path, *words, "--json", "-").stdout)
    said = [(b["line"], b["which"], b["copies"], b["needed"]) for b in content["barriers"]]
    assert said == [
        (5, [1, 2], 1, True), (5, [2, 2], 1, False),
        (6, [1, 2], 1, False), (6, [2, 2], 2, False),
    ]  # fmt: skip
    said = flat(tilescope("barriers", path, *words))
    assert said.startswith("4 barriers in k")
    assert "barrier 1 of 2 in this line needed: Missing barrier: " in said
    assert "barrier 2 of 2 in this line; 2 in the PTX, taken out together no hazard" in said
