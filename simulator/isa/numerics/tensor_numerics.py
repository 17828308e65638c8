"""The arithmetic of tensor cores, bit for bit: sums of products that are cut off, not rounded.

One output is the sum of K products and an accumulator. A product is exact; its exponent is the
sum of its operands' (a subnormal number has the least exponent of its format, a zero has none).
All of them are cut off toward zero below the largest of the exponents less ``fraction`` bits,
and summed exactly; the sum is cut off to f32, or rounded to f16. It was measured on an H200
(``docs/measured.md``); for other architectures it is the model of the literature.

Arrays have K first and end with what is contiguous, the warps; the others broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.geometry import Lanes
from ..architectures import SumRounding
from . import arithmetic as ieee

_LEAST = np.int16(-6)
NONE = np.int16(-9999)
"""The exponent of a zero: less than that of any product."""
NAN16, NAN32 = np.uint16(0x7FFF), np.uint32(0x7FFFFFFF)
WORDS = {"f32": np.uint32, "f16": np.uint16}
_PIECE = 1 << 15
"""Elements of a result that are worked on at once."""


Part = int | slice | tuple[int | slice, ...]


class Numbers(NamedTuple):
    """Numbers of some format.

    Attributes:
        value: Them exactly; infinities and NaNs are zero here.
        exponent: int16; of zeros ``NONE``.
        special: With infinities and NaNs, float64; ``None`` if there are none.
    """

    value: Lanes
    exponent: Lanes
    special: Lanes | None

    def part(self, at: Part) -> Numbers:
        """Return the numbers of a part."""
        special = None if self.special is None else self.special[at]
        return Numbers(self.value[at], self.exponent[at], special)


class Format(NamedTuple):
    """A floating-point format: its words, their bits, those of the fraction, the bias."""

    word: type[np.uint16 | np.uint32]
    bits: int
    fraction: int
    bias: int


FORMATS = {
    "f16": Format(np.uint16, 16, 10, 15), "bf16": Format(np.uint16, 16, 7, 127),
    "tf32": Format(np.uint32, 32, 23, 127), "f32": Format(np.uint32, 32, 23, 127),
}  # fmt: skip


def _small_floats() -> Lanes:
    """e4m3 as f16, all 256."""
    code = np.arange(256, dtype=np.uint16)
    size, sign = code & np.uint16(0x7F), (code & np.uint16(0x80)) << np.uint16(8)
    value = (size << np.uint16(7)).view(np.float16) * np.float16(256)
    found = value.view(np.uint16) | sign
    return np.where(size == 0x7F, NAN16, found)


_E4M3 = _small_floats()


def decode(words: Lanes, kind: str, own: bool = False) -> Numbers:
    """Return numbers from their bits; ``own``: e4m3 with its own least exponent, not as f16."""
    if own and kind == "e4m3":
        found = decode(words, kind)
        np.maximum(found.exponent, _LEAST, out=found.exponent, where=found.exponent != NONE)
        return found
    if kind == "e4m3":
        words, kind = _E4M3.take(words), "f16"
    elif kind == "e5m2":
        words, kind = words.astype(np.uint16) << np.uint16(8), "f16"
    form = FORMATS[kind]
    if kind == "tf32":
        words = words & np.uint32(0xFFFFE000)
    size = words & form.word((1 << (form.bits - 1)) - 1)
    power = size >> form.word(form.fraction)
    exponent = np.maximum(power, form.word(1)).astype(np.int16) - np.int16(form.bias)
    np.copyto(exponent, NONE, where=size == 0)
    with np.errstate(invalid="ignore"):
        if kind == "f16":
            value: Lanes = words.view(np.float16).astype(np.float32)
        elif kind == "bf16":
            value = (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        else:
            value = words.view(np.float32).astype(np.float64)
        strange = power == (1 << (form.bits - 1 - form.fraction)) - 1
        if not strange.any():
            return Numbers(value, exponent, None)
        special = value.astype(np.float64)
    np.copyto(value, 0, where=strange)
    np.copyto(exponent, NONE, where=strange)
    return Numbers(value, exponent, special)


def floats(
    a: Lanes,
    b: Lanes,
    c: Lanes,
    types: Sequence[str],
    rule: SumRounding,
    there: Lanes | None = None,
) -> Lanes:
    """``c + a @ b`` of floating-point numbers, from bits to bits; types of D, A, B and C.

    ``there``: which elements of A are, if it is sparse; the others are zero.
    """
    out, kind, other, _ = types
    x, y = decode(a, kind, rule.own), decode(b, other, rule.own)
    steps = [slice(k, k + rule.step) for k in range(0, len(a), rule.step)]
    found = np.empty(c.shape, WORDS[out])
    for rows, columns, warps in pieces(c.shape):
        sums = c[rows, columns, warps]
        for step in steps:
            x_part = x.part((step, rows, warps))
            right = y.part((step, columns, warps))
            some = None if there is None else there[step, rows, warps]
            sums = summed(x_part, right, decode(sums, types[3]), rule, out, some)
        found[rows, columns, warps] = sums
    return found


def halves(a: Lanes, b: Lanes, c: Lanes, types: Sequence[str], rule: SumRounding) -> Lanes:
    """8-bit floats where the tensor cores have none (Hopper's ``mma``): f16 instead, in two steps.

    The first has the first two of each four, the second the others.
    """
    first = np.arange(len(a)) % 4 < 2
    return unpacked([(a[part], None, b[part]) for part in (first, ~first)], c, types, rule)


def unpacked(
    parts: Sequence[tuple[Lanes, Lanes | None, Lanes]],
    c: Lanes,
    types: Sequence[str],
    rule: SumRounding,
) -> Lanes:
    """Steps from zero on, of A, which of it are there, and B; C is added at the end."""
    sums = np.zeros(c.shape, c.dtype)
    for a, there, b in parts:
        sums = floats(a, b, sums, types, rule, there)
    with np.errstate(invalid="ignore", over="ignore"):
        if types[0] == "f16":
            found: Lanes = sums.view(np.float16) + c.view(np.float16)
            return np.where(np.isnan(found), NAN16, found.view(np.uint16))
        found = sums.view(np.float32) + c.view(np.float32)
        return np.where(np.isnan(found), NAN32, found.view(np.uint32))


def pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, slice]]:
    """Yield a result's parts, rows and columns and warps, that fit the cache."""
    m, n, warps = shape
    many = min(warps, max(_PIECE // (m * n), 64))
    rows = min(m, max(_PIECE // (n * many), 8))
    columns = min(n, max(_PIECE // (rows * many), 8))
    for i in range(0, m, rows):
        for j in range(0, n, columns):
            for w in range(0, warps, many):
                yield slice(i, i + rows), slice(j, j + columns), slice(w, w + many)


def summed(
    a: Numbers, b: Numbers, c: Numbers, rule: SumRounding, out: str, there: Lanes | None = None
) -> Lanes:
    """Return the truncated sum of one step, as bits."""
    shape, work = c.value.shape, a.value.dtype
    top = c.exponent.copy()
    exponent = np.empty(shape, np.int16)
    for x, y in zip(a.exponent, b.exponent, strict=True):
        np.maximum(top, np.add(x[:, None], y, out=exponent), out=top)
    np.copyto(top, np.int16(0), where=top < -5000)
    shift = np.int16(rule.fraction) - top
    exact = ((shift.astype(np.int64) + 1023) << 52).view(np.float64)
    scale = exact
    if work == np.float32:  # products of f16; where there is none, any scale will do
        scale = ((np.clip(shift, -126, 100).astype(np.int32) + 127) << 23).view(np.float32)
    # Sixteen terms of at most 27 bits, or more of fewer: the sum has 31.
    narrow = len(a.value) << rule.fraction <= 16 << 25
    total = np.zeros(shape, np.int32 if narrow else np.int64)
    product, whole = np.empty(shape, work), np.empty(shape, np.int32)
    for x, y in zip(a.value, b.value, strict=True):
        np.multiply(x[:, None], y, out=product)
        np.multiply(product, scale, out=product)
        np.copyto(whole, product, casting="unsafe")
        np.add(total, whole, out=total)
    result = (total + np.trunc(c.value * exact)) / exact
    special = _special(a, b, c, there)
    if out == "f16":
        return _to_f16(result, special)
    return _to_f32(result, special, rule.fraction_bits)


def _special(a: Numbers, b: Numbers, c: Numbers, there: Lanes | None) -> Lanes | None:
    """float64 that is infinite or NaN where the result is; ``None`` if it is nowhere."""
    if a.special is None and b.special is None and c.special is None:
        return None
    x, y, found = (n.value if n.special is None else n.special for n in (a, b, c))
    with np.errstate(invalid="ignore"):
        for k in range(len(x)):
            product = x[k].astype(np.float64)[:, None] * y[k]
            found = found + (product if there is None else np.where(there[k][:, None], product, 0))
    return found


def _to_f32(x: Lanes, special: Lanes | None, fraction_bits: int) -> Lanes:
    """float64 cut off to f32; too large is infinite."""
    mask = np.int64(-(1 << (52 - fraction_bits)))
    with np.errstate(over="ignore", invalid="ignore"):
        found: Lanes = (x.view(np.int64) & mask).view(np.float64).astype(np.float32)
        tiny = np.abs(x) < 2.0**-126
        if tiny.any():
            np.copyto(found, ieee.narrow(x, "rz"), where=tiny)
        if special is not None:
            np.copyto(found, special.astype(np.float32), where=np.isinf(special))
    words = found.view(np.uint32)
    if tiny.any():
        words &= np.uint32(-(1 << (23 - fraction_bits)) & 0xFFFFFFFF)
    if special is not None:
        np.copyto(words, NAN32, where=np.isnan(special))
    return words


def _to_f16(x: Lanes, special: Lanes | None) -> Lanes:
    """float64 rounded to the bits of f16."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: Lanes = x.astype(np.float16)
        if special is not None:
            np.copyto(found, special.astype(np.float16), where=np.isinf(special))
    words = found.view(np.uint16)
    if special is not None:
        np.copyto(words, NAN16, where=np.isnan(special))
    return words


def small(a: Lanes, b: Lanes, c: Lanes, types: Sequence[str]) -> Lanes:
    """``m8n8k4`` of f16 since Turing: the driver makes of it a few operations of f32."""
    x, y = (decode(n, "f16") for n in (a, b))
    x_values, right = (n.value if n.special is None else n.special for n in (x, y))
    x_values, right = x_values.astype(np.float32)[:, :, None], right.astype(np.float32)[:, None]
    start = (c.view(np.float16) if types[3] == "f16" else c.view(np.float32)).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        if types[0] == "f32":
            sums = np.zeros_like(start)
            for u, v in zip(x_values, right, strict=True):
                sums = ieee.fma_f32(u, v, sums)
            return np.asarray(ieee.canonical(sums + start)).view(np.uint32)
        products = x_values * right
        sums = (products[2] + products[3]) + ((products[0] + products[1]) + start)
        return np.where(np.isnan(sums), NAN16, sums.astype(np.float16).view(np.uint16))


def rounded(sums: Lanes) -> Lanes:
    """Return bits of f32 as the nearest f16's."""
    single = sums.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isnan(single), NAN16, single.astype(np.float16).view(np.uint16))


def doubles(a: Lanes, b: Lanes, c: Lanes, mode: str) -> Lanes:
    """``c + a @ b`` in double precision: fused, one after the other from C on."""
    for x, y in zip(a, b, strict=True):
        x_values, right = (np.broadcast_to(n, c.shape) for n in (x[:, None], y))
        c = ieee.propagate(ieee.fma_f64(x_values, right, c, mode), right, c, x_values)
    return c
