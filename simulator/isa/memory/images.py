"""Textures and surfaces: how their instructions are written.

What they do stands in ``memory/images/textures.py`` and ``memory/images/surfaces.py``.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Instruction

from ..table import Op, register_effect_only, row

TEXTURES, SURFACES = "Texture Instructions", "Surface Instructions"
_AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
OPERATIONS = ("add", "min", "max", "and", "or")
QUERIES = ("width", "height", "depth")
"""What a driver can be asked for of an object; the rest it refuses to compile."""


def coordinates(geometry: str) -> int:
    """Return the number of coordinate operands, including layer and padding."""
    count = _AXES[geometry] + (geometry[0] == "a")
    return 4 if count == 3 else count


def _fetches() -> Iterator[str]:
    """Yield lines for each geometry and type of coordinates, way and offset."""
    for geometry, kind in itertools.product(_AXES, ("f32", "s32")):
        place = f"@{coordinates(geometry)}{'a' * (geometry[0] == 'a')}{kind[0]}"
        count = 4 if _AXES[geometry] == 3 else _AXES[geometry]
        ways: tuple[tuple[str, str], ...] = (
            ("", ""),
            ("level! ", " t"),
            ("grad! ", f" {{slope{count} {{slope{count}"),
        )
        if kind == "s32":
            ways = ways[:1] if geometry[0] != "a" else ()
        for (way, more), offset in itertools.product(ways, ("", f" {{offset{count}")):
            yield f"{way}{geometry} v4 .u32|s32|f32 .{kind} : v:t0|pred? = {place}{more}{offset}"


_CUBE = "cube maps and multisampled textures: use layers, a2d"
_SHAPED = "cube|acube|2dms|a2dms"
_FLAT = "1d|2d|3d|a1d|a2d"
register_effect_only(
    "tex", section=TEXTURES, memory="load", picture="fetch", forms="\n".join(_fetches()),
    later=f"""
        base|level|grad? {_SHAPED} v4 .u32|s32|f32 .s32|f32 : {_CUBE}
        base|level|grad? {_FLAT}|{_SHAPED} v2 .f16x2 .s32|f32 : pairs of halves: use .v4.f32
        base {_FLAT} v4 .u32|s32|f32 .s32|f32 : mipmaps: leave .base out, there is one level
        level|grad? {_FLAT} v4 .u32|s32|f32 .s32 : integer coordinates there: use floats
    """,
)  # fmt: skip
register_effect_only(
    "tld4", section=TEXTURES, memory="load", picture="gather",
    forms="""
        r|g|b|a 2d v4 .u32|s32|f32 .f32 : v:t0|pred? = @2f
        r|g|b|a a2d v4 .u32|s32|f32 .f32 : v:t0|pred? = @4af
        r|g|b|a 2d v4 .u32|s32|f32 .f32 : v:t0|pred? = @2f {offset2
        r|g|b|a a2d v4 .u32|s32|f32 .f32 : v:t0|pred? = @4af {offset2
    """,
    later=f"r|g|b|a cube|acube v4 .u32|s32|f32 .f32 : {_CUBE}",
)  # fmt: skip
register_effect_only(
    "txq", section=TEXTURES, memory="load", picture="size",
    forms=f"{'|'.join(QUERIES)} .b32 : t = @o",
    later="""
        channel_data_type|channel_order|normalized_coords|array_size|num_mipmap_levels|num_samples \
            .b32 : what the driver does not compile: give the kernel that number as a parameter
        filter_mode|addr_mode_0|addr_mode_1|addr_mode_2 .b32 : \
            what the driver does not compile: give the kernel that number as a parameter
        level width|height|depth .b32 : mipmaps: leave .level out, there is one
    """,
)  # fmt: skip
register_effect_only(
    "suq", section=SURFACES, memory="load", picture="surface size",
    forms=f"{'|'.join(QUERIES)} .b32 : t = @o",
    later="""
        channel_data_type|channel_order|array_size|memory_layout .b32 : \
            what the driver does not compile: give the kernel that number as a parameter
    """,
)  # fmt: skip

_CLAMP = "trap|clamp|zero"
_WHERE = [(g, f"@{coordinates(g)}{'a' if g[0] == 'a' else ''}s") for g in _AXES]


def _surfaces(line: str, units: tuple[str, ...]) -> str:
    """Return lines for each geometry and each number of elements."""
    return "\n".join(
        line.format(geometry=geometry, many=many, place=place)
        for (geometry, place), many in itertools.product(_WHERE, units)
    )


_BITS = "", "v2"
_WIDE = *(f"{v} .b8|b16|b32|b64" for v in _BITS), "v4 .b8|b16|b32"
_WORDS = tuple(f"{v} .b32" for v in ("", "v2", "v4"))
_STORED = f"{{geometry}} wb|cg|cs|wt? {{many}} {_CLAMP} : = {{place}} v:t~"
register_effect_only(
    "suld", section=SURFACES, memory="load", picture="surface",
    forms=_surfaces(f"b! {{geometry}} ca|cg|cs|cv? {{many}} {_CLAMP} : v:t~ = {{place}}", _WIDE),
)  # fmt: skip
register_effect_only(
    "sust", section=SURFACES, memory="store", picture="surface",
    forms=_surfaces(f"b! {_STORED}", _WIDE) + "\n" + _surfaces(f"p! {_STORED}", _WORDS),
)  # fmt: skip
register_effect_only(
    "sured", section=SURFACES, memory="atomic", picture="surface",
    forms="\n".join(
        f"b! {how} {geometry} {kinds} {_CLAMP} : = {place} t"
        for geometry, place in _WHERE[:3]
        for how, kinds in (
            ("add", ".u32|s32|u64"), ("min|max", ".u32|s32|u64|s64"), ("and|or", ".b32"),
        )
    ),
    later=f"p! add|min|max|and|or 1d|2d|3d .b32|b64 {_CLAMP} : elements of any format: use sured.b",
)  # fmt: skip


@row("istypep", section=TEXTURES, forms="texref|samplerref|surfref : pred = u64!")
def _istypep(ins: Instruction) -> Op:
    """An object's handle is a number: an H200 says no, whichever it is asked for."""
    return Op(lambda handle: np.bool_(False) & (handle == handle), ("u64",), ("pred",))


class CoordinateShape(NamedTuple):
    """Coordinates of an instruction.

    Attributes:
        axes: Number of axes.
        layered: Whether a layer comes first.
        values: Number of operands.
        floats: Whether they are floats.
    """

    axes: int
    layered: bool
    values: int
    floats: bool


def shape(ins: Instruction) -> CoordinateShape:
    """Return the coordinates of a fetch, a load or a store; none of a query."""
    geometry = next((m for m in ins.modifiers if m in _AXES), "")
    if not geometry:
        return CoordinateShape(0, False, 0, False)
    floats = ins.opcode in ("tex", "tld4") and ins.types[-1] == "f32"
    return CoordinateShape(_AXES[geometry], geometry[0] == "a", coordinates(geometry), floats)


def operation(ins: Instruction) -> str:
    """Return the operation of a reduction."""
    return next((m for m in ins.modifiers if m in OPERATIONS), "") if ins.opcode == "sured" else ""
