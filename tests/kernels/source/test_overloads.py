"""Kernels of one name: which of them is meant is said by the types of their parameters."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import CompileError, Kernel
from tests.support.command_line import tilescope

SOURCE = """
struct S { int n; };
namespace lib {
typedef float Real;
__global__ void k(int *a, int);
__global__ void k(int *a, int) { a[threadIdx.x] = 3; }
__global__ void k(Real *b, S s) { b[threadIdx.x] = 4; }
__global__ void k(const float *from, float *__restrict__ to, unsigned n) { to[threadIdx.x] = 5; }
template <class T> __global__ void t(T *x, int n) { x[threadIdx.x] = 6; }
template <class T> __global__ void t(T *y, float f) { y[threadIdx.x] = 7; }
__global__ void one(float *a, int n) { a[threadIdx.x] = 8; }
}
__global__ void k(int *i) { i[threadIdx.x] = 1; }
__global__ void k(float *f) { f[threadIdx.x] = 2; }
extern "C" __global__ void c(float *plain) { plain[threadIdx.x] = 9; }
"""
MAIN = "#include <vector>\nint main() { std::vector<int> v; k<<<1, 1>>>((int *)nullptr); }\n"
MEANT = [
    ("k(int*)", 1, ["i"]),
    ("k(float*)", 2, ["f"]),
    (" :: k ( float  * ) ", 2, ["f"]),
    ("k(float *given)", 2, ["f"]),
    ("lib::k(int*,int)", 3, ["a", ""]),
    ("lib::k(lib::Real*, S)", 4, ["b", "s"]),
    ("lib::k(float *, struct S)", 4, ["b", "s"]),
    ("lib::k(const float*, float*, unsigned)", 5, ["from", "to", "n"]),
    ("k(const float *, float *, unsigned int)", 5, ["from", "to", "n"]),
    ("lib::t<float>(float*, int)", 6, ["x", "n"]),
    ("lib::t<float>(float*, float)", 7, ["y", "f"]),
    ("lib::t(float*, float)", 7, ["y", "f"]),
    ("lib::one(float*, int)", 8, ["a", "n"]),
    ("one(float*,int)", 8, ["a", "n"]),
    ("c(float*)", 9, ["plain"]),
    ("_Z1kPf", 2, ["f"]),
]
VALUES = {"n": 1, "f": 1.5, "s": (1,), "": 1}


@pytest.mark.parametrize(("entry", "value", "names"), MEANT)
@pytest.mark.parametrize("end", ["", MAIN])
def test_types_say_which_is_meant(entry: str, value: int, names: list[str], end: str) -> None:
    for build in ("device", "source"):
        kernel = Kernel.from_cuda(SOURCE + end, entry, build=build, cache=False)
        assert kernel.labels() == names
        dtype = np.int32 if "int*" in entry.replace(" ", "") else np.float32
        out = np.zeros(32, dtype)
        rest = [VALUES.get(name, np.ones(32, dtype)) for name in names]
        at = names.index("to") if "to" in names else 0
        args = [*rest[:at], out, *rest[at + 1 :]]
        assert simulator.launch(kernel, 1, 32, args).hazards == []
        assert out.tolist() == [value] * 32


@pytest.mark.parametrize("end", ["", MAIN])
@pytest.mark.parametrize("entry", ["k(double*)", "k()", "lib::one(float*)", "nothing(int)"])
def test_none_has_these_types(entry: str, end: str) -> None:
    with pytest.raises(CompileError, match="no kernel") as caught:
        Kernel.from_cuda(SOURCE + end, entry, cache=False)
    for said in ("k(int *)", "k(float *)", "t<...>(T *, int)", "c(float *)"):
        assert said in str(caught.value)


def test_a_name_of_several_lists_what_chooses_one() -> None:
    with pytest.raises(CompileError, match=r"as in 'k\(int\*\)', .*_Z1kPi \(int\*\); _Z1kPf \("):
        Kernel.from_cuda(SOURCE, "k", cache=False)


def test_a_command_line_names_an_overload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("k.cu")
    file.write_text(
        "__global__ void k(int *a) { a[threadIdx.x & 1] = threadIdx.x; }\n"
        "__global__ void k(float *a) { a[threadIdx.x] *= 2; }\n"
    )
    shape = ("--grid", 1, "--block", 64)
    done = tilescope("check", file, "k(float*)", "f32[64]=normal", *shape)
    assert done.exit_code == 0
    assert "no hazards in k(float*)" in done.output
    done = tilescope("check", file, "k(int *)", "i32[64]", *shape)
    assert done.exit_code == 1
    assert "race" in done.output
    done = tilescope("run", file, "k(float*)", "f32[64]", *shape, "--compare", "'k(int*)' i32[64]")
    assert "k(int*)" in done.output
    assert "different types or shapes" in done.output
