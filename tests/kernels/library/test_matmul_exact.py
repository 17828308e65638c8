"""Matmul on random shapes and data: bit for bit a correctly rounded fma, in the same order."""

import ctypes
import ctypes.util
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import simulator
from kernels import library
from tests.simulator.isa.tensor_model import steps

NAN = np.uint32(0x7FFFFFFF).view(np.float32)
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-40, 2.0**-126, 3.4028235e38]
# a * b + c with this a, b and c is exactly half way in float64: rounding twice errs.
DOUBLE_ROUNDING = (np.float32(1 + 2.0**-12), np.float32(2.0**-60))


def _fmaf() -> Callable[[float, float, float], float]:
    """The C library's correctly rounded single precision fma: independent of ours."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    libm.fmaf.restype = ctypes.c_float
    libm.fmaf.argtypes = [ctypes.c_float] * 3
    return libm.fmaf


fma = np.frompyfunc(_fmaf(), 3, 1)


def model(a: np.ndarray, b: np.ndarray, tile: int | None) -> np.ndarray:
    """``a @ b``, each element accumulated from k = 0 up by fma; tiles are filled with zeros."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = fma(a[:, k, None], b[None, k, :], total).astype(np.float32)
    if tile and a.shape[1] % tile:  # 0 * 0 is added: of -0 that makes +0
        total = total + np.float32(0)
    return np.where(np.isnan(total), NAN, total)


def elements() -> st.SearchStrategy[float]:
    plain = st.floats(-8, 8, width=32)
    any_bits = st.floats(width=32, allow_subnormal=True)
    return st.one_of(
        plain, plain, any_bits, st.sampled_from([float(np.float32(v)) for v in SPECIAL])
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = (draw(st.integers(1, 100)) for _ in range(3))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    scale = np.float32(draw(st.sampled_from([1.0, 1e-20, 1e-38, 1e19])))
    a = rng.standard_normal((m, k), dtype=np.float32) * scale
    b = rng.standard_normal((k, n), dtype=np.float32)
    few = draw(arrays(np.float32, st.integers(0, 12), elements=elements()))
    for value in few:
        target = a if rng.random() < 0.5 else b
        target.flat[rng.integers(target.size)] = value
    return a, b


def run(name: str, tile: int | None, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    m, k = a.shape
    n = b.shape[1]
    entry = library.get(name)
    launch = entry.launch((m, n, k), tile=tile)
    c = np.full((m, n), 7, np.float32)
    result = simulator.launch(
        entry.kernel(tile=tile), launch.grid, launch.block, [a, b, c, m, n, k], launch.shared_bytes
    )
    assert result.hazards == []
    return c


def check(name: str, tile: int | None, a: np.ndarray, b: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = model(a, b, tile)
        found = run(name, tile, a, b)
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    # The error bound of an inner product of length k (Higham, "Accuracy and Stability").
    u = 2.0**-24
    k = a.shape[1]
    bound = k * u / (1 - k * u) * magnitude + k * 2.0**-149
    good = np.isfinite(exact) & (magnitude < 3e38)
    assert (np.abs(found[good] - exact[good]) <= bound[good]).all()


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(problems(), st.sampled_from([8, 16, 32]))
@example((np.array([[1e-45]], np.float32), np.array([[-0.3]], np.float32)), 8)
@example((np.array([[DOUBLE_ROUNDING[1], DOUBLE_ROUNDING[0]]], np.float32),
          np.array([[1.0], [DOUBLE_ROUNDING[0]]], np.float32)), 8)  # fmt: skip
def test_tiled(problem: tuple[np.ndarray, np.ndarray], tile: int) -> None:
    check("matmul_tiled", tile, *problem)


@settings(max_examples=5, deadline=None)
@given(problems())
def test_naive(problem: tuple[np.ndarray, np.ndarray]) -> None:
    check("matmul_naive", None, *problem)


@settings(max_examples=4, deadline=None)
@given(problems(), st.sampled_from([32, 64]))
def test_tensor(problem: tuple[np.ndarray, np.ndarray], tile: int) -> None:
    """Sixteen products and the sum so far at once, up to a whole phase of k."""
    with np.errstate(all="ignore"):
        a, b = problem[0][:20].astype(np.float16), problem[1][:, :8].astype(np.float16)
    padded = -len(a[0]) % 32
    a, b = np.pad(a, ((0, 0), (0, padded))), np.pad(b, ((0, padded), (0, 8 - len(b[0]))))
    left, right = a.view(np.uint16).tolist(), b.view(np.uint16).T.tolist()
    expected = [
        [steps("f16", list(zip(x, y, strict=True)), "f32", 0, 16, 25) for y in right] for x in left
    ]
    assert run("matmul_tensor", tile, a, b).view(np.uint32).tolist() == expected


def test_double_rounding_would_be_seen() -> None:
    a = b = np.float32(1 + 2.0**-12)
    c = np.float32(2.0**-60)
    twice = np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    assert twice != np.float32(fma(a, b, c))
