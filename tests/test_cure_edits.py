"""Where a cure's edit goes, case by case."""

from pathlib import Path
from typing import Any

import pytest
from test_cures import check, hazards, launch


def cured(tmp_path: Path, source: str, *words: Any) -> str:
    """What ``--fix`` makes of a source; it is clean then."""
    file = tmp_path / "my.cu"
    file.write_text(source)
    assert check(*launch(file, *words), "--fix").exit_code == 0
    assert check(*launch(file, *words), "--fail-on", "warning").exit_code == 0
    return file.read_text()


@pytest.mark.slow
def test_a_body_without_braces_gets_some(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* a) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (t < half) s[t] += s[t + half];  // the tree
    a[t] = t ? 0 : s[0];
}
"""
    assert """
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];  // the tree
        __syncthreads();
    }
""" in cured(tmp_path, source, 1, 128, "i32[128]=arange")


def test_a_guarded_statement_is_split(tmp_path: Path) -> None:
    """Reads and writes of one statement in an ``if``: the barrier has to be outside of it."""
    source = """\
__global__ void k(int* a) {
    int t = threadIdx.x;
    if (t < 63) a[t] = a[t + 1];
}
"""
    assert """
    const bool inside = t < 63;
    auto value = inside ? a[t + 1] : decltype(+a[t + 1])();
    __syncthreads();
    if (inside) a[t] = value;
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange")


def test_a_condition_is_taken_out_of_its_if(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* a) {
    int t = threadIdx.x;
    if (a[63 - t] > 31)
        a[t] = 0;
}
"""
    assert """
    const bool inside = a[63 - t] > 31;
    __syncthreads();
    if (inside)
        a[t] = 0;
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange")


def test_a_barrier_stands_outside_of_the_if_that_it_splits(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* a, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < n) {
        s[t] = a[t];
        a[t] = s[n - 1 - t];
    }
}
"""
    assert """
    const bool inside = t < n;
    if (inside) {
        s[t] = a[t];
    }
    __syncthreads();
    if (inside) {
        a[t] = s[n - 1 - t];
    }
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange", 50)


def test_lanes_of_a_warp_get_a_barrier_of_the_warp(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    a[t] = s[t ^ 1];
}
"""
    text = cured(tmp_path, source, 1, 64, "i32[64]=arange")
    assert "    s[t] = a[t];\n    __syncwarp();\n" in text


def test_a_header_is_edited_where_the_race_is_in_it(tmp_path: Path) -> None:
    for folder in ("sub", "parts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "far.cuh").write_text(
        "#pragma once\n__device__ inline int far(int* s) { return s[63 - threadIdx.x]; }\n"
    )
    header = tmp_path / "parts" / "mirror.cuh"
    header.write_text("""\
#include "far.cuh"
__device__ void mirror(int* s, int* a) {
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = far(s);
}
""")
    source = """\
#include "sub/../parts/mirror.cuh"
__global__ void k(int* a) { __shared__ int s[64]; mirror(s, a); }
"""
    assert cured(tmp_path, source, 1, 64, "i32[64]=arange") == source
    assert "= a[threadIdx.x];\n    __syncthreads();\n    a[" in header.read_text()


@pytest.mark.slow
def test_two_barriers_where_one_is_not_enough(tmp_path: Path) -> None:
    """Written, read, and written again in the next round: the same two lines, both ways."""
    source = """\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int k = 0; k < 4; ++k) {
        s[t] = a[t];
        a[t] = s[63 - t];
    }
}
"""
    assert """{
        __syncthreads();
        s[t] = a[t];
        __syncthreads();
        a[t] = s[63 - t];
    }
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange")


@pytest.mark.slow
def test_a_block_that_a_kernel_is_not_made_for_proves_nothing(tmp_path: Path) -> None:
    """With fewer threads it reads what nothing wrote, which its race explains while it is there."""
    source = """\
__global__ void sort(int* a) {
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (unsigned k = 2; k <= 64; k *= 2)
        for (unsigned j = k / 2; j; j /= 2) {
            unsigned p = t ^ j;
            if (p > t && ((t & k) == 0) == (s[t] > s[p])) { int x = s[t]; s[t] = s[p]; s[p] = x; }
        }
    a[t] = s[t];
}
"""
    assert """s[p] = x; }
            __syncthreads();
        }
""" in cured(tmp_path, source, 1, 64, "i32[64]=uniform")


@pytest.mark.slow
def test_what_fails_in_another_shape_does_not_end_the_search(tmp_path: Path) -> None:
    """Here every thread runs the inner loop as often; a block of 5 rows does not."""
    source = """\
__global__ void closure(float* a) {
    __shared__ float s[16][16];
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < 16; y += blockDim.y) s[y][x] = a[16 * y + x];
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
        for (int y = threadIdx.y; y < 16; y += blockDim.y) {
            float far = s[y][k] + s[k][x];
            if (far < s[y][x]) s[y][x] = far;
        }
    }
}
"""
    assert """= far;
        }
        __syncthreads();
    }
""" in cured(tmp_path, source, 1, "16,8", "f32[256]=uniform")


@pytest.mark.slow
def test_two_cures_are_proved_together(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* a) {
    __shared__ int s[64], r[64];
    int t = threadIdx.x;
    s[t] = a[t];
    int far = s[63 - t];
    r[t] = far;
    a[t] = r[63 - t];
}
"""
    file = tmp_path / "my.cu"
    file.write_text(source)
    cures = [h["cure"] for h in hazards(*launch(file, 1, 64, "i32[64]=arange"))]
    assert [(cure["left"], cure["left_with_other_cures"]) for cure in cures] == [(1, 0), (1, 0)]
    assert [cure["group"] for cure in cures] == [1, 2]
    assert cured(tmp_path, source, 1, 64, "i32[64]=arange").count("__syncthreads();") == 2


@pytest.mark.slow_but("a[0] = t...")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a[0] *= a[t];", "removes this race alone; let one atomic operation read and write, as"),
        ("a[0] = t;", "no cure: no __syncthreads() between two statements removes this race alone"),
        (
            "if (t < 63) {\n        int x = a[t + 1];\n        a[t] = x;\n    }",
            "the if on line 3 both reads and writes",
        ),
        (
            "__shared__ int s[64];\n    s[t] = a[t];\n    __syncthreads();\n    if (t < 32) {\n"
            "        for (int i = 0; i < 2; ++i)\n            s[t] = i;\n    } else {\n"
            "        for (int i = 0; i < 2; ++i)\n            a[t] += s[63 - t];\n    }",
            "no cure: no __syncthreads() between two statements removes this race alone",
        ),
        (
            "__shared__ int s[64];\n    if (t > 49) return;\n"
            "    s[t] = a[t];\n    a[t] = s[49 - t];",
            "__syncthreads() after line 5 would order the two, but threads that a return",
        ),
    ],
)
def test_where_no_edit_is_a_cure_it_says_so(tmp_path: Path, body: str, said: str) -> None:
    file = tmp_path / "my.cu"
    text = f"__global__ void k(int* a) {{\n    int t = threadIdx.x;\n    {body}\n}}\n"
    file.write_text(text)
    result = check(*launch(file, 1, 64, "i32[65]=arange"), "--fix")
    assert result.exit_code == 1
    assert said in " ".join(result.stdout.split())
    assert "verified" not in result.stdout
    assert file.read_text() == text


def test_blocks_are_not_cured_by_a_barrier(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) { a[threadIdx.x] = blockIdx.x; }\n")
    result = check(*launch(file, 2, 32, "i32[32]"))
    assert result.exit_code == 1
    assert "  cure" not in result.stdout
