"""Reductions and scans that were written for lanes in step: each statement of a row is split."""

import json
from pathlib import Path

import pytest

from tests.simulator.fixes.fix_check import check, hazards, launch

VOLATILE = """\
__global__ void k(const int* in, int* out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    if (t < 32) {
        volatile int* v = s;
        int value = t;
        v[t] += v[t + 64] + value;
        v[t] += v[t + 32];
        v[t] += v[t + 16];
        v[t] += v[t + 8];
        v[t] += v[t + 4];
        v[t] += v[t + 2];
        v[t] += v[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
UNROLLED = """\
template <unsigned size, typename T>
__device__ __forceinline__ void last_warp(volatile T* data, unsigned lane) {
    if (size >= 64) data[lane] += data[lane + 32];
    if (size >= 32) data[lane] += data[lane + 16];
    if (size >= 16) data[lane] += data[lane + 8];
    if (size >= 8) data[lane] += data[lane + 4];
    if (size >= 4) data[lane] += data[lane + 2];
    if (size >= 2) data[lane] += data[lane + 1];
}
template <unsigned size> __global__ void k(const int* in, int* out) {
    __shared__ int s[size];
    s[threadIdx.x] = in[blockIdx.x * size + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 64) s[threadIdx.x] += s[threadIdx.x + 64];
    __syncthreads();
    if (threadIdx.x < 32) last_warp<size>(s, threadIdx.x);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
template __global__ void k<128>(const int*, int*);
"""
SCAN = """\
__global__ void k(const int* in, int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, lane = t & 31;
    s[t] = in[blockIdx.x * 128 + t];
    __syncwarp();
    if (lane >= 1) s[t] += s[t - 1];
    if (lane >= 2) s[t] += s[t - 2];
    if (lane >= 4) s[t] += s[t - 4];
    if (lane >= 8) s[t] += s[t - 8];
    if (lane >= 16) s[t] += s[t - 16];
    out[blockIdx.x * 128 + t] = s[t];
}
"""
ROWS = {
    "volatile": (VOLATILE, [(line, "split by") for line in range(11, 16)] + [(10, "after")]),
    "unrolled": (UNROLLED, [(line, "split by") for line in range(4, 9)] + [(3, "after")]),
    "scan": (SCAN, [(line, "split by") for line in range(6, 11)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_statements_is_split(name: str, tmp_path: Path) -> None:
    source, wanted = ROWS[name]
    file = tmp_path / "k.cu"
    file.write_text(source)
    entry = ["k<128>"] if name == "unrolled" else []
    words = (file, *entry, "--grid", 2, "--block", 128, "i32[256]=arange", "i32[256]")
    told = tmp_path / "told.json"
    check(*words, "--fix", "--json", told)
    found = json.loads(told.read_text())["hazards"]
    assert {h["kind"] for h in found} == {"raw-race", "war-race"}
    (fix,) = {json.dumps(h["fix"], sort_keys=True) for h in found}  # one explains all
    places = [(place["line"], place["where"]) for place in json.loads(fix)["places"]]
    assert places == wanted
    again = check(*words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout
    assert file.read_text().count("__syncwarp();") >= 2 * 5 - 1


@pytest.mark.slow
def test_the_report_names_every_line(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(VOLATILE)
    said = " ".join(check(*launch(file, 2, 128, "i32[256]=arange", "i32[128]")).stdout.split())
    assert "splits the statements on lines 11, 12, 13, 14 and 15, and stands after line 10" in said
    assert "missing barriers explain these 2" in said
    assert "auto value3 = v[t + 8];" in said  # ``value`` is a name of the file's


@pytest.mark.slow
def test_each_statement_alone_has_names_of_its_own(tmp_path: Path) -> None:
    """Three fixes side by side: what one calls its variable, another does not."""
    body = "".join(f"        s[t] += s[t + {k}];\n        __syncwarp();\n" for k in (16, 8, 4))
    source = (
        "__global__ void k(const int* in, int* out) {\n    __shared__ int s[64];\n"
        "    int t = threadIdx.x;\n    s[t] = in[t];\n    __syncthreads();\n"
        f"    if (t < 32) {{\n{body}    }}\n    out[t] = s[t];\n}}\n"
    )
    file = tmp_path / "k.cu"
    file.write_text(source)
    words = launch(file, 1, 64, "i32[64]=arange", "i32[64]")
    found = hazards(*words)
    assert [h["fix"]["where"] for h in found] == ["split by"] * 3
    check(*words, "--fix")
    again = check(*words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout
