"""How far outputs may be from a reference: as far as rounding takes them, and no further."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import tilescope
from tilescope.check.tolerance import rounding, smallest

KERNELS = """
#include <cuda_fp16.h>
template <class T, class S> __device__ void product(T* out, const T* a, const T* b, int n) {
    int row = blockIdx.x, column = threadIdx.x;
    S sum = 0;
    for (int k = 0; k < n; ++k) sum = S(a[row * n + k]) * S(b[k * n + column]) + sum;
    out[row * n + column] = sum;
}
__global__ void single(float* out, const float* a, const float* b, int n) {
    product<float, float>(out, a, b, n); }
__global__ void mixed(__half* out, const __half* a, const __half* b, int n) {
    product<__half, float>(out, a, b, n); }
__global__ void half_sums(__half* out, const __half* a, const __half* b, int n) {
    product<__half, __half>(out, a, b, n); }
__global__ void total(float* out, const float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(out, x[i]); }
__global__ void scaled(float* out, const float* x, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = 2.5f * x[threadIdx.x] + 1; }
"""
REFERENCES = """
import numpy as np
CALLS = []
def product(out, a, b, n):
    CALLS.append(n)
    out[:] = a.astype(float) @ b.astype(float)
def one_term_less(out, a, b, n): out[:] = a.astype(float)[:, 1:] @ b.astype(float)[1:]
def total(out, x, n): return {"out": np.array([x.astype(float).sum()])}
def all_but_one(out, x, n): return {"out": np.array([x.astype(float)[1:].sum()])}
def scaled(out, x, n): out[:] = 2.5 * x.astype(float) + 1
def scaled_else(out, x, n): out[:] = 2.5 * x.astype(float) + 1.00004
def with_nan(out, x, n): out[:] = np.where(x > 1, np.nan, 2.5 * x + 1)
def unsteady(out, a, b, n):
    if CALLS: raise ValueError("once only")
    product(out, a, b, n)
"""
N = 64
SQUARES = {
    kind: (f"{kind}[{N},{N}]", *2 * [f"{kind}[{N},{N}]=normal"], N) for kind in ("f32", "f16")
}
SHAPE = ("--grid", N, "--block", N)
LINE = ("--grid", 1, "--block", 64)
SUM = ("f32[1]", "f32[4000]=normal", 4000)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module of references, of another name in each test, as modules are imported once."""
    name = f"references_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(REFERENCES)
    (tmp_path / "kernels.cu").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.slow_but("float", "one operation")
@pytest.mark.parametrize(("kernel", "shape", "words", "right", "wrong"), [
    ("single", SHAPE, SQUARES["f32"], "product", "one_term_less"),
    ("mixed", SHAPE, SQUARES["f16"], "product", "one_term_less"),
    ("half_sums", SHAPE, SQUARES["f16"], "product", "one_term_less"),
    ("single", SHAPE, (f"f32[{N},{N}]", *2 * [f"f32[{N},{N}]=0.1"], N), "product", "one_term_less"),
    ("total", LINE, SUM, "total", "all_but_one"),
    ("scaled", LINE, ("f32[64]", "f32[64]=normal", 64), "scaled", "scaled_else"),
], ids=["float", "half", "sums in half", "one sign", "atomics", "one operation"])  # fmt: skip
def test_what_rounding_explains_is_right(
    folder: str, kernel: str, shape: Any, words: Any, right: str, wrong: str
) -> None:
    for reference, good in ((right, True), (wrong, False)):
        given = (kernel, *shape, *words, "--reference", f"{folder}:{reference}", "--quiet")
        result = tilescope("run", "kernels.cu", *given)
        assert result.exit_code == (not good), (reference, result.output)
        assert ("WRONG" in result.output) == (not good)


def test_tolerances_that_are_given_hold(folder: str) -> None:
    given = ("single", *SHAPE, *SQUARES["f32"], "--reference", f"{folder}:product", "--quiet")
    result = tilescope("run", "kernels.cu", *given, "--close", "1e-5,1e-8")
    assert result.exit_code == 1
    assert "WRONG" in result.output


def test_outputs_that_are_given(folder: str) -> None:
    """Without a function sums are taken to have terms as large as the outputs are on average."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((N, N)).astype(np.float32) for _ in range(2))
    for name, array in (("a", a), ("b", b), ("c", a.astype(float) @ b), ("d", a[:, 1:] @ b[1:])):
        np.save(f"{name}.npy", array.astype(np.float32))
    words = (f"f32[{N},{N}]", f"f32[{N},{N}]=@a.npy", f"f32[{N},{N}]=@b.npy", N)
    for name, code in (("c", 0), ("d", 1)):
        given = ("single", *SHAPE, *words, "--expect", f"out=@{name}.npy", "--quiet")
        assert tilescope("run", "kernels.cu", *given).exit_code == code


def test_the_reference_is_called_again_only_if_need_be(folder: str) -> None:
    plain = (f"f32[{N},{N}]", *2 * [f"f32[{N},{N}]=ones"], N)
    for words, calls in ((plain, 1), (SQUARES["f32"], 5)):
        given = ("single", *SHAPE, *words, "--reference", f"{folder}:product", "--quiet")
        assert tilescope("run", "kernels.cu", *given).exit_code == 0
        module = importlib.import_module(folder)
        assert len(module.CALLS) == calls
        module.CALLS.clear()


def test_a_reference_that_takes_no_other_inputs(folder: str) -> None:
    """The bound is that of the outputs alone then."""
    given = ("single", *SHAPE, *SQUARES["f32"], "--reference", f"{folder}:unsteady", "--quiet")
    assert tilescope("run", "kernels.cu", *given).exit_code == 1


def test_not_a_number_is_as_it_is(folder: str) -> None:
    given = ("scaled", *LINE, "f32[64]", "f32[64]=normal", 64)
    result = tilescope("run", "kernels.cu", *given, "--reference", f"{folder}:with_nan", "--quiet")
    assert result.exit_code == 1


def test_check_takes_the_same_bounds(folder: str) -> None:
    for name, code in (("product", 0), ("one_term_less", 1)):
        given = ("single", *SHAPE, *SQUARES["f32"], "--reference", f"{folder}:{name}")
        assert tilescope("check", "kernels.cu", *given, "--build", "device").exit_code == code


def test_units() -> None:
    assert [rounding(np.dtype(kind)) for kind in ("f2", "f4", "f8")] == [
        float(np.finfo(kind).eps) / 2 for kind in ("f2", "f4", "f8")
    ]
    assert rounding(np.dtype("i4")) == smallest(np.dtype("u2")) == 0
    assert smallest(np.dtype("f2")) == 2.0**-25
