"""Explicit instantiations of kernels that are cut out: they go with them."""

import pytest

from kernels import CompileError, Kernel
from kernels.source.instantiations import Instantiations
from kernels.source.preprocessor import Macros

OLD = "template <typename T> __global__ void old(T *a) { *a = missing(*a); }\n"
FINE = "template <typename T> __global__ void fine(T *a) { a[threadIdx.x] *= 2; }\n"


@pytest.mark.slow_cases("template __global__ void...", "#define MAKE...")
@pytest.mark.parametrize("main", ["", "int main() { fine<<<1, 32>>>((float *)0); }\n"])
@pytest.mark.parametrize(
    "made",
    [
        "template __global__ void old<float>(float *a);",
        "extern template __global__ void old<float>(float *a);",
        "template __global__ void ::old(float *a);",
        "template <> __global__ void old<double>(double *a) { *a = 1; }",
        "#define MAKE(t) template __global__ void old<t>(t *a);\nMAKE(float)",
        "#define MAKE(t) template __global__ void old<t>(t *a)\nMAKE(float);\nMAKE(int);",
        "#define MAKE(name, t) template __global__ void name<t>(t *a);\nMAKE(old, int)",
        "#define MAKE(t) template __global__ void old<t>(t *a);\n"
        "#define ALL(x) MAKE(float) MAKE(x)\nALL(int)",
    ],
)
def test_they_go_with_a_kernel_that_is_cut(made: str, main: str) -> None:
    fine = "template __global__ void fine<float>(float *a);\n"
    for declared in ("", "template <typename T> __global__ void old(T *a);\n"):
        source = f"#include <vector>\n{declared}{OLD}{FINE}{made}\n{fine}{main}"
        assert "fine" in Kernel.from_cuda(source, "fine<float>").entry


def test_the_mistake_of_a_kernel_that_is_asked_for_is_told() -> None:
    made = "template __global__ void old<float>(float *a);\n"
    with pytest.raises(CompileError, match='identifier "missing" is undefined'):
        Kernel.from_cuda(f"#include <vector>\n{OLD}{FINE}{made}", "old<float>")


@pytest.mark.slow
def test_where_a_header_of_the_toolkit_is_left_out_another_kernel_may_be_right() -> None:
    old = OLD.replace("missing", "cub::Nothing()")
    source = f"#include <cub/cub.cuh>\n{old}{FINE}template __global__ void old<float>(float *);\n"
    assert "fine" in Kernel.from_cuda(source, "fine<float>").entry


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#define A template void f<int>(int);", {"f"}),
        ("#define A extern template void n::f(int); template class C<3>;", {"f", "C"}),
        ("#define A template <int N> void f() { }", set()),
        ("#define A template void f<int>(int); int x;", set()),
        ("#define A B(g) B(h)\n#define B(x) template void x<int>(int);", {"g", "h"}),
        ("#define A A\n", set()),
        ("#define A B\n#define B A\n", set()),
        ("#define A\n", set()),
        ("#define A template " + "a" * 50_000, set()),
        ("#define M0() template void f<1>();\n#define A M20()\n"
         + "".join(f"#define M{n}() {f'M{n - 1}() ' * 40}\n" for n in range(1, 21)), set()),
    ],
)  # fmt: skip
def test_what_a_macro_instantiates(text: str, names: set[str]) -> None:
    assert Instantiations(Macros([text], (), frozenset())).of("A") == names
