"""A lost update is cured by one atomic operation in its place."""

from pathlib import Path

import pytest
from test_cure_edits import cured
from test_cures import check, hazards, launch


@pytest.mark.parametrize(
    ("type", "statement", "atomic"),
    [
        ("int", "if (t < 50) a[v[t] & 3] += v[t];", "if (t < 50) atomicAdd(&a[v[t] & 3], v[t]);"),
        ("int", "a[1]++;", "atomicAdd(&a[1], 1);"),
        ("int", "--*a;", "atomicSub(a, 1);"),
        ("float", "*a -= v[t] + 1;", "atomicAdd(a, -(v[t] + 1));"),
        ("unsigned", "a[0] = v[t] | a[0];", "atomicOr(&a[0], v[t]);"),
        ("int", "*a = max(v[t], *a);", "atomicMax(a, v[t]);"),
        ("long long", "a[0] += v[t];", "atomicAdd((unsigned long long*)&a[0], v[t]);"),
    ],
)
def test_it_takes_the_statement_s_place(
    tmp_path: Path, type: str, statement: str, atomic: str
) -> None:
    source = f"""\
__global__ void k({type}* a, const int* v) {{
    int t = threadIdx.x;
    {statement}
}}
"""
    array = {"float": "f32[4]", "long long": "i64[4]"}.get(type, "i32[4]")
    fixed = cured(tmp_path, source, 2, 64, array, "i32[64]=arange")
    assert fixed == source.replace(statement, atomic)


def test_one_update_is_told_as_one(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 4] += 1;\n}\n")
    found = hazards(*launch(file, 2, 64, "i32[4]"))
    assert {h["cure"]["group"] for h in found} == {1}
    said = " ".join(check(*launch(file, 2, 64, "i32[4]")).stdout.split())
    assert "atomicAdd(&a[threadIdx.x % 4], 1) instead of the statement on line 2: verified" in said
    assert "explains these 6 (an atomic operation does it in one): the above and" in said
    assert not any("__syncwarp" in note for h in found for note in h["notes"])
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 4] *= 3;\n}\n")
    said = " ".join(check(*launch(file, 2, 64, "i32[4]=ones")).stdout.split())
    assert "these 6 (an atomic operation does it in one): the above and" in said
    assert "no cure: " not in said
    assert said.endswith("no cure found: no edit is known to try")


def test_a_lock_s_fence_comes_before_it(tmp_path: Path) -> None:
    source = """\
__global__ void k(int* lock, int* c) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0);
        __threadfence();
        *c += 1;
        atomicExch(lock, 0);
    }
}
"""
    fixed = cured(tmp_path, source, 3, 32, "i32[1]", "i32[1]")
    assert fixed == source.replace("+= 1;\n", "+= 1;\n        __threadfence();\n")
