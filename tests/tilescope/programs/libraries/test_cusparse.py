"""cuSPARSE's products against dense ones, and cuRAND's calls on device and host memory."""

from typing import Any

import numpy as np
import pytest

from tests.support.library_calls import Caller
from tilescope.programs.libraries.random_numbers import MRG32K3A, PHILOX, RandomNumbers
from tilescope.programs.runtime.calls import UnsupportedCallError

F32, F64, COLUMNS, ROWS = 0, 1, 1, 2
DENSE = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, -1, 0]], float)


@pytest.fixture
def caller() -> Caller:
    return Caller()


def sparse(caller: Caller, form: str, base: int, dense: Any, kind: Any) -> int:
    """A descriptor of a matrix in the device's memory."""
    code = {np.float32: F32, np.float64: F64}[kind]
    rows, columns = np.nonzero(dense) if form != "Csc" else np.nonzero(dense.T)[::-1]
    values = dense[rows, columns].astype(kind)
    outer, inner = (columns, rows) if form == "Csc" else (rows, columns)
    first, types = outer, (2,)
    if form != "Coo":
        first = np.searchsorted(outer, np.arange(dense.shape[form == "Csc"] + 1))
        types = (3, 2)
    words = (np.int64 if types[0] == 3 else np.int32), np.int32
    at = [caller.on_device((first + base).astype(words[0])),
          caller.on_device((inner + base).astype(words[1])), caller.on_device(values)]  # fmt: skip
    return caller.new(f"cusparseCreate{form}", *dense.shape, len(values), *at, *types, base, code)


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("form", ["Csr", "Csc", "Coo"])
@pytest.mark.parametrize("operation", [0, 1])
def test_matrix_times_vector(caller: Caller, form: str, base: int, operation: int) -> None:
    handle = caller.new("cusparseCreate")
    a = sparse(caller, form, base, DENSE, np.float32)
    matrix = DENSE.T if operation else DENSE
    x = np.arange(1, matrix.shape[1] + 1, dtype=np.float32)
    y = np.ones(matrix.shape[0], np.float32)
    at = caller.on_device(y)
    vectors = [caller.new("cusparseCreateDnVec", len(v), where, F32)
               for v, where in ((x, caller.on_device(x)), (y, at))]  # fmt: skip
    two, half = caller.host(np.float32(2)), caller.host(np.float32(0.5))
    size = caller.host(np.array([9]))
    words = (handle, operation, two, a, vectors[0], half, vectors[1], F32, 0)
    assert caller.call("cusparseSpMV_bufferSize", *words, size) == 0
    assert caller.read(size, 8) == bytes(8)
    assert caller.call("cusparseSpMV", *words, 0) == 0
    found = caller.at(at, len(y), np.float32)
    np.testing.assert_allclose(found, 2 * matrix @ x + 0.5, rtol=1e-6)
    for name, one in (("SpMat", a), ("DnVec", vectors[0]), ("DnVec", vectors[1])):
        assert caller.call(f"cusparseDestroy{name}", one) == 0
    assert caller.call("cusparseSpMV", *words, 0) == 3
    assert caller.libraries.calls.total() == 2


@pytest.mark.parametrize("orders", [(COLUMNS, COLUMNS), (ROWS, COLUMNS), (ROWS, ROWS)])
@pytest.mark.parametrize("transb", [0, 1])
def test_matrix_times_matrix(caller: Caller, orders: tuple[int, int], transb: int) -> None:
    handle, rng = caller.new("cusparseCreate"), np.random.default_rng(1)
    a = sparse(caller, "Csr", 0, DENSE, np.float64)
    b = rng.standard_normal((2, 4) if transb else (4, 2))
    leading = 7
    stored = np.zeros((leading, leading))
    (stored if orders[0] == ROWS else stored.T)[: b.shape[0], : b.shape[1]] = b
    out = caller.on_device(np.zeros((leading, leading)))
    left = caller.new("cusparseCreateDnMat", *b.shape, leading, caller.on_device(stored), F64,
                      orders[0])  # fmt: skip
    made = caller.new("cusparseCreateDnMat", 3, 2, leading, out, F64, orders[1])
    one, zero = caller.host(1.0), caller.host(0.0)
    words = (handle, 0, transb, one, a, left, zero, made, F64, 0, 0)
    assert caller.call("cusparseSpMM", *words) == 0
    found = caller.at(out, leading * leading, np.float64).reshape(leading, leading)
    found = (found if orders[1] == ROWS else found.T)[:3, :2]
    np.testing.assert_allclose(found, DENSE @ (b.T if transb else b))


@pytest.mark.parametrize("form", ["Csr", "Csc", "Coo"])
def test_sparse_to_dense(caller: Caller, form: str) -> None:
    handle, out = caller.new("cusparseCreate"), caller.on_device(np.ones(20))
    a = sparse(caller, form, 1, DENSE, np.float64)
    dense = caller.new("cusparseCreateDnMat", 3, 4, 5, out, F64, ROWS)
    assert caller.call("cusparseSparseToDense", handle, a, dense, 0, 0) == 0
    found = caller.at(out, 20, np.float64)[:15].reshape(3, 5)
    assert np.array_equal(found[:, :4], DENSE)
    assert found[:2, 4].tolist() == [1, 1]


def test_indices_outside_of_the_matrix_are_told(caller: Caller) -> None:
    handle = caller.new("cusparseCreate")
    a = sparse(caller, "Csr", 0, DENSE, np.float32)
    narrow = caller.libraries.handles[a]
    narrow.columns = 3
    x = caller.new("cusparseCreateDnVec", 3, caller.on_device(np.ones(3, np.float32)), F32)
    one = caller.host(np.float32(1))
    assert caller.call("cusparseSpMV", handle, 0, one, a, x, one, x, F32, 0, 0) == 6
    assert caller.found == ["bad-copy"]


def test_random_numbers_on_device_and_host(caller: Caller) -> None:
    generator = caller.new("curandCreateGenerator", PHILOX)
    assert caller.call("curandSetPseudoRandomGeneratorSeed", generator, 9) == 0
    out = caller.device.allocate(48)
    mean, deviation = np.float32(2), np.float32(3)
    assert caller.call("curandGenerateNormal", generator, out.address, 6, mean, deviation) == 0
    numbers = RandomNumbers(PHILOX, 9)
    wanted = numbers.draw("normal", 6) * np.float32(3) + np.float32(2)
    assert np.array_equal(caller.at(out.address, 6, np.float32), wanted)
    assert out.array[24:].missing.all()
    assert caller.call("curandGenerateLogNormalDouble", generator, out.address, 6, 0.5, 0.25) == 0
    wanted = np.exp(numbers.draw("normal double", 6) * 0.25 + 0.5)
    assert np.array_equal(caller.at(out.address, 6, np.float64), wanted)
    host = caller.new("curandCreateGeneratorHost", MRG32K3A)
    at = caller.host(np.zeros(4, np.uint32))
    assert caller.call("curandGenerate", host, at, 4) == 0
    found = np.frombuffer(caller.read(at, 16), np.uint32)
    assert np.array_equal(found, RandomNumbers(MRG32K3A).draw("bits", 4))
    assert caller.call("curandGenerateNormal", host, at, 3, mean, deviation) == 105
    with pytest.raises(UnsupportedCallError, match="curandOrdering 104"):
        caller.call("curandSetGeneratorOrdering", host, 104)
    with pytest.raises(UnsupportedCallError, match="curandRngType 142"):
        caller.call("curandCreateGenerator", at, 142)
