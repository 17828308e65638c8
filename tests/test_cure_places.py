"""Where a cure's edit must not go, where it goes instead, and how it is told and indented."""

from pathlib import Path

import pytest
from test_cure_edits import cured
from test_cures import check, hazards, launch

from simulator.cures.places import inserted
from simulator.cures.statements import Point, Syntax
from simulator.cures.uniform import may_part

FOLLOW = """\
__global__ void k(const int* next, int* dist, int level) {
    int v = threadIdx.x;
    int u = (next[v] * 5) & MASK;
    CONDITION
}
"""


@pytest.mark.slow_but("32-31-dist...")
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    places = [{"line": 5, "where": "before"}, {"line": 5, "where": "after"}]
    assert [cure["places"] for cure in cures] == [places] * len(cures)


@pytest.mark.slow
def test_a_line_that_is_put_in_is_indented_as_its_list(tmp_path: Path) -> None:
    """Behind directives, which are in column 0, and behind what follows its brace."""
    directives = """\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
#if 1
    s[t] = a[t];
#else
    s[t] = 2 * a[t];
#endif
#ifdef NEVER
    __syncthreads();
#endif
    a[t] = s[63 - t];
}
"""
    text = cured(tmp_path, directives, 1, 64, "i32[64]=arange")
    assert "#endif\n    __syncthreads();\n" in text
    brace = """\
__shared__ int s[64];
__device__ int g(int t) { s[t] = t;
      return s[63 - t]; }
__global__ void k(int* a) { a[threadIdx.x] = g(threadIdx.x); }
"""
    text = cured(tmp_path, brace, 1, 64, "i32[64]=arange")
    assert "s[t] = t;\n      __syncthreads();\n      return" in text
    alone = """\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) { a[t] += s[63 - t] = i + t;
    }
}
"""
    path = Path("k.cu")
    syntax = Syntax({path: alone.encode()})
    (body, index), *_ = syntax.levels([Point(path, 4)])
    edit = inserted(syntax, body, 1, "__syncthreads();")
    assert edit is not None
    assert edit.pieces[0][2] == b"\n        __syncthreads();"
    assert index in (0, 1)


@pytest.mark.slow_cases("5000")
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
    assert "no cure looked for: the compiler names" in said
    assert "which is not at hand to edit" in said
    assert "removes this race" not in said


def test_a_file_whose_name_the_compiler_does_not_keep_is_said_to_have_no_cure(
    tmp_path: Path,
) -> None:
    file = tmp_path / "two\nlines.cu"
    file.write_text(
        "__global__ void k(int* a) {\n    __shared__ int s[64];\n    int t = threadIdx.x;\n"
        "    s[t] = a[t];\n    a[t] = s[63 - t];\n}\n"
    )
    said = " ".join(check(*launch(file, 1, 64, "i32[64]=arange")).stdout.split())
    assert "no cure looked for: the compiler names" in said
    assert "removes this race" not in said


@pytest.mark.slow
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
        __syncthreads();
        sum += s[t ^ 3];
    }
    out[t] = sum + v[t];
}
"""
    text = cured(tmp_path, source, 1, 64, "f32[64]", "f32[256]=arange", 3)
    wait = '        asm volatile("cp.async.wait_all;" ::: "memory");\n'
    ahead, _, behind = text.partition("load(s, i + 1);\n")
    assert behind.startswith(wait)
    assert text.count("wait_all") == 2
    assert ahead in source


@pytest.mark.slow
def test_a_statement_is_split_where_all_threads_come(tmp_path: Path) -> None:
    """A condition is asked ahead of the barrier, whichever way its branch is written."""
    for branch in ("{{ {} }}", "{}", "{{\n        {}\n    }}"):
        body = branch.format("a[i] = a[(i + 1) % n] + 1;")
        file = tmp_path / "k.cu"
        file.write_text(
            "__global__ void k(float* a, int n) {\n    int i = threadIdx.x;\n"
            f"    if (i < n) {body}\n}}\n"
        )
        for n in (64, 40):
            errors = hazards(*launch(file, 1, 64, "f32[64]=arange", n))
            (diff,) = {h["cure"]["diff"] for h in errors if h["severity"] == "error"}
            before = diff.partition("__syncthreads();")[0]
            assert "+    const bool inside = i < n;" in before
            assert "{" not in before.partition("inside")[2]


def test_a_split_where_some_threads_may_not_come_says_so(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(
        "__global__ void k(const unsigned char* mask, int* a) {\n    int i = threadIdx.x;\n"
        "    if (mask[i]) {\n        int to = i ^ 33;\n        a[to] = a[i] + 1;\n    }\n}\n"
    )
    said = check(*launch(file, 1, 64, "u8[64]=1", "i32[64]=arange")).stdout
    assert (
        "splits the statement on line 5, where all threads of the block have to come"
        in " ".join(said.split())
    )
