"""Texture coordinates and linear filtering, bit for bit as on an H200.

Coordinates, address modes and the filter's 9-bit weights follow the CUDA C++ Programming Guide
("Texture Fetching"); rounding was measured (``docs/textures.md``).
"""

from typing import Any, NamedTuple

import numpy as np

from ...core.geometry import Flat

FRACTION = 21
"""Bits of the fraction of a normalised coordinate; more for sizes of 2**14 and above."""
_ONE = 256
"""The weights of the texels around a place add up to it."""
_GUARD = 4
"""Bits below a float's last that are kept of the largest texel's neighbours."""
_FAR = float(1 << 40)
_SMALLEST = 2.0**-126
_NAN = np.array(0x7FFFFFFF, np.uint32).view(np.float32)


Texels = dict[tuple[int, ...], Flat]
"""Texels around a place: ``(0, 1)`` is the first along x and the second along y."""


class Axis(NamedTuple):
    """One or two texels of each fetch along an axis, with the second's weight in 1/256."""

    first: Flat
    second: Flat
    weight: Flat


def axis(x: Flat, size: int, address: str, normalized: bool, linear: bool, offset: Flat) -> Axis:
    """Return the texels around coordinates (float32, 1-D) plus an offset; -1 in the border."""
    where, turned = _texel(x.astype(np.float64), size, address, normalized)
    if linear:
        fixed = (np.floor(where * _ONE + 0.5) - _ONE // 2).astype(np.int64) + offset * _ONE
        first, weight = fixed >> 8, fixed & 255
        if address == "clamp":
            weight[(fixed < 0) | (fixed > (size - 1) * _ONE)] = 0
    else:
        first = np.floor(where).astype(np.int64) + offset
        weight = np.zeros_like(first)
    one, two = (_addressed(i, size, address, turned) for i in (first, first + 1))
    return Axis(one, two, weight)


def _texel(x: Flat, size: int, address: str, normalized: bool) -> tuple[Flat, Flat]:
    """Return coordinates in texels, and where the axis is mirrored."""
    turned = np.zeros(x.shape, bool)
    x = np.where(np.isinf(x), np.copysign(_FAR, x), x)
    x = np.where(np.isnan(x) | (np.abs(x) < _SMALLEST), 0, x)
    if not normalized:
        return np.clip(x, -_FAR, _FAR), turned
    bits = max(FRACTION, size.bit_length() + 7)
    part = np.ldexp(np.floor(np.ldexp(x, bits)), -bits)
    if address in ("wrap", "mirror"):
        whole = np.floor(part)
        part -= whole
        turned = (whole % 2 == 1) & (address == "mirror")
    return np.clip(part * size, -_FAR, _FAR), turned


def _addressed(index: Flat, size: int, address: str, turned: Flat) -> Flat:
    """Apply the address mode to texel indices."""
    if address == "wrap":
        return index % size
    if address == "border":
        return np.where((index >= 0) & (index < size), index, -1)
    if address == "mirror":
        index = (index + turned * size) % (2 * size)
        index = np.minimum(index, 2 * size - 1 - index)
    return np.clip(index, 0, size - 1)


def _share(weight: Flat, part: Flat) -> Flat:
    return (weight * part + _ONE // 2) >> 8


def weights(x: Flat, *others: Flat) -> Texels:
    """Return the weights of the 2, 4 or 8 texels of each fetch, which sum to 256.

    ``x``: weight of the second texel along x. ``others``: the same along y and z.
    """
    found: Texels = {}
    layers: dict[tuple[int, ...], Flat] = {(): np.full_like(x, _ONE)}
    if len(others) > 1:
        layers = {(0,): _ONE - others[1], (1,): others[1]}
    for z, whole in layers.items():
        right = _share(whole, x)
        for side, part in ((0, whole - right), (1, right)):
            if not others:
                found[side,] = part
                continue
            # The corners with the same place along x and y are rounded, the others get the rest.
            same = _share(part, others[0] if side else _ONE - others[0])
            found[(side, side, *z)] = same
            found[(side, 1 - side, *z)] = part - same
    return found


def floats(texels: Texels, along: tuple[Flat, ...], bits: int) -> Flat:
    """Filter floating-point texels: float32 with a mantissa of ``bits``, 24 or 11.

    ``along``: arguments of ``weights``.
    """
    parts, places = weights(*along), list(texels)
    lowest = -125 if bits == 24 else -13
    sums: list[Flat] = []
    tops: list[Flat] = []
    for layer in sorted({place[2:] for place in places}):
        those = [place for place in places if place[2:] == layer]
        used = np.stack([np.where(parts[p] > 0, texels[p], np.float32(0)) for p in those])
        used = np.where(np.isfinite(used), used, 0).astype(np.float64)
        if bits == 24:
            used[np.abs(used) < _SMALLEST] = 0
        top = np.where(used == 0, -200, np.frexp(used)[1]).max(axis=0)
        aligned = np.trunc(np.ldexp(used, bits + _GUARD - top))
        sums.append((aligned * np.stack([parts[p] for p in those])).sum(axis=0))
        tops.append(top)
    top = np.maximum.reduce(tops)
    total = np.zeros(top.shape)
    for some, its in zip(sums, tops, strict=True):
        total += np.floor(np.ldexp(some, its - top))
    scale = top - bits - _GUARD - 8
    keep = np.maximum(np.frexp(total)[1], lowest - scale) - bits
    size = np.ldexp(np.floor(np.abs(np.ldexp(total, -keep)) + 0.5), keep + scale)
    if bits == 24:
        size[size < _SMALLEST] = 0
    minus = np.stack([np.signbit(texels[p]) | (parts[p] == 0) for p in places]).all(axis=0)
    result: Flat = np.copysign(size, np.where(total == 0, 0.5 - minus, total)).astype(np.float32)
    # Infinities and NaN count even where their weight is rounded to nothing.
    odd = [
        ~np.isfinite(texels[p])
        & np.all([w > 0 for w, side in zip(along, p, strict=True) if side], axis=0)
        for p in places
    ]
    if np.any(odd):
        found = np.sum([np.where(o, texels[p], 0) for o, p in zip(odd, places, strict=True)], 0)
        found = np.where(np.isnan(found), _NAN, found)
        result[np.any(odd, axis=0)] = found[np.any(odd, axis=0)]
    return result


def integers(texels: Texels, along: tuple[Flat, ...], dtype: np.dtype[Any]) -> Flat:
    """Filter 8- or 16-bit integer texels that are read as normalised floats: float32."""
    full = 32767 if dtype.kind == "i" else 65535
    total = np.sum([_wide(texels[p], dtype) * w for p, w in weights(*along).items()], 0) / _ONE
    result: Flat = (np.clip(np.floor(total + 0.5), -full, full) / full).astype(np.float32)
    return result


def _wide(texels: Flat, dtype: np.dtype[Any]) -> Flat:
    """Extend texels to the filter's 16 bits."""
    values = texels.astype(np.float64)
    if dtype.itemsize == 2:
        return values
    wide: Flat = values * 257 if dtype.kind == "u" else values * 258 + np.floor(values / 16) / 8
    return wide


def normalised(texels: Flat) -> Flat:
    """Convert 8- or 16-bit integers to float32 in [0, 1] or [-1, 1]."""
    full = np.iinfo(texels.dtype).max
    return np.maximum(texels.astype(np.float64) / full, -1).astype(np.float32)
