"""cuBLAS's stand-ins against sums by their definitions, in every type and layout."""

from typing import Any

import numpy as np
import pytest

from tests.support.library_calls import Caller
from tilescope.programs.runtime.calls import UnsupportedCallError

TYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
CLOSE = {np.float16: 2e-3, np.float32: 1e-5, np.complex64: 1e-5, np.float64: 1e-12,
         np.complex128: 1e-12}  # fmt: skip


@pytest.fixture
def caller() -> Caller:
    return Caller()


def numbers(rng: np.random.Generator, count: int, kind: Any) -> Any:
    made = rng.standard_normal(count)
    if np.issubdtype(kind, np.complexfloating):
        made = made + 1j * rng.standard_normal(count)
    return made.astype(kind)


def element(flat: Any, leading: int, operation: int, i: int, j: int) -> Any:
    """op(M)[i, j] of a column-major matrix."""
    if operation == 0:
        return flat[i + j * leading]
    value = flat[j + i * leading]
    return np.conj(value) if operation == 2 else value


def product(a: Any, b: Any, c: Any, shape: Any, ops: Any, leads: Any, alpha: Any, beta: Any) -> Any:
    """C by its definition, in double precision."""
    m, n, k = shape
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    a, b, made = a.astype(wide), b.astype(wide), c.astype(wide)
    for i in range(m):
        for j in range(n):
            total = sum(element(a, leads[0], ops[0], i, p) * element(b, leads[1], ops[1], p, j)
                        for p in range(k))  # fmt: skip
            at = i + j * leads[2]
            made[at] = alpha * total + (beta * made[at] if beta else 0)
    return made.astype(c.dtype)


@pytest.mark.parametrize("wide", ["", "_64"])
@pytest.mark.parametrize("ops", [(0, 0), (1, 0), (0, 2), (2, 1)])
@pytest.mark.parametrize("letter", TYPES)
def test_products(caller: Caller, letter: str, ops: Any, wide: str) -> None:
    kind, rng = TYPES[letter], np.random.default_rng(1)
    m, n, k, leads = 4, 3, 5, (7, 6, 5)
    a, b, c = (numbers(rng, 60, kind) for _ in "abc")
    handle = caller.new("cublasCreate_v2")
    at = [caller.on_device(x) for x in (a, b, c)]
    alpha, beta = kind(1.5), kind(0.5)
    scalars = caller.host(alpha), caller.host(beta)
    status = caller.call(f"cublas{letter}gemm_v2{wide}", handle, *ops, m, n, k, scalars[0],
                         at[0], leads[0], at[1], leads[1], scalars[1], at[2], leads[2])  # fmt: skip
    assert status == 0
    wanted = product(a, b, c, (m, n, k), ops, leads, alpha, beta)
    np.testing.assert_allclose(caller.at(at[2], 60, kind), wanted, rtol=CLOSE[kind], atol=1e-5)
    assert caller.found == []


def test_scalars_of_the_device_and_no_read_of_c_without_beta(caller: Caller) -> None:
    handle = caller.new("cublasCreate_v2")
    assert caller.call("cublasSetPointerMode_v2", handle, 1) == 0
    ones = np.ones(4, np.float32)
    a, zero = caller.on_device(ones), caller.on_device(np.zeros(1, np.float32))
    c = caller.device.allocate(16)
    words = 0, 0, 2, 2, 2, a, a, 2, a, 2, zero, c.address, 2
    assert caller.call("cublasSgemm_v2", handle, *words) == 0
    assert caller.at(c.address, 4, np.float32).tolist() == [2, 2, 2, 2]
    assert not c.array.missing.any()
    unset = caller.device.allocate(16).address
    words = 0, 0, 2, 2, 2, a, unset, 2, a, 2, zero, c.address, 2
    assert caller.call("cublasSgemm_v2", handle, *words) == 0
    assert caller.found == ["host-unset"]


def test_batches_and_mixed_types(caller: Caller) -> None:
    handle, rng = caller.new("cublasCreate_v2"), np.random.default_rng(2)
    one, zero = caller.host(np.float32(1)), caller.host(np.float32(0))
    a, b = (rng.standard_normal(36).astype(np.float16) for _ in "ab")
    at = [caller.on_device(x) for x in (a, b)]
    c = caller.on_device(np.zeros(27, np.float32))
    words = [0, 1, 3, 3, 4, one, at[0], 2, 3, 12, at[1], 2, 3, 12, zero, c, 0, 3, 9, 3, 68, -1]
    assert caller.call("cublasGemmStridedBatchedEx", handle, *words) == 0
    found = caller.at(c, 27, np.float32).reshape(3, 3, 3)
    for i in range(3):
        x, y = (m[12 * i : 12 * i + 12].astype(np.float64).reshape(4, 3).T for m in (a, b))
        np.testing.assert_allclose(found[i].T, x @ y.T, rtol=1e-5, atol=1e-5)
    rows = caller.on_device(np.array([at[0], at[0]], np.int64))
    columns = caller.on_device(np.array([at[1], at[1]], np.int64))
    halves = caller.on_device(np.zeros(18, np.float16))
    outs = caller.on_device(np.array([halves, halves + 18], np.int64))
    half = caller.host(np.float16(1)), caller.host(np.float16(0))
    words = [0, 1, 3, 3, 4, half[0], rows, 3, columns, 3, half[1], outs, 3, 2]
    assert caller.call("cublasHgemmBatched", handle, *words) == 0
    made = caller.at(halves, 18, np.float16)
    np.testing.assert_allclose(made[:9], found[0].ravel(), rtol=1e-2, atol=1e-2)
    assert np.array_equal(made[:9], made[9:])


def test_bytes_and_brain_floats(caller: Caller) -> None:
    handle = caller.new("cublasCreate_v2")
    a = np.arange(-8, 8, dtype=np.int8)
    at, c = caller.on_device(a), caller.on_device(np.zeros(16, np.int32))
    one, zero = caller.host(np.int32(1)), caller.host(np.int32(0))
    words = [0, 0, 4, 4, 4, one, at, 3, 4, at, 3, 4, zero, c, 10, 4, 72, -1]
    assert caller.call("cublasGemmEx", handle, *words) == 0
    wide = a.reshape(4, 4).T.astype(int)
    assert np.array_equal(caller.at(c, 16, np.int32).reshape(4, 4).T, wide @ wide)
    brain = (np.array([1, 1.5, -2, 0.25], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    at, c = caller.on_device(brain), caller.on_device(np.zeros(4, np.uint16))
    one, zero = caller.host(np.float32(1)), caller.host(np.float32(0))
    words = [0, 0, 2, 2, 2, one, at, 14, 2, at, 14, 2, zero, c, 14, 2, 68, -1]
    assert caller.call("cublasGemmEx", handle, *words) == 0
    made = (caller.at(c, 4, np.uint16).astype(np.uint32) << 16).view(np.float32)
    m = np.array([[1, -2], [1.5, 0.25]])
    assert np.array_equal(made.reshape(2, 2).T, m @ m)
    words[-2] = 999
    with pytest.raises(UnsupportedCallError, match="cublasComputeType_t 999"):
        caller.call("cublasGemmEx", handle, *words)


@pytest.mark.parametrize("steps", [(1, 1), (2, 3), (-2, 1)])
@pytest.mark.parametrize("letter", TYPES)
def test_vectors(caller: Caller, letter: str, steps: tuple[int, int]) -> None:
    kind, rng, n = TYPES[letter], np.random.default_rng(3), 5
    handle = caller.new("cublasCreate_v2")
    x, y = (numbers(rng, 20, kind) for _ in "xy")
    at = caller.on_device(x), caller.on_device(y)

    def of(flat: Any, step: int) -> Any:
        """Element i is at ``(i - n + 1) * step`` from the start where the step is negative."""
        return np.array([flat[i * step if step > 0 else (i - n + 1) * step] for i in range(n)])

    u, v = of(x, steps[0]), of(y, steps[1])
    plain, result = "dot" if letter in "SD" else "dotu", caller.host(np.zeros(2))
    call = caller.call
    real = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    floats = np.float32 if letter in "SC" else np.float64
    first = (n, at[0], steps[0])
    for name, extra, wanted, made in (
        (f"{letter}{plain}_v2", (at[1], steps[1]), (u * v).sum(), kind),
        (f"{real}nrm2_v2", (), np.sqrt((np.abs(u) ** 2).sum()), floats),
        (f"{real}asum_v2", (), (np.abs(u.real) + np.abs(u.imag)).sum(), floats),
        (f"I{letter.lower()}amax_v2", (), 1 + (np.abs(u.real) + np.abs(u.imag)).argmax(), np.int32),
        (f"I{letter.lower()}amin_v2", (), 1 + (np.abs(u.real) + np.abs(u.imag)).argmin(), np.int32),
    ):  # fmt: skip
        assert call(f"cublas{name}", handle, *first, *extra, result) == 0
        found = np.frombuffer(caller.read(result, np.dtype(made).itemsize), made)[0]
        np.testing.assert_allclose(found, wanted, rtol=CLOSE[kind])
    if letter in "CZ":
        assert call(f"cublas{letter}dotc_v2", handle, *first, at[1], steps[1], result) == 0
        found = np.frombuffer(caller.read(result, np.dtype(kind).itemsize), kind)[0]
        np.testing.assert_allclose(found, (np.conj(u) * v).sum(), rtol=CLOSE[kind])
    alpha = caller.host(kind(3))
    assert call(f"cublas{letter}axpy_v2", handle, n, alpha, at[0], steps[0], at[1], steps[1]) == 0
    v = v + kind(3) * u
    np.testing.assert_allclose(of(caller.at(at[1], 20, kind), steps[1]), v, rtol=CLOSE[kind])
    assert call(f"cublas{letter}scal_v2", handle, n, alpha, at[0], steps[0]) == 0
    assert call(f"cublas{letter}swap_v2", handle, n, at[0], steps[0], at[1], steps[1]) == 0
    np.testing.assert_allclose(of(caller.at(at[0], 20, kind), steps[0]), v, rtol=CLOSE[kind])
    np.testing.assert_allclose(of(caller.at(at[1], 20, kind), steps[1]), 3 * u, rtol=CLOSE[kind])
    assert call(f"cublas{letter}copy_v2", handle, n, at[0], steps[0], at[1], steps[1]) == 0
    np.testing.assert_allclose(of(caller.at(at[1], 20, kind), steps[1]), v, rtol=CLOSE[kind])
    untouched = np.ones(20, bool)
    untouched[[i * abs(steps[0]) for i in range(n)]] = False
    assert np.array_equal(caller.at(at[0], 20, kind)[untouched], x[untouched])


@pytest.mark.parametrize("letter", TYPES)
def test_matrices(caller: Caller, letter: str) -> None:
    kind, rng = TYPES[letter], np.random.default_rng(4)
    close = {"rtol": 20 * CLOSE[kind], "atol": 20 * CLOSE[kind]}
    handle, call = caller.new("cublasCreate_v2"), caller.call
    flat = numbers(rng, 16, kind)
    m = flat.reshape(4, 4).T
    x, y = (numbers(rng, 4, kind) for _ in "xy")
    at = {name: caller.on_device(value) for name, value in (("m", flat), ("x", x), ("y", y))}
    two, one, zero = (caller.host(kind(value)) for value in (2, 1, 0))
    for operation, matrix in ((0, m), (1, m.T), (2, np.conj(m.T))):
        words = (handle, operation, 4, 4, two, at["m"], 4, at["x"], 1, zero, at["y"], 1)
        assert call(f"cublas{letter}gemv_v2", *words) == 0
        np.testing.assert_allclose(caller.at(at["y"], 4, kind), 2 * matrix @ x, **close)
    y = caller.at(at["y"], 4, kind)
    out = caller.on_device(flat)
    name = "ger" if letter in "SD" else "gerc"
    assert call(f"cublas{letter}{name}_v2", handle, 4, 4, two, at["x"], 1, at["y"], 1, out, 4) == 0
    made = caller.at(out, 16, kind).reshape(4, 4).T
    np.testing.assert_allclose(made, m + 2 * np.outer(x, np.conj(y)), **close)
    assert call(f"cublas{letter}geam", handle, 1, 0, 4, 4, two, at["m"], 4, one, at["m"], 4, out,
                4) == 0  # fmt: skip
    np.testing.assert_allclose(caller.at(out, 16, kind).reshape(4, 4).T, 2 * m.T + m, **close)
    for side, uplo, trans, diag in ((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0), (1, 0, 0, 1)):
        b = caller.on_device(flat)
        words = (handle, side, uplo, trans, diag, 4, 4, one, at["m"], 4, b, 4)
        assert call(f"cublas{letter}trsm_v2", *words) == 0
        solved = caller.at(b, 16, kind).reshape(4, 4).T
        half = np.tril(m) if uplo == 0 else np.triu(m)
        half = half - np.diag(np.diag(half)) + np.eye(4) if diag else half
        half = (half, half.T, np.conj(half.T))[trans]
        product = half @ solved if side == 0 else solved @ half
        np.testing.assert_allclose(product, m, rtol=1e-3, atol=1e-3)
    out = caller.on_device(flat)
    assert call(f"cublas{letter}syrk_v2", handle, 0, 0, 4, 4, one, at["m"], 4, zero, out, 4) == 0
    made = caller.at(out, 16, kind).reshape(4, 4).T
    np.testing.assert_allclose(np.tril(made), np.tril(m @ m.T), **close)
    assert np.array_equal(np.triu(made, 1), np.triu(m, 1))


def test_vectors_of_types_that_are_arguments(caller: Caller) -> None:
    handle, half = caller.new("cublasCreate_v2"), np.array([1, 2, -3], np.float16)
    x, result = caller.on_device(half), caller.host(np.zeros(2, np.float16))
    words = (3, x, 2, 1)
    assert caller.call("cublasDotEx", handle, *words, x, 2, 1, result, 2, 0) == 0
    assert np.frombuffer(caller.read(result, 2), np.float16)[0] == 14
    assert caller.call("cublasNrm2Ex", handle, *words, result, 2, 0) == 0
    assert np.frombuffer(caller.read(result, 2), np.float16)[0] == np.float16(14**0.5)
    two = caller.host(np.float32(2))
    assert caller.call("cublasAxpyEx", handle, 3, two, 0, x, 2, 1, x, 2, 1, 0) == 0
    assert caller.call("cublasScalEx", handle, 3, two, 0, x, 2, 1, 0) == 0
    assert caller.at(x, 3, np.float16).tolist() == [6, 12, -18]
    with pytest.raises(UnsupportedCallError, match="cublasDotEx of types"):
        caller.call("cublasDotEx", handle, *words, x, 0, 1, result, 2, 0)


def test_what_is_wrong_with_memory_is_told(caller: Caller) -> None:
    handle, one = caller.new("cublasCreate_v2"), caller.host(np.float32(1))
    x = caller.on_device(np.ones(4, np.float32))
    assert caller.call("cublasSscal_v2", handle, 5, one, x, 1) == 13
    assert caller.call("cublasSscal_v2", handle, 4, one, caller.host(np.ones(4)), 1) == 13
    gone = caller.on_device(np.ones(4, np.float32))
    caller.device.free(gone, "main.cu:5")
    assert caller.call("cublasSscal_v2", handle, 4, one, gone, 1) == 13
    assert caller.found == ["bad-copy", "host-pointer", "use-after-free"]
    (first, *_) = caller.checks.hazards()
    assert "x ends 4 bytes past an allocation of 16 bytes (made at main.cu:3)" in first.message
    assert caller.call("cublasSscal_v2", handle + 1, 4, one, x, 1) == 1
    assert caller.call("cublasDestroy_v2", handle) == 0
    assert caller.call("cublasSscal_v2", handle, 4, one, x, 1) == 1


def test_calls_are_in_the_order_of_their_streams(caller: Caller) -> None:
    handle, one = caller.new("cublasCreate_v2"), caller.host(np.float32(1))
    x = caller.on_device(np.ones(4, np.float32))
    for _ in range(2):
        stream = caller.streams.cuStreamCreate(1)
        assert caller.call("cublasSetStream_v2", handle, stream) == 0
        assert caller.call("cublasSscal_v2", handle, 4, one, x, 1) == 0
    assert [hazard.kind for hazard in caller.machine.order.hazards] == ["host-order"]
    assert caller.libraries.calls.total() == 2
