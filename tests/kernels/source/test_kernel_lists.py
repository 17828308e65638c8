"""Kernels as lists name them, and as they may be named."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import CompileError, Kernel
from kernels.source.signatures import kernel_names, qualified
from tests.support.command_line import error_of, tilescope

SOURCE = """
#define KERNEL(name, type) \\
    __global__ void name(type *out, int n)
#define NAMED(x) x##_kernel
namespace lib { namespace detail {
template <typename T, int N> __global__ void fill(T *out) { out[threadIdx.x] = N; }
}}
namespace a::b { template <int N> __global__ void twice(float *out) { out[threadIdx.x] = N; } }
namespace c { template <int N> __global__ void twice(float *out) { out[threadIdx.x] = -N; } }
inline namespace v1 {
__global__ void inl(float *out) { out[threadIdx.x] = 3; }
template <int N> __global__ void inlt(float *out) { out[threadIdx.x] = N; }
}
namespace { template <int N> __global__ void anon(float *out) { out[threadIdx.x] = N; } }
namespace o {
__global__ void over(float *out) { out[threadIdx.x] = 4; }
__global__ void over(float *out, int n) { out[threadIdx.x] = n; }
}
KERNEL(made, float) { out[threadIdx.x] = n; }
__global__ void NAMED(paste)(float *out) { out[threadIdx.x] = 6; }
"""
NAMES = ["lib::detail::fill<...>", "a::b::twice<...>", "c::twice<...>", "inl", "inlt<...>",
         "anon<...>", "o::over", "made", "paste_kernel"]  # fmt: skip


def test_lists_have_names_that_can_be_typed() -> None:
    assert kernel_names(SOURCE) == NAMES
    assert kernel_names(SOURCE, params=True)[-2:] == ["made(float *, int)", "paste_kernel(float *)"]


@pytest.mark.parametrize(
    "body",
    ["ADD(x) ADD(x)", "EACH(i) EACH(j) ADD(x)", "BEGIN x[0] = 1; END", "SWAP(x, 1)\n  ADD(x)",
     "auto f = [=] __device__(int i) { ADD(x) }; f(1);", "DECLARE(int, i) = 3; x[i] = 0;"],
)  # fmt: skip
def test_macros_in_a_body_hide_no_kernel(body: str) -> None:
    kernels = f"""
__global__ void first(float* x) {{ {body} }}
template <class T> __global__ void second(T* x)
{{
  {body}
}}
namespace n {{ extern "C" __global__ void third(float* x) {{ {body} }} }}
__global__ void last(float* x) {{ }}
"""
    assert kernel_names(kernels) == ["first", "second<...>", "n::third", "last"]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("lib::detail::fill<float, 5>", 5),
        ("detail::fill<float,5>", 5),
        ("fill<float, 5>", 5),
        ("::lib::detail::fill<float, 5>", 5),
        ("a::b::twice<2>", 2),
        ("b::twice<2>", 2),
        ("c::twice<2>", -2),
        ("inl", 3),
        ("v1::inl", 3),
        ("inlt<7>", 7),
        ("v1::inlt<7>", 7),
        ("anon<8>", 8),
        ("over(float*)", 4),
        ("o::over(float *)", 4),
        ("paste_kernel", 6),
    ],
)
def test_namespaces_may_be_left_out(entry: str, value: float) -> None:
    out = np.zeros(4, np.float32)
    run = simulator.launch(Kernel.from_cuda(SOURCE, entry), 1, 4, [out])
    assert (out.tolist(), run.kernel) == ([value] * 4, entry)


def test_what_may_mean_several_is_refused_with_their_names() -> None:
    with pytest.raises(CompileError, match=r"a::b::twice<\.\.\.>, c::twice<\.\.\.>"):
        Kernel.from_cuda(SOURCE, "twice<2>")
    for entry in ("twice<2>", "lib::twice<2>", "nope<1>", "inl", "o::over(int)"):
        assert qualified(entry, [SOURCE]) == entry


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(SOURCE)
    shape = ("--grid", 1, "--block", 4, "f32[4]")
    for entry, value in (("v1::inl", 3), ("fill<float,5>", 5), ("made", 9)):
        words = (*shape, 9) if entry == "made" else shape
        assert tilescope("run", file, entry, *words, "--expect", f"out={value}").exit_code == 0
    assert error_of("run", file, *shape).endswith(f"there are: {', '.join(NAMES)}")


def test_of_a_file_whose_kernels_macros_make(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("#define KERNEL(name) __global__ void name(int *x) { *x = 1; }\nKERNEL(one)\n")
    shape = ("--grid", 1, "--block", 1, "i32[1]")
    assert "macros declare those it has: name one" in error_of("run", file, *shape)
    assert tilescope("run", file, "one", *shape).exit_code == 0
