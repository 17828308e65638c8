"""Distributions of cuRAND's host API over its bit generators.

A call visits lanes in turn, from the one after the last. A visit draws some words and gives some
results (``_FORMS``). Bits and uniform numbers equal cuRAND's own bit for bit; normal numbers take a
logarithm, a sine and a cosine, whose last bits may differ.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bit_generators import Mrg32k3a, Philox, Xorwow

XORWOW, MRG32K3A, PHILOX = 101, 121, 161
"""Of ``curandRngType``; 100 is XORWOW, too."""
LEGACY = 103
"""Of ``curandOrdering``; 100 and 101 are the default."""
_2_POW_32, _2_POW_53 = 2.0**-32, 2.0**-53
_MRG_UNIT, _MRG_BITS = 2.3283065498378288e-10, 1.000000048662
"""``MRG32K3A_NORM`` and ``MRG32K3A_BITS_NORM`` of ``curand_kernel.h``."""
_TURN = np.float32(2.3283064e-10 * 6.2831855)
"""``CURAND_2POW32_INV_2PI``: a word to an angle."""


@dataclass(frozen=True)
class _Form:
    """One visit of a lane: the words it draws, and a function of them that gives the results.

    The function takes ``(words, lanes)`` and returns ``(lanes, results)``.
    """

    words: int
    results: int
    of: Callable[[Any], Any]


def _bits(z: Any) -> Any:
    """Return words of MRG32k3a's differences."""
    return (z * _MRG_BITS).astype(np.uint32)


def _uniform(words: Any) -> Any:
    return words.astype(np.float32) * np.float32(_2_POW_32) + np.float32(_2_POW_32 / 2)


def _double(low: Any, high: Any) -> Any:
    """53 bits of two words."""
    z = low.astype(np.uint64) ^ (high.astype(np.uint64) << np.uint64(21))
    return z * _2_POW_53 + _2_POW_53 / 2


def _normal(x: Any, y: Any) -> Any:
    """Return two normal numbers of two words, by Box and Muller."""
    angle = y.astype(np.float32) * _TURN + _TURN / 2
    radius = np.sqrt(np.float32(-2) * np.log(_uniform(x)))
    return np.sin(angle) * radius, np.cos(angle) * radius


def _normal_double(u: Any, v: Any) -> Any:
    radius = np.sqrt(-2 * np.log(u))
    return np.sin(2 * np.pi * v) * radius, np.cos(2 * np.pi * v) * radius


def _side_by_side(*results: Any) -> Any:
    return np.stack(results, axis=-1)


def _pairs(w: Any, of: Callable[[Any, Any], Any], step: int = 2) -> list[Any]:
    return [of(w[i], w[i + 1]) for i in range(0, len(w), step)]


_FORMS: dict[tuple[int, str], _Form] = {
    (XORWOW, "bits"): _Form(1, 1, lambda w: w.T),
    (XORWOW, "uniform"): _Form(1, 1, lambda w: _uniform(w).T),
    (XORWOW, "uniform double"): _Form(2, 1, lambda w: _side_by_side(_double(w[0], w[1]))),
    (XORWOW, "normal"): _Form(2, 2, lambda w: _side_by_side(*_normal(w[0], w[1]))),
    (XORWOW, "normal double"): _Form(
        4, 2, lambda w: _side_by_side(*_normal_double(*_pairs(w, _double)))
    ),
    (MRG32K3A, "bits"): _Form(1, 1, lambda z: _bits(z).T),
    (MRG32K3A, "uniform"): _Form(1, 1, lambda z: (z * _MRG_UNIT).astype(np.float32).T),
    (MRG32K3A, "uniform double"): _Form(1, 1, lambda z: (z * _MRG_UNIT).T),
    (MRG32K3A, "normal"): _Form(2, 2, lambda z: _side_by_side(*_normal(*_bits(z)))),
    (MRG32K3A, "normal double"): _Form(
        2, 2, lambda z: _side_by_side(*_normal_double(*(z * _MRG_UNIT)))
    ),
    (PHILOX, "bits"): _Form(1, 4, lambda w: w.T),
    (PHILOX, "uniform"): _Form(1, 4, lambda w: _uniform(w).T),
    (PHILOX, "uniform double"): _Form(2, 4, lambda w: _side_by_side(*_pairs(w, _double))),
    (PHILOX, "normal"): _Form(
        1, 4, lambda w: _side_by_side(*(n for pair in _pairs(w, _normal) for n in pair))
    ),
    (PHILOX, "normal double"): _Form(
        2, 4,
        lambda w: _side_by_side(*_normal_double(*_pairs(w[:4], _double)),
                                *_normal_double(*_pairs(w[4:], _double))),
    ),
}  # fmt: skip
"""By generator and distribution. Philox draws blocks of four words."""


@dataclass
class RandomNumbers:
    """A generator of cuRAND's host API.

    Attributes:
        kind: ``XORWOW``, ``MRG32K3A`` or ``PHILOX``.
        seed: Its seed.
        offset: Results that are left out at the beginning.
        ordering: Of ``curandOrdering``.
    """

    kind: int
    seed: int = 0
    offset: int = 0
    ordering: int = 101
    _states: Any = field(default=None, repr=False)
    _lane: int = 0
    _part: int = 0

    def restart(self, **settings: int) -> None:
        """Change ``seed``, ``offset`` or ``ordering``; the sequence begins anew."""
        for name, value in settings.items():
            setattr(self, name, value)
        self._states = None

    def draw(self, distribution: str, count: int) -> Any:
        """Return results in the order in which cuRAND stores them: uint32, float32 or float64.

        Args:
            distribution: ``bits``, ``uniform`` or ``normal``; the last two also with `` double``.
            count: How many; normal numbers of XORWOW and MRG32k3a come in pairs.
        """
        form = _FORMS[self.kind, distribution]
        if self._states is None:
            self._begin()
        states, parts, total = self._states, [], 0
        while total < count:
            visits = -(-(count - total + self._part) // form.results)
            lanes = slice(self._lane, min(states.lanes, self._lane + visits))
            if self.kind == PHILOX:
                made = form.of(states.peek(lanes, form.words)).reshape(-1)[self._part :]
            else:
                made = form.of(states.take(lanes, form.words)).reshape(-1)
            made = made[: count - total]
            ended = (self._part + len(made)) // form.results
            if self.kind == PHILOX:
                states.skip(slice(self._lane, self._lane + ended), form.words)
            self._part = (self._part + len(made)) % form.results
            self._lane = (self._lane + ended) % states.lanes
            total += len(made)
            parts.append(made)
        return np.concatenate(parts) if parts else np.zeros(0)

    def _begin(self) -> None:
        if self.kind == XORWOW:
            self._states = Xorwow(self.seed)
        elif self.kind == PHILOX:
            self._states = Philox(self.seed)
        else:
            self._states = Mrg32k3a(self.seed, 4096 if self.ordering == LEGACY else 81920)
        each = 4 if self.kind == PHILOX else 1
        visits, self._part = divmod(self.offset, each)
        rows, self._lane = divmod(visits, self._states.lanes)
        self._states.skip(slice(0, self._states.lanes), rows)
        self._states.skip(slice(0, self._lane), 1)
