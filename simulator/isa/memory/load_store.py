"""Loads, stores and atomics: how they are written.

What they do stands in ``memory``.
"""

import itertools
import re

from ..table import register_effect_only

MOVEMENT = "Data Movement and Conversion Instructions"
PARALLEL = "Parallel Synchronization and Communication Instructions"

_SCOPE = "cta|cluster|gpu|sys"
_L1 = "|".join(
    f"L1::{how}"
    for how in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
)
_L2 = "L2::64B|L2::128B|L2::256B?"
_HINTED = "L2::cache_hint"
_SHARED = "shared|shared::cta|shared::cluster"
_8_16 = "b8|u8|s8|b16|u16|s16"
_32 = "b32|u32|s32|f32"
_64 = "b64|u64|s64|f64"
_ELEMENT = f".{_8_16}|{_32}|{_64}"
_WIDTHS = (f"{_ELEMENT}", f"v2 {_ELEMENT}", f"v4 .{_8_16}|{_32}", f"v8 .{_8_16}")
_128 = ".b128 @70"
_PRIORITY = "L2::evict_first|L2::evict_last|L2::evict_normal?"
_WIDER = (f"{_PRIORITY} v4 .{_64} @100", f"{_PRIORITY} v8 .{_32} @100")


def _access(ways: list[str], operands: str) -> str:
    """Return lines for each way to reach memory, for each width, with and without a cache hint."""
    lines = [f"{way} {width} : {operands}" for way, width in itertools.product(ways, _WIDTHS)]
    lines += [f"{re.sub(r'param(::[a-z]+)?[|]', '', way)} {_128} : {operands}" for way in ways]
    for way in (way for way in ways if "global" in way):
        lines += [f"{way} {width} : {operands}" for width in _WIDER]
        if "volatile" not in way:
            lines += [f"{way} {_HINTED} {x} : {operands} policy" for x in (*_WIDTHS, _128, *_WIDER)]
    return "\n".join(lines)


register_effect_only(
    "ld", section=MOVEMENT, memory="load",
    forms=_access(
        [
            f"weak? const|local|param|param::entry|param::func|{_SHARED} ca|cg|cs|lu|cv?",
            f"weak? global? ca|cg|cs|lu|cv|{_L1}? {_L2}",
            f"volatile global? {_L2}",
            f"volatile {_SHARED}",
            f"relaxed|acquire {_SCOPE} global? {_L1}? {_L2}",
            f"relaxed|acquire {_SCOPE} {_SHARED}",
            f"global nc ca|cg|cs|{_L1}? {_L2}",
        ],
        "v:t~ = @",
    )
    + f"\nmmio relaxed sys global? {_ELEMENT}|b128 : t~ = @",
)  # fmt: skip
register_effect_only(
    "ldu", section=MOVEMENT, memory="load",
    forms=f"""
        global? .{_8_16}|{_32}|{_64} : v:t~ = @
        global? v2 .{_8_16}|{_32}|{_64} : v:t~ = @
        global? v4 .{_8_16}|{_32} : v:t~ = @
        global? {_128} : t~ = @
    """,
)  # fmt: skip
register_effect_only(
    "st", section=MOVEMENT, memory="store",
    forms=_access(
        [
            f"weak? local|param|param::func|{_SHARED} wb|cg|cs|wt?",
            f"weak? global? wb|cg|cs|wt|{_L1}?",
            "volatile global?",
            f"volatile {_SHARED}",
            f"relaxed|release {_SCOPE} global? {_L1}?",
            f"relaxed|release {_SCOPE} {_SHARED}",
        ],
        "= @ v:t~",
    )
    + f"\nmmio relaxed sys global? {_ELEMENT}|b128 : = @ t~",
    later=f"""
        weak? param|param::func .b128 : parameters of 128 bits: use .v2.b64
        async! mmio? release {_SCOPE} global? {_ELEMENT} : \
            asynchronous stores to global memory, of sm_100: use st.release
        bulk! weak? shared::cta? : shared memory filled in bulk, of sm_100: use st.shared
    """,
)  # fmt: skip

_SEMANTICS = f"relaxed|acquire|release|acq_rel? {_SCOPE}?"
_RED = f"relaxed|release? {_SCOPE}?"
_COMBINE = """
    {0} and|or|xor .b32|b64 : {1} t
    {0} add .u32|s32|u64|f32|f64 : {1} t
    {0} inc|dec .u32 : {1} t
    {0} min|max .u32|s32|u64|s64 : {1} t
    {0} add noftz .f16|f16x2 : {1} t
    {0} add noftz .bf16|bf16x2 @90 : {1} t
"""
_EXCHANGE = """
    {0} exch .b32|b64 : {1} t
    {0} exch .b128 @90 : {1} t
"""
_VECTORS = """
    {0} add v2|v4 .f32 @90 : {1} v:t
    {0} add|min|max noftz v2|v4|v8 .f16|bf16 @90 : {1} v:t
    {0} add|min|max noftz v2|v4 .f16x2|bf16x2 @90 : {1} v:t
"""


def _hinted(lines: str, way: str, operands: str, spaces: str = f"global|{_SHARED}?") -> str:
    """Return the forms, and those with a cache hint, which have one more source."""
    plainly = lines.format(f"{way} {spaces}", operands)
    hinted = lines.format(f"{way} global? {_HINTED}", operands).splitlines()
    return plainly + "\n".join(f"{line} policy" for line in hinted if line.strip())


register_effect_only(
    "atom", section=PARALLEL, memory="atomic",
    forms=_hinted(_COMBINE + _EXCHANGE, _SEMANTICS, "t* = @")
    + f"\n{_SEMANTICS} global|{_SHARED}? cas .b16|b32|b64 : t* = @ t t"
    + f"\n{_SEMANTICS} global|{_SHARED}? cas .b128 @90 : t* = @ t t\n"
    + _hinted(_VECTORS, _SEMANTICS, "v:t* = @", "global?"),
)  # fmt: skip
register_effect_only(
    "red", section=PARALLEL, memory="atomic",
    forms=_hinted(_COMBINE, _RED, "= @") + "\n" + _hinted(_VECTORS, _RED, "= @", "global?"),
)  # fmt: skip

_DONE = "mbarrier::complete_tx::bytes"
register_effect_only(
    "st", section=MOVEMENT, memory="store", asynchronous="store", queue="transaction",
    forms=f"""
        async! weak? shared::cluster {_DONE} .b32|b64|u32|u64|s32|s64|f32|f64 @90 : = @ t @
        async! weak? shared::cluster {_DONE} v2 .b32|b64|u32|u64|s32|s64|f32|f64 @90 : = @ v:t @
        async! weak? shared::cluster {_DONE} v4 .b32|u32|s32|f32 @90 : = @ v:t @
    """,
    later=f"async! weak? {_DONE} v2|v4? .b32|b64|u32|u64|s32|s64|f32|f64 : "
    "generic addresses: use .shared::cluster",
)  # fmt: skip
register_effect_only(
    "red", section=PARALLEL, memory="atomic", asynchronous="store", queue="transaction",
    forms="\n".join(
        f"async! relaxed cluster shared::cluster {_DONE} {how} @90 : = @ t @"
        for how in ("inc|dec .u32", "min|max .u32|s32", "add .u32|s32|u64|s64", "and|or|xor .b32")
    ),
    later=f"async! relaxed cluster {_DONE} inc|dec|min|max|add|and|or|xor .b32|u32|s32|u64 : "
    "generic addresses: use .shared::cluster",
)  # fmt: skip

register_effect_only(
    "prefetch", section=MOVEMENT,
    forms="""
        global|local? L1|L2 : = @
        global? L2::evict_last|L2::evict_normal : = @
        param|const? tensormap @90 : = @
    """,
)  # fmt: skip
register_effect_only("prefetchu", section=MOVEMENT, forms="L1 : = @")
register_effect_only("discard", section=MOVEMENT, forms="global? L2 : = @ 128")
register_effect_only("applypriority", section=MOVEMENT, forms="global? L2::evict_normal : = @ 128")
