"""The two ways of a fused multiply-add give the same bits, and one that rounds twice is seen."""

from collections.abc import Callable

import numpy as np
import pytest

from simulator.core.geometry import Lanes
from simulator.isa.numerics import arithmetic, fused_multiply_add
from simulator.isa.scalar import fma_chain

WAYS = [(np.float32, np.uint32, arithmetic.fma_f32, arithmetic._fma_f32),
        (np.float64, np.uint64, arithmetic.fma_f64, arithmetic._fma_f64)]  # fmt: skip
SHAPES = [
    [(1,)] * 3, [(2,)] * 3, [(33,)] * 3, [(4096,)] * 3, [(64, 17)] * 3,
    [(64, 1), (1, 17), ()], [(), (5,), (5,)], [(3, 1, 7), (3, 4, 1), (1, 4, 7)], [(), (), ()],
]  # fmt: skip
Way = Callable[[Lanes, Lanes, Lanes], Lanes]


@pytest.mark.slow_cases("float64-uint64-fma_f64-_fma_f64")
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
    monkeypatch.setattr(fused_multiply_add, "fma", lambda a, b, c, _: a * b + c)
    assert not fused_multiply_add.rounds_once.__wrapped__(in_steps, dtype)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fused_multiply_add.OFF, "1")
    assert not fused_multiply_add.rounds_once.__wrapped__(arithmetic._fma_f64, np.float64)


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_a_chain_is_its_products_one_by_one(
    shapes: list[tuple[int, ...]], off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the operands' bits, and where a later product is wider than the first."""
    if off:
        monkeypatch.setattr(fma_chain, "rounds_once", lambda: False)
    rng = np.random.default_rng(6)
    for near in (False, True):

        def drawn(shape: tuple[int, ...], near: bool = near) -> Lanes:
            if near:
                return rng.standard_normal(shape).astype(np.float32)[()]
            bits = rng.integers(0, 2**32, shape, np.uint32)
            return np.asarray(bits, np.uint32).view(np.float32)[()]

        a, b, c = map(drawn, shapes)
        later = [(drawn(shapes[1]), drawn(shapes[0])) for _ in range(3)]
        later += [(drawn((2, *np.broadcast_shapes(*shapes))), drawn(())), (np.negative(a), b)]
        with np.errstate(all="ignore"):
            wanted = arithmetic.fma_f32(a, b, c)
            products = fma_chain.Products(a, b, c)
            for i, (x, y) in enumerate(later):
                wanted = arithmetic.fma_f32(x, y, wanted)
                if i + 1 < len(later):
                    products.add(x, y)
            got = products.last(*later[-1])
        assert np.shape(got) == np.shape(wanted)
        assert np.array_equal(np.asarray(got).view(np.uint32), np.asarray(wanted).view(np.uint32))
