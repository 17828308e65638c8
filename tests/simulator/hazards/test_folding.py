"""One cause, one report: what exists only because of another finding stands beneath it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard
from tests.simulator.fixes.fix_check import check, hazards, launch

BUILDS = ("device", "source")
SCHEDULES = ("lockstep", "warps", "reverse", 3)


def found(body: str, build: str = "device", schedule: str | int = "lockstep") -> list[Hazard]:
    """What a block of 64 threads is told of."""
    text = "__global__ void k(const int* x, int* y, int* z) {\n    int t = threadIdx.x;\n"
    kernel = Kernel.from_cuda(f"{text}{body}\n}}\n", "k", build=build)
    args: list[Any] = [np.arange(64, dtype=np.int32), *(np.zeros(64, np.int32) for _ in "yz")]
    return simulator.launch(kernel, 1, 64, args, schedule=schedule).hazards


SHARED = "__shared__ int row[64], sums[64];\n"
OVERRUN = (
    SHARED
    + """
    if (t < 32) sums[t] = x[t];
    row[t + 1] = x[t];
    __syncthreads();
    y[t] = row[t + 1 & 63] + sums[t & 31];
"""
)
STAIN = (
    SHARED
    + """
    sums[t] = t;
    __syncthreads();
    row[t + 1] = 2;
    __syncthreads();
    y[sums[t]] = row[t < 2 ? 2 : t];
"""
)
OUTSIDE = "    z[x[t + 1] & 63] = t;\n"
UNSET = (
    SHARED
    + """
    if (t & 1) row[t] = t;
    __syncthreads();
    y[row[t]] = x[t];
"""
)
BRANCH = (
    SHARED
    + """
    if (t < 40) row[t] = 1;
    sums[t] = x[t];
    __syncthreads();
    if (row[t]) { y[t] = sums[63 - t]; __syncthreads(); }
"""
)
FOLLOWS = {
    "a write beyond one array into the next": (
        OVERRUN,
        "out-of-bounds",
        {"uninitialised", "waw-race"},
    ),
    "what such a write has left": (STAIN, "out-of-bounds", {"waw-race"}),
    "an index read beyond the end": (OUTSIDE, "out-of-bounds", {"waw-race"}),
    "an index that nothing wrote": (UNSET, "uninitialised", {"waw-race"}),
    "a branch on uninitialised memory": (BRANCH, "uninitialised", {"barrier-divergence"}),
}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", FOLLOWS)
def test_it_follows(name: str, build: str) -> None:
    body, kind, others = FOLLOWS[name]
    if (name, build) == ("what such a write has left", "device"):
        pytest.skip("the optimiser puts t in the place of what it knows to be in sums[t]")
    for schedule in SCHEDULES if build == "device" else SCHEDULES[:1]:
        [hazard] = found(body, build, schedule)
        assert hazard.kind == kind
        assert {h.kind for h in hazard.follows} == others
        assert "follows from the above:" in str(hazard)


INDEPENDENT = {
    "beside an overrun": OVERRUN + "    z[t / 2] = t;\n",
    "beside an index from outside": OUTSIDE + "    y[t / 2] = x[t];\n",
    "beside a branch": BRANCH + "    z[t / 2] = t;\n",
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_race_of_its_own_stands_by_itself(name: str) -> None:
    for build in BUILDS:
        cause, *others = found(INDEPENDENT[name], build)
        assert cause.row.causes
        assert others
        assert {h.kind for h in others} == {"waw-race"}
        own = INDEPENDENT[name].count("\n") + 2
        assert all(h.lines == (own, own) or h.lines == (own,) for h in others), name


def test_what_only_some_threads_do_right_is_a_race() -> None:
    """Most indices are in bounds, and race by themselves."""
    hazard, *races = found("    z[x[t + 1] & 31] = t;\n")
    assert hazard.kind == "out-of-bounds"
    assert {(h.kind, h.reach) for h in hazard.follows} == {("waw-race", "lane")}
    assert {(h.kind, h.reach) for h in races} == {("waw-race", "warp")}


SHIFTED = """\
__global__ void k(const float* x, float* y) {
    __shared__ float part[4][32];
    __shared__ float sums[16];
    int i = threadIdx.y, j = threadIdx.x;
    if (i == 0 && j < 16) sums[j] = 0;
    part[i][j + 1] = x[i * 32 + j];
    __syncthreads();
    y[i * 32 + j] = part[i][j] + sums[j & 15];
}
"""


def test_what_a_shift_leaves_out_follows_too(tmp_path: Path) -> None:
    """A fix is looked for of nothing that follows: the file stays as it is."""
    file = tmp_path / "my.cu"
    file.write_text(SHIFTED)
    words = launch(file, 1, "32,4", "f32[128]=ones", "f32[128]")
    [hazard] = hazards(*words)
    assert hazard["kind"] == "out-of-bounds"
    assert hazard["fix"] is None
    assert [h["kind"] for h in hazard["follows"]] == ["uninitialised", "waw-race"]
    said = check(*words, "--fix")
    assert said.stdout.startswith("1 error in k, ")
    assert said.exit_code == 1
    assert "nothing written" in said.stdout
    assert file.read_text() == SHIFTED


def test_an_unset_element_elsewhere_does_not_follow() -> None:
    body = (
        SHARED
        + """
    if (t != 5) row[t + 1] = x[t];
    __syncthreads();
    y[t] = row[t];
"""
    )
    kinds = [hazard.kind for hazard in found(body)]
    assert kinds == ["out-of-bounds", "uninitialised"]


CLEAN = (
    SHARED
    + """
    row[t] = x[t];
    sums[63 - t] = x[t];
    __syncthreads();
    y[t] = row[63 - t] + sums[t];
"""
)


def test_a_correct_program_is_told_of_nothing() -> None:
    assert [found(CLEAN, build) for build in BUILDS] == [[], []]


def test_a_wrong_result_may_follow_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model_of_sums.py").write_text("def ref(x, y):\n    return {'y': x + 5}\n")
    file = tmp_path / "my.cu"
    words = (*launch(file, 1, "32,4", "f32[128]=ones", "f32[128]"), "--no-fix-search",
             "--reference", "model_of_sums:ref")  # fmt: skip
    for text, said in ((SHIFTED, True), (SHIFTED.replace("[j + 1]", "[j]"), False)):
        file.write_text(text)
        result = " ".join(check(*words).stdout.split())
        assert "y is WRONG" in result
        assert ("it may follow from the above" in result) == said
