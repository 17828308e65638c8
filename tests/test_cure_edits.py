"""Where a cure's edit goes, case by case."""

from pathlib import Path
from typing import Any

import pytest
from test_cures import check, hazards, launch

from simulator.cures.statements import Point, Syntax
from simulator.cures.uniform import may_part


def cured(tmp_path: Path, source: str, *words: Any) -> str:
    """What ``--fix`` makes of a source; it is clean then."""
    file = tmp_path / "my.cu"
    file.write_text(source)
    assert check(*launch(file, *words), "--fix").exit_code == 0
    assert check(*launch(file, *words), "--fail-on", "warning").exit_code == 0
    return file.read_text()


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


FOLLOW = """\
__global__ void k(const int* next, int* dist, int level) {
    int v = threadIdx.x;
    int u = (next[v] * 5) & MASK;
    CONDITION
}
"""


@pytest.mark.parametrize(
    ("block", "mask", "condition", "barrier"),
    [
        (64, 63, "dist[u] > 15", "__syncthreads();"),
        (32, 31, "dist[u] > 15", "__syncwarp();"),
        (64, 63, "u < 64 && dist[u] > level", "__syncthreads();"),
    ],
)
def test_a_barrier_is_outside_of_an_if_that_all_happen_to_enter(
    tmp_path: Path, block: int, mask: int, condition: str, barrier: str
) -> None:
    """What arrays hold sends every thread in: with other contents some would be missing."""
    source = FOLLOW.replace("MASK", str(mask)).replace(
        "CONDITION", f"if ({condition}) dist[v] = 100;"
    )
    given = (1, block, f"i32[{block}]=arange", f"i32[{block}]=1000", 15)
    assert f"""
    const bool inside = {condition};
    {barrier}
    if (inside) dist[v] = 100;
""" in cured(tmp_path, source, *given)


def test_an_if_in_an_if_is_split_as_one(tmp_path: Path) -> None:
    """Two barriers, one of them where half of the lanes come, would do as well."""
    source = FOLLOW.replace("MASK", "31").replace(
        "CONDITION", "if (v < 32) if (dist[u] > 15) dist[v] = level;\n    dist[v] += 1;"
    )
    assert """
    const bool inside = v < 32 && dist[u] > 15;
    __syncwarp();
    if (inside) dist[v] = level;
    dist[v] += 1;
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange", "i32[64]=arange", 31)


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("n > 3 && blockIdx.x < gridDim.x", False), ("half", False), ("LIMIT > n", False),
        ("a[0] > 3", True), ("*a > 3", True), ("t < n", True), ("FIRST", True),
        ("mine > 0", True), ("__popc(n)", True), ("i < 4", False), ("t < n && meet()", True),
    ],
)  # fmt: skip
def test_conditions_that_threads_may_see_differently(condition: str, parts: bool) -> None:
    text = f"""\
#define LIMIT 7
#define FIRST (threadIdx.x == 0)
__global__ void k(int* a, int n) {{
    int t = threadIdx.x, half = n / 2, mine = 0;
    half >>= 1;
    mine = a[t];
    for (int i = 0; i < n; ++i)
        if ({condition}) {{ a[t] = n; }}
}}
"""
    path = Path("k.cu")
    lists = Syntax({path: text.encode()}).all_lists([Point(path, 8)])
    assert [may_part(body) for body, _ in lists] == [False, parts]
    with_barrier = text.replace("{ a[t] = n; }", "{ a[t] = n; __syncthreads(); }").encode()
    lists = Syntax({path: with_barrier}).all_lists([Point(path, 8)])
    assert not any(may_part(b) for b, _ in lists)


def test_every_place_of_a_cure_is_named(tmp_path: Path) -> None:
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
    file = tmp_path / "my.cu"
    file.write_text(source)
    cures = [h["cure"] for h in hazards(*launch(file, 1, 64, "i32[64]=arange"))]
    places = [{"line": 5, "where": "after"}, {"line": 6, "where": "after"}]
    assert [cure["places"] for cure in cures] == [places] * len(cures)


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
    assert """
        s[t] = a[t];
        __syncthreads();
        a[t] = s[63 - t];
        __syncthreads();
    }
""" in cured(tmp_path, source, 1, 64, "i32[64]=arange")


@pytest.mark.second
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


@pytest.mark.second
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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a[0] += a[t];", "removes this race alone; let one atomic operation read and write, as"),
        ("a[0] = t;", "no cure: no __syncthreads() between two statements removes this race alone"),
        (
            "if (t < 63) {\n        int x = a[t + 1];\n        a[t] = x;\n    }",
            "the if on line 3 both reads and writes",
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


@pytest.mark.parametrize("place", ['100 "gen.y"', "5000"])
def test_what_a_line_directive_hides_is_said_to_be_hidden(tmp_path: Path, place: str) -> None:
    file = tmp_path / "my.cu"
    text = f"""\
__global__ void k(int* a) {{
    __shared__ int s[64];
    int t = threadIdx.x;
#line {place}
    s[t] = a[t];
    a[t] = s[63 - t];
}}
"""
    file.write_text(text)
    said = " ".join(check(*launch(file, 1, 64, "i32[64]=arange")).stdout.split())
    assert "no cure looked for: by #line this is" in said
    assert "which is not at hand to edit" in said
    assert "removes this race" not in said


def test_blocks_are_not_cured_by_a_barrier(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) { a[threadIdx.x] = blockIdx.x; }\n")
    result = check(*launch(file, 2, 32, "i32[32]"))
    assert result.exit_code == 1
    assert "  cure" not in result.stdout


def test_a_wait_goes_where_the_calls_lead_that_were_made(tmp_path: Path) -> None:
    """The function is called for other copies, too, and the lambda is made somewhere else."""
    source = """\
__device__ inline void copy(float* to, const float* from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(from));
}
__global__ void k(float* out, const float* in, int n) {
    __shared__ float q[64], s[64], v[64];
    int t = threadIdx.x;
    float sum = 0;
    copy(q + t, in + t);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    sum += q[63 - t];
    auto load = [&](float* to, int i) {
        copy(to + t, in + 64 * i + t);
        asm volatile("cp.async.commit_group;");
    };
    for (int i = 0; i < n; ++i) {
        __syncthreads();
        load(v, i);
        load(s, i);
        asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        sum += s[63 - t];
        __syncthreads();
        load(s, i + 1);
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        sum += s[t ^ 3];
    }
    out[t] = sum + v[t];
}
"""
    text = cured(tmp_path, source, 1, 64, "f32[64]", "f32[256]=arange", 3)
    wait = '        asm volatile("cp.async.wait_all;" ::: "memory");\n'
    ahead, _, behind = text.partition('"cp.async.wait_group 1;");\n')
    assert behind.startswith(wait)
    assert text.count("wait_all") == 2
    assert ahead in source


HANDED = """\
__global__ void k(float* part, TYPE flag, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = blockIdx.x + 1;
        SET
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float s = 0;
        for (int i = 0; i < gridDim.x; ++i) s += part[i];
        *out = s;
    }
}
"""
COUNT = "unsigned*", "last = atomicAdd(flag, 1) == gridDim.x - 1;"
FLAG = (
    "volatile unsigned*",
    "flag[blockIdx.x] = 1; last = blockIdx.x == 0; "
    "if (last) for (int i = 0; i < gridDim.x; ++i) while (flag[i] == 0);",
)


@pytest.mark.parametrize(("kind", "code"), [COUNT, FLAG], ids=["count", "flag"])
def test_what_a_block_writes_gets_a_fence_before_it_is_handed_on(
    tmp_path: Path, kind: str, code: str
) -> None:
    source = HANDED.replace("TYPE", kind).replace("SET", code)
    text = cured(tmp_path, source, 3, 32, "f32[3]", "u32[3]", "f32[1]")
    ahead, _, behind = text.partition("        __threadfence();\n")
    assert ahead.endswith("+ 1;\n")
    assert behind.startswith(f"        {code}\n")


@pytest.mark.parametrize("lost", [("WRITTEN",), ("READ",), ("WRITTEN", "READ")], ids="-".join)
def test_who_reads_behind_a_flag_gets_a_fence(tmp_path: Path, lost: tuple[str, ...]) -> None:
    source = right = """\
__global__ void k(float* part, volatile unsigned* flag, float* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            part[0] = 3;
            __threadfence();  // WRITTEN
            *flag = 1;
        } else {
            while (*flag == 0);
            __threadfence();  // READ
            *out = part[0];
        }
    }
}
"""
    for place in ("WRITTEN", "READ"):
        fence = f"            __threadfence();  // {place}\n"
        right = right.replace(f"  // {place}", "")
        source = source.replace(fence, "" if place in lost else fence.replace(f"  // {place}", ""))
    assert cured(tmp_path, source, 2, 32, "f32[3]", "u32[1]", "f32[1]") == right


def test_where_nothing_hands_on_no_fence_is_tried(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("""\
__global__ void k(int* a) {
    a[blockIdx.x] = 1;
    a[threadIdx.x + 8] = a[gridDim.x - 1 - blockIdx.x];
}
""")
    said = " ".join(check(*launch(file, 2, 4, "i32[16]")).stdout.split())
    assert "hands on needs a __threadfence() before it" in said
    assert "no cure" not in said
