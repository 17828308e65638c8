"""The two ways of a fused multiply-add give the same bits, and one that rounds twice is seen."""

from collections.abc import Callable

import numpy as np
import pytest

from simulator.geometry import Lanes
from simulator.isa import arithmetic, fused

WAYS = [(np.float32, np.uint32, arithmetic.fma_f32, arithmetic._fma_f32),
        (np.float64, np.uint64, arithmetic.fma_f64, arithmetic._fma_f64)]  # fmt: skip
SHAPES = [
    [(1,)] * 3, [(2,)] * 3, [(33,)] * 3, [(4096,)] * 3, [(64, 17)] * 3,
    [(64, 1), (1, 17), ()], [(), (5,), (5,)], [(3, 1, 7), (3, 4, 1), (1, 4, 7)], [(), (), ()],
]  # fmt: skip
Way = Callable[[Lanes, Lanes, Lanes], Lanes]


@pytest.mark.parametrize(("dtype", "word", "used", "in_steps"), WAYS)
def test_both_ways_equal(dtype: type, word: type, used: Way, in_steps: Way) -> None:
    rng = np.random.default_rng(5)
    for shapes in SHAPES:
        for near in (False, True):
            bits = [rng.integers(0, np.iinfo(word).max, shape, word) for shape in shapes]
            a, b, c = (np.asarray(x, word).view(dtype)[()] for x in bits)
            if near:  # the sum nearly cancels: what the product's low half is decides
                a, b = (rng.standard_normal(shape).astype(dtype)[()] for shape in shapes[:2])
                c = -(a * b)
            with np.errstate(all="ignore"):
                got, wanted = used(a, b, c), in_steps(a, b, c)
            assert got.dtype == dtype
            assert np.shape(got) == np.shape(wanted)
            assert np.array_equal(np.asarray(got).view(word), np.asarray(wanted).view(word))


@pytest.mark.parametrize(("dtype", "in_steps"), [(w[0], w[3]) for w in WAYS])
def test_a_product_that_rounds_twice_is_not_used(
    dtype: type, in_steps: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "fma", lambda a, b, c, _: a * b + c)
    assert not fused.rounds_once.__wrapped__(in_steps, dtype)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fused.OFF, "1")
    assert not fused.rounds_once.__wrapped__(arithmetic._fma_f64, np.float64)
