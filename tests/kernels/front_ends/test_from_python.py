"""``Kernel.from_numba`` and ``Kernel.from_triton``: their arguments, lines and refusals."""

import importlib
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, KernelError, Pointer

MATRICES = "void(float32[:,:], float32[:,:], float32[:,:])"


@pytest.fixture(scope="module")
def numba() -> Any:
    pytest.importorskip("numba_cuda", reason="the extra numba")
    return importlib.import_module("tests.kernels.front_ends.numba_kernels")


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("triton", reason="the extra triton")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield importlib.import_module("tests.kernels.front_ends.triton_kernels")


def whole(*shape: int) -> Any:
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("order", ["C", "F", "every other"])
def test_numba_takes_arrays_of_every_order(numba: Any, order: str) -> None:
    kernel = Kernel.from_numba(numba.matmul, MATRICES)
    a, b, c = whole(20, 13), whole(13, 30), np.zeros((20, 30), np.float32)
    if order == "F":
        a, c = np.asfortranarray(a), np.asfortranarray(c)
    elif order == "every other":
        a, c = whole(40, 26)[::2, 1::2], np.zeros((20, 60), np.float32)[:, ::2]
    run = simulator.launch(kernel, (4, 3), (8, 8), [a, b, c])
    assert run.hazards == []
    np.testing.assert_array_equal(c, a @ b)


def test_numbas_reports_name_the_python_line(numba: Any) -> None:
    kernel = Kernel.from_numba(numba.matmul_racy, MATRICES)
    a, b, c = whole(16, 16), whole(16, 16), np.zeros((16, 16), np.float32)
    run = simulator.launch(kernel, (2, 2), (8, 8), [a, b, c])
    assert {h.kind for h in run.hazards} == {"war-race"}
    text = [i.source.code for h in run.hazards for i in h.involved]
    assert any("total +=" in code for code in text)
    assert kernel.name == "matmul_racy"


def test_numbas_scalars(numba: Any) -> None:
    from numba.cuda import types

    pair = types.UniTuple(types.float32, 2)
    signature = (types.float64[:], types.float64[:], types.complex64, pair, types.boolean,
                 types.float16)  # fmt: skip
    kernel = Kernel.from_numba(numba.kinds.py_func, signature)
    out, a = np.zeros(5), np.arange(5.0)
    simulator.launch(kernel, 1, 8, [out, a, 2 + 3j, (10, 100), True, 0.5])
    np.testing.assert_array_equal(out, a + 320.5)
    with pytest.raises(TypeError, match="kinds takes 6 arguments, not 2: out, a, z, pair"):
        simulator.launch(kernel, 1, 8, [out, a])
    with pytest.raises(ValueError, match="out has 1 axes, the array 2"):
        simulator.launch(kernel, 1, 8, [np.zeros((2, 2)), a, 1j, (1, 1), True, 0])
    run = simulator.launch(kernel, 1, 8, [out, a[:2], 1j, (1, 1), True, 0])
    assert [(h.kind, h.involved[0].source.code.split("=")[0].strip()) for h in run.hazards] == [
        ("out-of-bounds", "out[i]")
    ]


def test_numba_refuses_in_our_words(numba: Any) -> None:
    with pytest.raises(KernelError, match="the signature 1"):
        Kernel.from_numba(numba.matmul, "void(float32[:])")
    with pytest.raises(KernelError, match="Numba refuses matmul"):
        Kernel.from_numba(numba.matmul, "void(float32[:], float32[:], float32[:])")


def test_tritons_arguments(triton: Any) -> None:
    kernel = Kernel.from_triton(
        triton.softmax, {"out": "*fp32", "x": "*fp32", "columns": "i32"}, {"BLOCK": 256}
    )
    x = np.random.default_rng(1).normal(size=(5, 200)).astype(np.float32)
    out = np.zeros_like(x)
    run = simulator.launch(kernel, 5, 128, [out, x, 200])
    assert run.hazards == []
    np.testing.assert_allclose(out.sum(1), 1, rtol=1e-6)
    assert {line.code.split("=")[0].strip() for line in run.lines} >= {"value", "power"}
    with pytest.raises(TypeError, match="softmax takes 3 arguments, not 4: out, x, columns"):
        simulator.launch(kernel, 5, 128, [out, x, 200, 256])
    with pytest.raises(ValueError, match="multiples of 16 bytes"):
        simulator.launch(kernel, 5, 128, [out, Pointer(x, 1), 200])
    with pytest.raises(ValueError, match="reqntid"):
        simulator.launch(kernel, 5, 64, [out, x, 200])


def test_triton_gets_its_shared_memory(triton: Any) -> None:
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
    kernel = Kernel.from_triton(triton.matmul, types, triton.TILE, arch="compute_80")
    assert kernel.dynamic_bytes > 0
    a, b = whole(64, 64).astype(np.float16), whole(64, 32).astype(np.float16)
    c = np.zeros((64, 32), np.float16)
    run = simulator.launch(kernel, 1, 128, [a, b, c, 64, 32, 64])
    assert run.hazards == []
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b)


def test_triton_refuses_in_our_words(triton: Any) -> None:
    with pytest.raises(KernelError, match="softmax takes out, x, columns, BLOCK; the signature"):
        Kernel.from_triton(triton.softmax, {"out": "*fp32"}, {"BLOCK": 256})
    with pytest.raises(KernelError, match="Triton refuses softmax"):
        Kernel.from_triton(
            triton.softmax, {"out": "*fp32", "x": "*fp32", "columns": "i32"}, {"BLOCK": 255}
        )


@pytest.mark.parametrize(("step", "raced"), [(0, False), (1, True)])
def test_what_tritons_spare_threads_load_is_no_race(triton: Any, step: int, raced: bool) -> None:
    kernel = Kernel.from_triton(triton.doubled, {"x": "*fp32"}, {"STEP": step, "N": 64})
    x = whole(64)
    expected = 2 * np.roll(x, -step)
    run = simulator.launch(kernel, 1, 128, [x])
    np.testing.assert_array_equal(x, expected)
    assert any("several threads load" in note for note in run.notes) != raced
    kinds = {(h.kind, h.severity) for h in run.hazards}
    assert (("war-race", "error") in kinds) == bool(kinds) == raced
    code = {i.source.code for h in run.hazards for i in h.involved}
    assert not raced or code == {
        "value = tl.load(x + (at + STEP) % N)", "tl.store(x + at, value * 2)"
    }  # fmt: skip


def test_numba_calls_device_functions_and_refuses_c(numba: Any) -> None:
    x = whole(32)
    expected = x * x + 1
    simulator.launch(Kernel.from_numba(numba.calls, "void(float32[:])"), 1, 32, [x])
    np.testing.assert_array_equal(x, expected)
    with pytest.raises(KernelError, match=r"squares calls .*half.*, C.. that Numba links"):
        Kernel.from_numba(numba.squares, "void(float16[:])")
