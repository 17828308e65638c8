"""What tensor cores do, slowly: one output at a time, on Python integers."""

import functools
from collections.abc import Sequence

from tests.simulator.isa.floats import FORMATS, Format

F8 = {"e4m3": Format(8, 4, 0x7F), "e5m2": Format(8, 3, 0x7F)}
LEAST = {"e4m3": -6, "e5m2": -14}
Pair = tuple[int, int]


@functools.cache
def widened(kind: str, x: int) -> int:
    """An 8-bit float as f16, exactly."""
    form, f16 = F8[kind], FORMATS["f16"]
    if kind == "e5m2":
        return x << 8
    if form.magnitude(x) == form.nan:
        return f16.nan
    sign = f16.sign_bit if form.negative(x) else 0
    return f16.encode(form.value(x), form.lowest) if form.magnitude(x) else sign


@functools.cache
def number(kind: str, x: int) -> tuple[int, int]:
    """A finite number as an integer of units of ``2**power``."""
    form = FORMATS["f32" if kind == "tf32" else kind]
    if not form.magnitude(x):
        return 0, 0
    field = max(form.magnitude(x) >> (form.digits - 1), 1)
    return form.value(x) >> (field - 1), form.lowest + field - 1


def special(kind: str, pairs: Sequence[Pair], out: str, c: int) -> int | None:
    """NaN or an infinity, if that is what comes out."""
    form, to = FORMATS["f32" if kind == "tf32" else kind], FORMATS[out]
    signs = set()
    for a, b in pairs:
        if form.is_nan(a) or form.is_nan(b):
            return to.nan
        if form.is_inf(a) or form.is_inf(b):
            if not (form.magnitude(a) and form.magnitude(b)):
                return to.nan
            signs.add(form.negative(a) != form.negative(b))
    if to.is_nan(c):
        return to.nan
    if to.is_inf(c):
        signs.add(to.negative(c))
    if len(signs) > 1:
        return to.nan
    return (to.inf | to.sign_bit * signs.pop()) if signs else None


def summed(
    kind: str,
    pairs: Sequence[Pair],
    out: str,
    c: int,
    fraction: int,
    kept: int = 23,
    least: Pair = (-999, -999),
) -> int:
    """One step: all products and ``c`` cut off at ``fraction`` bits, summed and cut off again.

    ``least``: the least exponents of A's and B's numbers, where f16 has less.
    """
    if kind == "tf32":
        pairs = [(a & ~0x1FFF, b & ~0x1FFF) for a, b in pairs]
    found = special(kind, pairs, out, c)
    if found is not None:
        return found
    digits, to = FORMATS["f32" if kind == "tf32" else kind].digits, FORMATS[out]
    terms = []
    for a, b in pairs:
        (x, p), (y, q) = number(kind, a), number(kind, b)
        if x and y:
            top = max(p + digits - 1, least[0]) + max(q + digits - 1, least[1])
            terms.append((x * y, p + q, top))
    x, p = number(out, c)
    if x:
        terms.append((x, p, p + to.digits - 1))
    if not terms:
        return 0
    unit = max(top for _, _, top in terms) - fraction
    total = 0
    for x, p, _ in terms:
        size = abs(x) << (p - unit) if p >= unit else abs(x) >> (unit - p)
        total += size if x > 0 else -size
    if not total:
        return 0
    if out == "f16":
        return to.encode(total, unit)
    if total.bit_length() + unit > 128:
        return to.inf | (to.sign_bit if total < 0 else 0)
    return to.encode(total, unit, "rz") & ~((1 << (23 - kept)) - 1)


def steps(
    kind: str,
    pairs: Sequence[Pair],
    out: str,
    c: int,
    step: int,
    fraction: int,
    kept: int = 23,
    least: Pair = (-999, -999),
) -> int:
    """One step after the other, the result in place of ``c``."""
    for k in range(0, len(pairs), step):
        c = summed(kind, pairs[k : k + step], out, c, fraction, kept, least)
    return c


def unpacked(pairs: Sequence[Pair], out: str, c: int) -> int:
    """Hopper's ``mma`` on 8-bit floats, which are f16 now."""
    first = [pair for k, pair in enumerate(pairs) if k % 4 < 2]
    second = [pair for k, pair in enumerate(pairs) if k % 4 >= 2]
    found = summed("f16", second, out, summed("f16", first, out, 0, 25), 25)
    return FORMATS[out].add(found, c)


def small(pairs: Sequence[Pair], out: str, c: int, c_kind: str) -> int:
    """``m8n8k4`` of f16 since Turing."""
    f16, f32 = FORMATS["f16"], FORMATS["f32"]
    wide = [(f16.convert(a, f32), f16.convert(b, f32)) for a, b in pairs]
    c = FORMATS[c_kind].convert(c, f32) if c_kind == "f16" else c
    if out == "f32":
        found = 0
        for a, b in wide:
            found = f32.multiply_add(a, b, found)
        return f32.add(found, c)
    p, q, r, s = (f32.multiply(a, b) for a, b in wide)
    return f32.convert(f32.add(f32.add(r, s), f32.add(f32.add(p, q), c)), f16)


def doubles(pairs: Sequence[Pair], c: int, mode: str) -> int:
    """Fused, one after the other."""
    f64 = FORMATS["f64"]
    for a, b in pairs:
        nan = next((x for x in (b, c, a) if f64.is_nan(x)), None)
        c = f64.multiply_add(a, b, c, mode) if nan is None else nan | 1 << 51
    return c


def integers(kinds: Sequence[str], pairs: Sequence[Pair], c: int, clamped: bool, how: str) -> int:
    """Exact, then wrapped or clamped to 32 bits; ``how``: ``xor`` or ``and`` of single bits."""

    def signed(kind: str, x: int) -> int:
        bits = int(kind[1:])
        return x - (1 << bits) if kind[0] == "s" and x >> (bits - 1) else x

    total = signed("s32", c)
    for a, b in pairs:
        if kinds[0] == "b1":
            total += a ^ b if how == "xor" else a & b
        else:
            total += signed(kinds[0], a) * signed(kinds[1], b)
    if clamped:
        total = min(max(total, -(1 << 31)), (1 << 31) - 1)
    return total & 0xFFFFFFFF
