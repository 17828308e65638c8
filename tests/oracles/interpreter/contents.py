"""Which bits of a result other content of the operands' undefined bits changes: tried out."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.oracles.interpreter.values import mask

Bits = tuple[int, ...]
_TRIES = 6
"""Random contents, beside the ones that differ in a bit from the extremes."""


def spread(fn: Callable[..., Any], values: Bits, undefined: Bits, widths: Bits) -> Bits:
    """Which bits of a function's results some content of the operands' undefined bits changes.

    Args:
        fn: Gives a number, or a tuple of them.
        values: The operands; ``undefined``: their undefined bits.
        widths: Bits of each result.
    """
    if not any(undefined):
        return (0,) * len(widths)

    def results(*given: int) -> Bits:
        found = fn(*given)
        return found if isinstance(found, tuple) else (found,)

    usual = results(*values)
    found = [0] * len(widths)
    whole = [mask(width) for width in widths]
    for other in _contents(values, undefined):
        for i, (new, old) in enumerate(zip(results(*other), usual, strict=True)):
            found[i] |= (new ^ old) & whole[i]
        if found == whole:
            break
    return tuple(found)


def _contents(values: Bits, undefined: Bits) -> Iterator[Bits]:
    """Other operands: the extremes, what differs from those in a bit, equal ones, and any."""
    places = [(i, 1 << b) for i, bits in enumerate(undefined) for b in range(64) if bits >> b & 1]
    low = tuple(v & ~u for v, u in zip(values, undefined, strict=True))
    high = tuple(v | u for v, u in zip(values, undefined, strict=True))
    yield low
    yield high
    for i, bits in enumerate(undefined):
        for j, other in enumerate(values):
            if bits and i != j:
                for near in (other, other + 1, other - 1):
                    yield _with(values, i, values[i] & ~bits | near & bits)
                    yield _with(low, i, values[i] & ~bits | near & bits)
                    yield _with(high, i, values[i] & ~bits | near & bits)
                if undefined[j]:  # the two meet in what both of them may be
                    one = values[i] & ~bits | other & bits
                    for near in (one, one + 1, one - 1):
                        met = _with(values, i, one)
                        yield _with(met, j, other & ~undefined[j] | near & undefined[j])
    for base in (low, high, values):
        for i, bit in places:
            yield _with(base, i, base[i] ^ bit)
    for i, bits in enumerate(undefined):  # one operand's extremes with the other's
        yield _with(low, i, high[i])
        yield _with(high, i, low[i])
        for _, bit in places:
            yield _with(low, i, high[i] ^ bit & bits)
            yield _with(high, i, low[i] ^ bit & bits)
    rng = random.Random(hash((values, undefined)))
    for _ in range(_TRIES):
        yield tuple(
            v & ~u | rng.getrandbits(64) & u for v, u in zip(values, undefined, strict=True)
        )


def _with(operands: Bits, i: int, value: int) -> Bits:
    return (*operands[:i], value, *operands[i + 1 :])
