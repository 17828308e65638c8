"""Programs that fetch texels or access surfaces, what they are run on, and what comes of it."""

import functools
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernels import Kernel, Surface, Texture
from kernels.arguments.texture import ADDRESSES, FILTERS, READS
from tests.support.paths import GROUND_TRUTH

LANES = 256
SHAPES = {"1d": (13,), "2d": (7, 13), "3d": (5, 7, 13), "a1d": (3, 13), "a2d": (3, 7, 13)}
PLACES = {
    "1d": "{%a}", "2d": "{%a, %b}", "3d": "{%a, %b, %c, %c}", "a1d": "{%d, %a}",
    "a2d": "{%d, %a, %b, %b}",
}  # fmt: skip
"""Coordinates: x in ``%a``, y in ``%b``, z in ``%c``; a layer in ``%d``."""
TYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32")
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42, 2.0**31 - 1, -(2.0**31), 1e30, 65536.0,
       0.5, 1.0, -1.0, 1e9)  # fmt: skip
BORDER = (0.25, 0.75, -1.5, 3.0)
SEEN = GROUND_TRUTH / "textures_h200.json"
"""CRC-32 of what an H200 gave, by the name of a case (those it was asked)."""
Launch = Callable[..., Any]


def program(code: str, results: int = 4, target: str = "sm_90") -> Kernel:
    """Each thread runs some code on its ``%a`` to ``%h`` of eight words, and keeps ``%o0`` ..."""
    loads = "".join(f"ld.global.b32 %{r}, [%in+{4 * i}]; " for i, r in enumerate("abcdefgh"))
    keeps = "".join(f"st.global.b32 [%out+{4 * i}], %o{i}; " for i in range(results))
    return Kernel.from_ptx(
        f""".version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 p_object, .param .u64 p_in, .param .u64 p_out) {{
    .reg .b64 %object, %in, %out, %wide; .reg .b32 %a, %b, %c, %d, %e, %f, %g, %h, %n, %o<8>;
    .reg .b16 %s<4>; .reg .pred %p;
    ld.param.u64 %object, [p_object]; ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];
    mov.u32 %n, %tid.x; mul.wide.u32 %wide, %n, 32; add.u64 %in, %in, %wide;
    mul.wide.u32 %wide, %n, {4 * results}; add.u64 %out, %out, %wide;
    {loads}
    {code}
    {keeps}
    ret; }}
""",
        "k",
    )


def ran(launch: Launch, code: str, made: Any, words: Any, results: int = 4) -> Any:
    """What each thread keeps, ``(threads, results)`` words."""
    out = np.zeros((len(words), results), np.uint32)
    given = np.zeros((len(words), 8), np.uint32)
    given[:, : words.shape[1]] = words
    launch(program(code, results), grid=1, block=len(words), args=[made, given, out])
    return out


def texels(dtype: str, shape: tuple[int, ...], channels: int, rng: np.random.Generator) -> Any:
    """An array of random texels, the extreme ones among them."""
    full = (*shape, channels) if channels > 1 else shape
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(full).astype(dtype)
    ends = np.iinfo(dtype)
    found = rng.integers(ends.min, ends.max, full, endpoint=True).astype(dtype)
    found.flat[:4] = [ends.min, ends.max, ends.min + 1, 0]
    return found


@functools.cache
def coordinates(geometry: str, normalized: bool) -> Any:
    """Words for ``%a`` to ``%d``: inside and outside, at ties, huge, and no numbers."""
    shape, layered = SHAPES[geometry], geometry[0] == "a"
    rng, columns, count = np.random.default_rng(100), [], 4 * LANES
    for size in shape[::-1][: len(shape) - layered]:
        x, kind = rng.uniform(-1.5 * size, 2.5 * size, count), rng.random(count)
        x = np.where(kind < 0.3, np.round(x * 512) / 512, x)
        x = np.where(kind < 0.2, np.round(x * 2) / 2, x)
        near = np.round(x * 2) / 2 + rng.choice([1e-6, -1e-6, 2e-4, -2e-4], count)
        x = np.where(kind < 0.1, near, x)
        x = x / size if normalized else x
        far = rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-30, 40, count)
        x = np.where(kind > 0.93, far, x)
        x = np.where(kind > 0.97, rng.choice(ODD, count), x)
        columns.append(x.astype(np.float32).view(np.uint32))
    layer = np.random.default_rng(101).integers(-2, 6, count).astype(np.int32)
    layer[:4] = [2**31 - 1, -(2**31), 65536, -1]
    columns += [np.zeros(count, np.uint32)] * (3 - len(columns))
    return np.stack([*columns, layer.view(np.uint32)], 1)[::4]


MOVES = {
    "1d": "{-3}", "2d": "{5, -8}", "3d": "{-2, 7, 1, 0}", "a1d": "{7}", "a2d": "{-7, 3}",
}  # fmt: skip
"""Offsets of texels."""


def fetched(launch: Launch, made: Texture, geometry: str, code: str = "", move: str = "") -> Any:
    """What fetches of a texture give, ``(LANES, 4)`` words; ``move``: by an offset."""
    kind = np.dtype(made.array.dtype).kind
    result = (
        "f32" if kind == "f" or made.read == "normalized" else f"{'s' if kind == 'i' else 'u'}32"
    )
    code = (
        code
        or f"tex.{geometry}.v4.{result}.f32 {{%o0, %o1, %o2, %o3}}, "
        f"[%object, {PLACES[geometry]}]{move and ', '}{move};"
    )
    return ran(launch, code, made, coordinates(geometry, made.normalized))


def cases() -> Iterator[tuple[str, str, Texture]]:
    """Names, geometries and textures: all address modes, filters and ways to read."""
    rng = np.random.default_rng(7)
    for geometry, shape in SHAPES.items():
        for dtype, channels in itertools.product(TYPES, (1, 2, 4)):
            if geometry != "2d" and dtype not in ("uint8", "int16", "float32"):
                continue
            array = texels(dtype, shape, channels, rng)
            for address, filter, normalized, read in itertools.product(
                ADDRESSES, FILTERS, (False, True), READS
            ):
                edge = BORDER if array.dtype.kind == "f" or read == "normalized" else (0.0,) * 4
                options = {"layered": geometry[0] == "a", "border": edge, "read": read}
                try:
                    made = Texture(array, filter, address, normalized, channels=channels, **options)
                except ValueError:
                    continue
                how = "normalized" if normalized else "texels"
                yield (
                    f"{geometry} {dtype} x {channels} {filter} {address} {how} {read}",
                    geometry,
                    made,
                )


def inexact(name: str) -> float:
    """How far results may be from an H200's: none, or so much of the largest texel."""
    geometry, dtype, *_ = name.split()
    if "linear" not in name:
        return 0
    if dtype == "int8":
        return 1.01 / 32767
    return (
        2e-3
        if geometry == "3d" and dtype == "float16"
        else 4e-7 * (geometry == "3d" and dtype == "float32")
    )


def crc(found: Any) -> int:
    """Of results, all NaN alike."""
    return zlib.crc32(np.ascontiguousarray(found).tobytes())


def seen() -> dict[str, int]:
    """What an H200 gave."""
    return dict(json.loads(SEEN.read_text()))


SURFACE_PLACES = {
    "1d": "{%e}", "2d": "{%e, %b}", "3d": "{%e, %b, %c, %c}", "a1d": "{%d, %e}",
    "a2d": "{%d, %e, %b, %b}",
}  # fmt: skip


def surface(geometry: str, dtype: str, channels: int) -> Surface:
    """A surface of random texels."""
    array = texels(dtype, SHAPES[geometry], channels, np.random.default_rng(3))
    return Surface(array, channels=channels, layered=geometry[0] == "a")
