"""A look at a location and a write that it decides on: one report, and one atomic for both."""

from pathlib import Path

import pytest

from simulator.fixes.edits.claims import claim_edits
from simulator.fixes.edits.statements import Point, Syntax
from tests.simulator.fixes.fix_check import check, hazards, launch

HEAD = "__global__ void k(int* a, const int* v, int* out, int* count) {\n"
HEAD += "    int i = blockIdx.x * blockDim.x + threadIdx.x, key = v[i] & 7;\n"


TABLE = """\
__global__ void put(const unsigned* keys, unsigned* table, unsigned* n, unsigned mask) {
    unsigned key = keys[blockIdx.x * blockDim.x + threadIdx.x] | 1u;
    for (unsigned at = key * 7u & mask;; at = at + 1 & mask) {
        unsigned there = table[at];
        if (there == 0u) { table[at] = key; there = key; }
        if (there == key) { atomicAdd(&n[at], 1u); return; }
    }
}
"""


def test_a_hash_table_is_one_report(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text(TABLE)
    words = launch(file, 3, 64, "u32[192]=arange", "u32[256]", "u32[256]", 255)
    [hazard] = hazards(*words)
    assert hazard["kind"] == "raw-race"
    assert hazard["fix"]["text"] == "atomicCAS(&table[at], 0u, key)"
    assert {h["kind"] for h in hazard["follows"]} >= {"waw-race"}
    assert all(h["fix"] is None for h in hazard["follows"])
    said = check(*words).stdout
    assert said.startswith("1 error in put, ")
    assert said.partition("\non: ")[0].count("\nerror:") == 1
    patch = check(*words, "--diff").stdout
    assert "+        unsigned there = atomicCAS(&table[at], 0u, key);\n" in patch
    assert "+        if (there == 0u) { there = key; }\n" in patch
    assert "unsigned there = table[at];" in file.read_text()


OTHERS = {
    "another comparison comes first": (
        "    int was = a[key];\n    if (was == key) return;\n"
        "    if (was == 0 && out[0]) a[key] = key;\n"
    ),
    "another condition in between": (
        "    if (a[key] == 0) { if (out[0]) a[key] = key; }\n"
    ),
    "a return in between": (
        "    int was = a[key];\n    if (out[0]) return;\n    if (was == 0) a[key] = key;\n"
    ),
    "a barrier in between": (
        "    int was = a[key];\n    __syncthreads();\n    if (was == 0) a[key] = key;\n"
    ),
    "the key changes in between": (
        "    int was = a[key];\n    key += 1;\n    if (was == 0) a[key] = key;\n"
    ),
    "it is not what is compared": "    if (a[key] < i) a[key] = i + 1;\n",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_would_do_something_else_is_not_tried(tmp_path: Path, name: str) -> None:
    file = tmp_path / "my.cu"
    file.write_text(f"{HEAD}{OTHERS[name]}}}\n")
    syntax = Syntax({file: file.read_bytes()})
    points = [Point(file, line) for line in range(3, 3 + OTHERS[name].count("\n"))]
    assert list(claim_edits(syntax, points)) == []


def test_a_missing_barrier_is_no_missing_atomic(tmp_path: Path) -> None:
    """Comparing and exchanging looks and writes too; no two threads do it to one pair at once."""
    file = tmp_path / "my.cu"
    file.write_text("""\
__global__ void k(int* a) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = a[127 - t];
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        int low = 2 * t + (round & 1);
        if (low < 127) {
            int one = s[low], other = s[low + 1];
            if (one > other) { s[low] = other; s[low + 1] = one; }
        }
    }
    __syncthreads();
    a[t] = s[t];
}
""")
    found = hazards(*launch(file, 1, 128, "i32[128]=arange"), "--no-fix-search")
    assert {h["kind"] for h in found} == {"raw-race", "waw-race"}
    assert not any("two steps" in note for h in found for note in h["notes"])


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("last", ["blockIdx.x == 0", "done == gridDim.x - 1"])
def test_a_read_behind_a_barrier_of_a_shared_function_is_no_look(
    last: str, build: str, tmp_path: Path
) -> None:
    """What is read is summed by a function that also runs before the write, with barriers in it."""
    file = tmp_path / "my.cu"
    file.write_text(
        """\
__device__ unsigned count = 0;
__device__ float sum(volatile float* s, float mine) {
    s[threadIdx.x] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    return s[0];
}
__device__ void partial(float* out, float* s) {
    float all = sum(s, threadIdx.x);
    if (threadIdx.x == 0) out[blockIdx.x] = all;
}
__global__ void k(float* out) {
    __shared__ float s[64];
    __shared__ unsigned done;
    partial(out, s);
    __threadfence();
    if (threadIdx.x == 0) done = atomicAdd(&count, 1);
    __syncthreads();
    if (LAST) {
        float mine = threadIdx.x < gridDim.x ? out[threadIdx.x] : 0;
        mine = sum(s, mine);
        if (threadIdx.x == 0) out[gridDim.x] = mine;
    }
}
""".replace("LAST", last)
    )
    found = hazards(*launch(file, 4, 64, "f32[5]"), "--build", build, "--no-fix-search")
    assert [h["kind"] for h in found] == ["raw-race"]
    assert not any("two steps" in note for h in found for note in h["notes"])
    assert found[0]["title"].startswith("Race between blocks")


def test_titles_name_variables_that_begin_with_the_name_of_a_space(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("""\
__global__ void k(int* global_out) {
    __shared__ int shared_sum[64];
    shared_sum[threadIdx.x] = threadIdx.x;
    global_out[0] = shared_sum[63 - threadIdx.x];
}
""")
    titles = [h["title"] for h in hazards(*launch(file, 1, 64, "i32[1]"), "--no-fix-search")]
    assert any("shared `shared_sum` is read (line 4)" in title for title in titles)
    assert any("global `global_out` is written (line 4)" in title for title in titles)
