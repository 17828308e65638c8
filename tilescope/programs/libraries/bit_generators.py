"""Sequences of cuRAND's pseudorandom generators, bit for bit.

Sources: XORWOW is G. Marsaglia, "Xorshift RNGs" (2003); MRG32k3a is L'Ecuyer, Simard, Chen and
Kelton (2002); Philox is J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
Seeding and the order of results are those of the cuRAND Library Programming Guide, "Generator
Options", and of ``curand_kernel.h``. Tests compare them with cuRAND's own generator on the host.
"""

import functools
from typing import Any, Protocol

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
_LOW = 0xFFFFFFFF


class BitGenerator(Protocol):
    """States of a generator's subsequences: its lanes."""

    lanes: int
    """Number of subsequences; a result of each is stored in turn."""

    def skip(self, lanes: slice, count: int) -> None:
        """Leave out a number of results of some lanes."""

    def take(self, lanes: slice, count: int) -> Any:
        """Return the next results of some lanes, ``(count, lanes)``."""


# -- XORWOW ------------------------------------------------------------------------------

_WORDS, _BITS = 5, 160
"""State words besides the counter, and their bits."""
_STEP = 362437
"""What the counter (a Weyl sequence) grows by."""


def _xorshift(v: list[Any]) -> list[Any]:
    """Return the next five words of the state."""
    t = v[0] ^ (v[0] >> np.uint32(2))
    last = (v[4] ^ (v[4] << np.uint32(4))) ^ (t ^ (t << np.uint32(1)))
    return [v[1], v[2], v[3], v[4], last]


def _to_bits(words: Any) -> Any:
    """``(n, 5)`` words as ``(n, 160)`` bits."""
    raw = np.ascontiguousarray(words, "<u4").view(np.uint8).reshape(len(words), 4 * _WORDS)
    return np.unpackbits(raw, axis=1, bitorder="little")


def _to_words(bits: Any) -> Any:
    return np.packbits(bits, axis=1, bitorder="little").view("<u4")


def _times(bits: Any, matrix: Any) -> Any:
    """Product over GF(2); sums of at most 160 ones are exact in float32."""
    return (bits.astype(np.float32) @ matrix.astype(np.float32)).astype(np.uint8) & 1


@functools.cache
def _xorwow_power(exponent: int) -> Any:
    """Return the matrix of 2^``exponent`` steps: a row of bits is multiplied from the left."""
    if exponent == 0:
        unit = _to_words(np.eye(_BITS, dtype=np.uint8))
        return _to_bits(np.stack(_xorshift(list(unit.T)), axis=1))
    half = _xorwow_power(exponent - 1)
    return _times(half, half)


class Xorwow:
    """4,096 subsequences, 2^67 results apart."""

    lanes = 4096

    def __init__(self, seed: int) -> None:
        s0, s1 = (seed ^ 0xAAD26B49) & _LOW, (seed >> 32 ^ 0xF7DCEFDD) & _LOW
        t0, t1 = 1099087573 * s0 & _LOW, 2591861531 * s1 & _LOW
        counter = (6615241 + t1 + t0) & _LOW
        start = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
        states = np.array([[word & _LOW for word in start]], np.uint32)
        exponent = 67
        while len(states) < self.lanes:  # each lane is one subsequence further than the last
            ahead = _to_words(_times(_to_bits(states), _xorwow_power(exponent)))
            states, exponent = np.concatenate([states, ahead]), exponent + 1
        self._states = np.ascontiguousarray(states.T)
        self._counters = np.full(self.lanes, counter, np.uint32)

    def skip(self, lanes: slice, count: int) -> None:
        """See ``BitGenerator``."""
        states = self._states[:, lanes].T
        for exponent in range(count.bit_length()):
            if count >> exponent & 1:
                states = _to_words(_times(_to_bits(states), _xorwow_power(exponent)))
        self._states[:, lanes] = states.T
        self._counters[lanes] += np.uint32(count * _STEP & _LOW)

    def take(self, lanes: slice, count: int) -> Any:
        """See ``BitGenerator``."""
        state, counter = list(self._states[:, lanes]), self._counters[lanes]
        found = np.empty((count, len(counter)), np.uint32)
        for row in range(count):
            state = _xorshift(state)
            counter += np.uint32(_STEP)
            np.add(state[4], counter, out=found[row])
        self._states[:, lanes] = state
        return found


# -- MRG32k3a ----------------------------------------------------------------------------

_M1, _M2 = 4294967087, 4294944443
_A1 = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0))
_A2 = ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))


def _power(matrix: Any, exponent: int, modulus: int) -> Any:
    """Return a 3x3 matrix to the power of 2^``exponent``, in Python's whole numbers."""
    made = np.array(matrix, object) % modulus
    for _ in range(exponent):
        made = made.dot(made) % modulus
    return made


class Mrg32k3a:
    """Subsequences 2^76 results apart; results are differences from 1 to m1, int64."""

    def __init__(self, seed: int, lanes: int = 81920) -> None:
        self.lanes = lanes
        x1, x2 = (seed ^ 0x55555555) & _LOW, (seed >> 32 ^ 0xAAAAAAAA) & _LOW
        factors = ((x1, x2, x1), (x2, x1, x2)) if seed else ((1, 1, 1), (1, 1, 1))
        self._states = []
        for some, matrix, modulus in zip(factors, (_A1, _A2), (_M1, _M2), strict=True):
            states = np.array([[factor * 12345 % modulus for factor in some]], object)
            exponent = 76
            while len(states) < lanes:
                ahead = states.dot(_power(matrix, exponent, modulus).T) % modulus
                states, exponent = np.concatenate([states, ahead]), exponent + 1
            self._states.append(np.ascontiguousarray(states[:lanes].T.astype(np.int64)))

    def skip(self, lanes: slice, count: int) -> None:
        """See ``BitGenerator``."""
        for states, matrix, modulus in zip(self._states, (_A1, _A2), (_M1, _M2), strict=True):
            some = states[:, lanes].astype(object)
            for exponent in range(count.bit_length()):
                if count >> exponent & 1:
                    some = _power(matrix, exponent, modulus).dot(some) % modulus
            states[:, lanes] = some.astype(np.int64)

    def take(self, lanes: slice, count: int) -> Any:
        """See ``BitGenerator``."""
        one, two = (list(states[:, lanes]) for states in self._states)
        found = np.empty((count, len(one[0])), np.int64)
        for row in range(count):
            # Products stay below 2^53, so that int64 holds their differences.
            p1 = (1403580 * one[1] - 810728 * one[0]) % _M1
            p2 = (527612 * two[2] - 1370589 * two[0]) % _M2
            one, two = [one[1], one[2], p1], [two[1], two[2], p2]
            np.subtract(p1, p2, out=found[row])
        self._states[0][:, lanes], self._states[1][:, lanes] = one, two
        found[found <= 0] += _M1
        return found


# -- Philox ------------------------------------------------------------------------------

_MULTIPLIERS, _WEYL, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


class Philox:
    """65,536 counters with four words each, the seed's two words as the key."""

    lanes = 65536

    def __init__(self, seed: int) -> None:
        self._key = [seed & _LOW, seed >> 32 & _LOW]
        self._counters = np.zeros(self.lanes, np.uint64)

    def skip(self, lanes: slice, count: int) -> None:
        """See ``BitGenerator``: ``count`` blocks of four words."""
        self._counters[lanes] += np.uint64(count)

    def take(self, lanes: slice, count: int) -> Any:
        """See ``BitGenerator``; ``(4 * count, lanes)``: blocks of four words, in order."""
        found = self.peek(lanes, count)
        self.skip(lanes, count)
        return found

    def peek(self, lanes: slice, count: int) -> Any:
        """Return the numbers of the next ``take`` without advancing the generator."""
        low, subsequence = self._counters[lanes], np.arange(self.lanes, dtype=np.uint64)[lanes]
        blocks = []
        for further in range(count):
            at = low + np.uint64(further)
            zero = np.zeros_like(at)
            blocks.append(_philox([at & _WORD, at >> _HALF, subsequence, zero], list(self._key)))
        return np.concatenate(blocks)


_WORD, _HALF = np.uint64(_LOW), np.uint64(32)


def _philox(c: list[Any], key: list[int]) -> Any:
    """Philox-4x32-10 of counters, four arrays of 32-bit words in uint64."""
    for _ in range(_ROUNDS):
        a, b = (np.uint64(m) * word for m, word in zip(_MULTIPLIERS, (c[0], c[2]), strict=True))
        c = [
            (b >> _HALF) ^ c[1] ^ np.uint64(key[0]), b & _WORD,
            (a >> _HALF) ^ c[3] ^ np.uint64(key[1]), a & _WORD,
        ]  # fmt: skip
        key = [(word + weyl) & _LOW for word, weyl in zip(key, _WEYL, strict=True)]
    return np.stack(c).astype(np.uint32)
