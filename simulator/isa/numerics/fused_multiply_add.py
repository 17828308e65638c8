"""The fused multiply-add inside NumPy's complex product, where it was seen to round once.

The imaginary part of ``(a + c j)(1 + b j)`` is ``a*b + c*1``. NumPy's loops for AVX2 and AVX-512
round it once; nobody promises that, so it is tried before it is used.
"""

import functools
import math
import os
import threading
from collections.abc import Callable

import numpy as np

from ...core.geometry import Lanes

OFF = "TILESCOPE_NO_FUSED"
"""Set in the environment to do without."""

_COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


_ROOM = 1 << 16
Wide = np.ndarray[tuple[int, ...], np.dtype[np.complexfloating]]


class ScratchBuffers(threading.local):
    """Arrays of each thread to work in: fresh ones of such a size cost six times the product."""

    def __init__(self) -> None:
        self._flat: dict[type[np.complexfloating], tuple[Wide, Wide]] = {}

    def take(self, kind: type[np.complexfloating], lanes: int) -> tuple[Wide, Wide]:
        """Return buffers for so many ``(a + c j)`` and ``(1 + b j)``, real parts filled in."""
        if lanes > _ROOM:
            return np.empty(lanes, kind), np.ones(lanes, kind)
        if kind not in self._flat:
            self._flat[kind] = np.empty(_ROOM, kind), np.ones(_ROOM, kind)
        return self._flat[kind]


_rooms = ScratchBuffers()


def fma(a: Lanes, b: Lanes, c: Lanes, shape: tuple[int, ...]) -> Lanes:
    """``a * b + c`` of float32 or of float64 that broadcast to ``shape``; NaNs of any kind.

    Two lanes at least: for a single one NumPy has a loop of its own, which rounds twice.
    """
    kind, lanes = _COMPLEX[a.dtype], math.prod(shape)
    factor, right = (x[:lanes].reshape(shape) for x in _rooms.take(kind, lanes))
    factor.real, factor.imag, right.imag = a, c, b
    result: Lanes = np.multiply(factor, right, out=factor).imag.copy()
    return result


@functools.cache
def rounds_once(plain: Callable[[Lanes, Lanes, Lanes], Lanes], dtype: type[np.floating]) -> bool:
    """Whether ``fma`` equals ``plain`` in every bit but a NaN's, here and with this NumPy.

    Tried once a process (some 5 ms) on random, cancelling, half-way, subnormal, huge and
    special operands, at lengths that fill and do not fill the vectors of a processor.
    """
    if os.environ.get(OFF):
        return False
    with np.errstate(all="ignore"):
        return _equal(plain, dtype)


def _equal(plain: Callable[[Lanes, Lanes, Lanes], Lanes], dtype: type[np.floating]) -> bool:
    limits = np.finfo(dtype)
    small, eps, top = limits.smallest_subnormal, limits.eps, limits.max
    edges = [0.0, -0.0, 1 + eps, -1, small, limits.tiny, -top, np.inf]
    a, b, c = (x.ravel() for x in np.meshgrid(*[np.array(edges, dtype)] * 3))
    x, y = np.random.default_rng(1).standard_normal((2, 300)).astype(dtype)
    half_way = x * y * (eps / 2)
    a, b = np.concatenate([a, x, x, x]), np.concatenate([b, y, y, y])
    c = np.concatenate([c, -(x * y), x[::-1], half_way.astype(dtype)])
    wanted = plain(a, b, c)
    word = f"u{wanted.itemsize}"
    for length in (*range(2, 34), len(a)):
        for start in range(0, len(a) - length + 1, 199):
            part = slice(start, start + length)
            got = fma(a[part], b[part], c[part], (length,))
            both_nan = np.isnan(got) & np.isnan(wanted[part])
            if not np.all((got.view(word) == wanted[part].view(word)) | both_nan):
                return False
    return True
