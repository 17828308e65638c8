"""cuFFT's stand-ins against sums by their definition, batched, in place and in strides."""

from typing import Any

import numpy as np
import pytest

from tests.support.library_calls import Caller

C2C, R2C, C2R, Z2Z = 0x29, 0x2A, 0x2C, 0x69


@pytest.fixture
def caller() -> Caller:
    return Caller()


def transform(x: Any, sign: int) -> Any:
    """The sum of x[j] exp(sign 2 pi i jk / n) along each axis."""
    made = x.astype(np.complex128)
    for axis, n in enumerate(x.shape):
        k = np.arange(n)
        made = np.moveaxis(
            np.tensordot(np.exp(sign * 2j * np.pi * np.outer(k, k) / n), made, ([1], [axis])), 0,
            axis,
        )  # fmt: skip
    return made


@pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 2, 4)])
@pytest.mark.parametrize(("kind", "name", "dtype"), [(C2C, "C2C", np.complex64),
                                                     (Z2Z, "Z2Z", np.complex128)])  # fmt: skip
def test_complex(caller: Caller, shape: Any, kind: int, name: str, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    extra = (1,) if len(shape) == 1 else ()
    plan = caller.new(f"cufftPlan{len(shape)}d", *shape, kind, *extra, nbytes=4)
    given, made = caller.on_device(x), caller.on_device(np.zeros_like(x))
    for direction in (-1, 1):
        assert caller.call(f"cufftExec{name}", plan, given, made, direction) == 0
        found = caller.at(made, x.size, dtype).reshape(shape)
        np.testing.assert_allclose(found, transform(x, direction), rtol=1e-4, atol=1e-4)
    assert caller.call(f"cufftExec{name}", plan, given, given, -1) == 0  # in place
    found = caller.at(given, x.size, dtype).reshape(shape)
    np.testing.assert_allclose(found, transform(x, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(6,), (5,), (3, 4)])
def test_real_there_and_back(caller: Caller, shape: Any, in_place: bool) -> None:
    rng, batch = np.random.default_rng(2), 2 if len(shape) == 1 else 1
    half = shape[-1] // 2 + 1
    x = rng.standard_normal((batch, *shape)).astype(np.float32)
    row = 2 * half if in_place else shape[-1]
    stored = np.zeros((batch, *shape[:-1], row), np.float32)
    stored[..., : shape[-1]] = x
    extra = (batch,) if len(shape) == 1 else ()
    there = caller.new(f"cufftPlan{len(shape)}d", *shape, R2C, *extra, nbytes=4)
    back = caller.new(f"cufftPlan{len(shape)}d", *shape, C2R, *extra, nbytes=4)
    given = caller.on_device(stored)
    size = batch * int(np.prod(shape[:-1])) * half
    made = given if in_place else caller.on_device(np.zeros(size, np.complex64))
    assert caller.call("cufftExecR2C", there, given, made) == 0
    found = caller.at(made, size, np.complex64).reshape(batch, *shape[:-1], half)
    for one, wanted in zip(found, x, strict=True):
        np.testing.assert_allclose(one, transform(wanted, -1)[..., :half], rtol=1e-4, atol=1e-4)
    out = made if in_place else caller.on_device(np.zeros_like(stored))
    assert caller.call("cufftExecC2R", back, made, out) == 0
    again = caller.at(out, stored.size, np.float32).reshape(stored.shape)[..., : shape[-1]]
    np.testing.assert_allclose(again, x * np.prod(shape), rtol=1e-4, atol=1e-4)


def test_an_advanced_layout(caller: Caller) -> None:
    """Columns of a matrix: 3 transforms of 4 elements, 3 apart."""
    x = np.arange(12, dtype=np.complex64) ** 1.5
    n, embed = caller.host(np.array([4], np.int32)), caller.host(np.array([4], np.int32))
    words = (1, n, embed, 3, 1, embed, 1, 4, C2C, 3)
    plan = caller.new("cufftPlanMany", *words, nbytes=4)
    given, made = caller.on_device(x.astype(np.complex64)), caller.on_device(x)
    assert caller.call("cufftExecC2C", plan, given, made, -1) == 0
    found = caller.at(made, 12, np.complex64).reshape(3, 4)
    for column in range(3):
        wanted = transform(x.reshape(4, 3)[:, column], -1)
        np.testing.assert_allclose(found[column], wanted, rtol=1e-4, atol=1e-3)


def test_what_is_wrong_gives_a_status(caller: Caller) -> None:
    at = caller.host(np.zeros(1, np.int32))
    assert caller.call("cufftPlan1d", at, 0, C2C, 1) == 4
    assert caller.call("cufftPlan1d", at, 4, 0x30, 1) == 3
    plan = caller.new("cufftPlan1d", 4, C2C, 2, nbytes=4)
    x = caller.on_device(np.zeros(4, np.complex64))
    assert caller.call("cufftExecC2C", plan + 1, x, x, -1) == 1
    assert caller.call("cufftExecC2C", plan, x, x, -1) == 6
    assert caller.found == ["bad-copy"]
    assert caller.call("cufftDestroy", plan) == 0
    assert caller.call("cufftExecC2C", plan, x, x, -1) == 1
