"""Barriers of the whole grid: a lost one is given back, as the program spells it."""

from pathlib import Path

import pytest
from test_cures import check, hazards, launch

HEAD = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
"""
STEPS = """\
__global__ void k(float* a, float* b) {
    MAKE
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        b[i] = a[(i + 1) % n] + a[i];
        MEET  // lost
        a[i] = b[(i + n - 1) % n];
        MEET  // lost
    }
    b[n - 1 - i] = a[i];
}
"""
PARAMETER = """\
__device__ void turn(cg::grid_group& all, const float* in, float* out, int i, int n) {
    out[i] = 2 * in[i];
    all.sync();  // lost
    out[(i + 1) % n] = in[i];
}
__global__ void k(float* a, float* b) {
    auto grid = cg::this_grid();
    turn(grid, a, b, grid.thread_rank(), grid.size());
}
"""
APART = """\
__global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ELSEWHERE
    if (blockIdx.x % 2 == 0) a[i] = 1;
    if (i < 64) a[i + 1] = 2;
}
"""
SPELLINGS = {
    "variable": ("auto g = cg::this_grid();", "g.sync();"),
    "braces": ("cg::grid_group const whole{cg::this_grid()};", "whole.sync();"),
    "none": ("", "cg::this_grid().sync();"),
}
SOURCES = {
    name: HEAD + STEPS.replace("MAKE", make).replace("MEET", meet)
    for name, (make, meet) in SPELLINGS.items()
} | {"parameter": HEAD + PARAMETER}
LINES = {
    name: [n for n, line in enumerate(text.splitlines()) if line.endswith("// lost")]
    for name, text in SOURCES.items()
}
LOST = [(name, n) for name, lines in LINES.items() for n in lines[: 1 + (name == "variable")]]
"""Each spelling once, one twice: a search takes seconds."""
WORDS = (4, 32, "f32[128]=ones", "f32[128]", "--cooperative")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lost"), LOST)
def test_a_lost_barrier_of_the_grid_is_given_back(name: str, lost: int, tmp_path: Path) -> None:
    lines = SOURCES[name].splitlines()
    wanted = lines[lost].split("//")[0].strip()
    del lines[lost]
    file = tmp_path / "my.cu"
    file.write_text("\n".join(lines) + "\n")
    assert check(*launch(file, *WORDS), "--fix").exit_code == 0
    fixed = [line.strip() for line in file.read_text().splitlines()]
    assert fixed == [line.strip() for line in [*lines[:lost], wanted, *lines[lost:]]]
    assert check(*launch(file, *WORDS), "--fail-on", "warning").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "elsewhere",
    ["", pytest.param("if (n == 0) cg::this_grid().sync();", marks=pytest.mark.slow)],
)
def test_what_orders_lanes_is_no_cure_where_blocks_race(tmp_path: Path, elsewhere: str) -> None:
    """No barrier of the grid takes this race away: lanes of a warp race at the same lines."""
    file = tmp_path / "my.cu"
    text = HEAD + APART.replace("ELSEWHERE", elsewhere)
    file.write_text(text)
    words = launch(file, 4, 32, "f32[130]", 3)
    found = hazards(*words, "--fix")
    assert {hazard["severity"] for hazard in found} == {"error", "warning"}, found
    assert [hazard["cure"] for hazard in found] == [None] * len(found)
    assert file.read_text() == text


def test_lanes_that_lose_updates_to_blocks_too_are_told_of_an_atomic(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 8] *= 3;\n}\n")
    found = hazards(*launch(file, 2, 32, "i32[8]"))
    (update,) = found
    assert update["cure"] is None
    assert "another block" in update["message"]
    assert any("another lane" in h["message"] for h in update["follows"])
    said = " ".join(check(*launch(file, 2, 32, "i32[8]")).stdout.split())
    assert "one update in several steps explains these 4 (an atomic operation does it in" in said


@pytest.mark.slow
def test_lanes_meet_as_the_tile_that_they_are(tmp_path: Path) -> None:
    """Tiles that go round unequally often cannot meet as a warp."""
    file = tmp_path / "k.cu"
    source = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const float* x, float* y, int rows) {
    __shared__ float part[32];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    for (int r = tile.meta_group_rank(); r < rows; r += 4) {
        part[threadIdx.x] = x[r * 8 + tile.thread_rank()];
        float s = 0;
        if (tile.thread_rank() == 0)
            for (int i = 0; i < 8; ++i) s += part[threadIdx.x + i];
        if (tile.thread_rank() == 0) y[r] = s;
        tile.sync();
    }
}
"""
    file.write_text(source)
    words = launch(file, 1, 32, "f32[104]=normal", "f32[13]", 13)
    check(*words, "--fix")
    assert file.read_text() == source.replace(
        "thread_rank()];\n", "thread_rank()];\n        tile.sync();\n"
    )
    assert check(*words, "--fail-on", "warning").exit_code == 0


@pytest.mark.slow
def test_lanes_of_several_tiles_meet_as_a_warp(tmp_path: Path) -> None:
    """What the tiles' own sync() cannot do leaves tries for the barrier of all lanes."""
    file = tmp_path / "k.cu"
    source = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* x, int* y) {
    __shared__ int part[32], other[32];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    auto half = cg::tiled_partition<16>(cg::this_thread_block());
    int t = threadIdx.x, v = x[t];
    for (int i = 4; i > 0; i /= 2) v += tile.shfl_xor(v, i);
    v += half.shfl_xor(v, 8);
    part[t] = v;
    int a = t * 3;
    int b = a + 5;
    int c = b ^ 7;
    other[t] = c;
    y[t] = part[31 - t] + a + b;
}
"""
    file.write_text(source)
    words = launch(file, 1, 32, "i32[32]=arange", "i32[32]")
    check(*words, "--fix")
    lost = "    part[t] = v;\n"
    assert file.read_text() == source.replace(lost, f"{lost}    __syncwarp();\n")
