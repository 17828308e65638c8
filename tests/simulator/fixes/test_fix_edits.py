"""Where a fix's edit goes, and what it writes.

``fix_edits.diff`` has programs with the edit that ``--fix`` has to make of each.
"""

from pathlib import Path

import pytest

from simulator.fixes.edits.divergence import may_diverge
from simulator.fixes.edits.insertion_points import inserted
from simulator.fixes.edits.statements import Point, Syntax
from tests.simulator.fixes.fix_check import cases, fixed, fixed_source, hazards, launch, sections

EDITS = sections("fix_edits.diff")


@pytest.mark.parametrize("name", cases(EDITS))
def test_the_edit_is_written(name: str, tmp_path: Path) -> None:
    """And nothing else; the program is clean then."""
    section = EDITS[name]
    file = tmp_path / "my.cu"
    file.write_text(section.text(" -"))
    assert fixed(file, *section.words) == section.text(" +")


@pytest.mark.slow
def test_lines_of_a_macro_keep_their_ends(tmp_path: Path) -> None:
    section = EDITS["a loop in a macro"]
    before, after = (section.text(marks).replace("\n", "\r\n").encode() for marks in (" -", " +"))
    file = tmp_path / "my.cu"
    file.write_bytes(before)
    fixed(file, *section.words)
    assert file.read_bytes() == after


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
    assert fixed_source(tmp_path, source, 1, 64, "i32[64]=arange") == source
    assert "= a[threadIdx.x];\n    __syncthreads();\n    a[" in header.read_text()


@pytest.mark.slow
def test_two_fixes_are_proved_together(tmp_path: Path) -> None:
    section = EDITS["two fixes side by side"]
    file = tmp_path / "my.cu"
    file.write_text(section.text(" -"))
    fixes = [h["fix"] for h in hazards(file, *section.words)]
    assert [(fix["left"], fix["left_with_other_fixes"]) for fix in fixes] == [(1, 0), (1, 0)]
    assert [fix["group"] for fix in fixes] == [1, 2]


@pytest.mark.slow
def test_every_place_of_a_fix_is_named(tmp_path: Path) -> None:
    section = EDITS["two barriers in a loop, written and written again"]
    file = tmp_path / "my.cu"
    file.write_text(section.text(" -"))
    fixes = [h["fix"] for h in hazards(file, *section.words)]
    places = [{"line": 5, "where": "before"}, {"line": 5, "where": "after"}]
    assert [fix["places"] for fix in fixes] == [places] * len(fixes)


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
            (diff,) = {h["fix"]["diff"] for h in errors if h["severity"] == "error"}
            before = diff.partition("__syncthreads();")[0]
            assert "+    const bool inside = i < n;" in before
            assert "{" not in before.partition("inside")[2]


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
    assert [may_diverge(body) for body, _ in lists] == [False, parts]
    with_barrier = text.replace("{ a[t] = n; }", "{ a[t] = n; __syncthreads(); }").encode()
    lists = Syntax({path: with_barrier}).all_lists([Point(path, 8)])
    assert not any(may_diverge(b) for b, _ in lists)


def test_a_line_behind_what_follows_a_brace_is_indented_as_its_list() -> None:
    text = """\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) { a[t] += s[63 - t] = i + t;
    }
}
"""
    path = Path("k.cu")
    syntax = Syntax({path: text.encode()})
    (body, index), *_ = syntax.levels([Point(path, 4)])
    edit = inserted(syntax, body, 1, "__syncthreads();")
    assert edit is not None
    assert edit.pieces[0][2] == b"\n        __syncthreads();"
    assert index in (0, 1)
