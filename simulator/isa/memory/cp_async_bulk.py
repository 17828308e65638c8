"""Copies in bulk, by the asynchronous proxy: ``cp.async.bulk`` and ``cp.reduce.async.bulk``.

Their effect is in ``memory/bulk/bulk_copy.py``, their completion in
``races/in_flight/async_copies.py``.
"""

from ..table import register_effect_only
from .load_store import MOVEMENT

_DONE = "mbarrier::complete_tx::bytes"
_IN = f"async! bulk! shared::cta|shared::cluster! global {_DONE}"
_ALL = f"async! bulk! shared::cluster! global {_DONE} multicast::cluster"
_ACROSS = f"async! bulk! shared::cluster! shared::cta {_DONE}"
_OUT = "async! bulk! global! shared::cta! bulk_group"
_BOX = (
    "async! bulk! tensor! {}d! shared::cta|shared::cluster! global! mbarrier::complete_tx::bytes "
)
_BOXES = f"async! bulk! tensor! {{}}d! shared::cluster! global! {_DONE} multicast::cluster "
_THERE = ("and|or|xor .b32", "add .u32|s32|u64", "inc|dec .u32", "min|max .u32|s32")
_SENT = "async! bulk! tensor! {}d! global! shared::cta! bulk_group "
_FETCHED = "async! bulk! prefetch! tensor! {}d! L2! global! "
_REDUCTIONS = (
    "and|or|xor .b32|b64", "add .u32|s32|u64|f32|f64", "inc|dec .u32", "min|max .u32|s32|u64|s64",
    "add noftz .f16|bf16", "min|max .f16|bf16",
)  # fmt: skip
_ANY = "and|or|xor|add|inc|dec|min|max"


def _hinted(modifiers: str, operands: str) -> str:
    """Return a form with and without a cache policy."""
    return f"""
        {modifiers} @90 : = {operands}
        {modifiers} L2::cache_hint @90 : = {operands} policy
    """


def _tensors(modifiers: str, operands: str) -> str:
    """Forms for tensors of one to five axes."""
    return "".join(_hinted(modifiers.format(n), operands.format(n)) for n in range(1, 6))


def _images(modifiers: str, operands: str) -> str:
    """Forms for images of one to three axes, with channels and a number of images."""
    return "".join(_hinted(modifiers.format(n), operands.format(n, n - 2)) for n in (3, 4, 5))


register_effect_only(
    "cp", section=MOVEMENT,
    forms=_hinted("async! bulk! prefetch! L2! global!", "@ sixteens")
    + _tensors(_FETCHED + "tile?", "@{}")
    + _images(_FETCHED + "im2col", "@{} {{pixel{}"),
    later=f"""
        {_FETCHED.format("2")} tile::gather4 L2::cache_hint? : \
            rows of sm_100 (.tile::gather4): use .tile, a row at a time
        {_FETCHED.format("3d|4d|5")} im2col::w|im2col::w::128 L2::cache_hint? : \
            images of sm_100 (.im2col::w): use .im2col
    """,
)  # fmt: skip
register_effect_only(
    "cp", section=MOVEMENT, asynchronous="commit", queue="bulk",
    forms="async! bulk! commit_group! @90 :",
)  # fmt: skip
register_effect_only(
    "cp", section=MOVEMENT, asynchronous="wait", queue="bulk",
    forms="async! bulk! wait_group! read? @90 : = imm",
)  # fmt: skip
register_effect_only(
    "cp", section=MOVEMENT, memory="copy", asynchronous="bulk", queue="transaction",
    forms=_hinted(_IN, "@ @ sixteens @") + _tensors(_BOX + "tile?", "@ @{} @")
    + _images(_BOX + "im2col", "@ @{} @ {{pixel{}")
    + _hinted(_ALL, "@ @ sixteens @ u16") + _tensors(_BOXES + "tile?", "@ @{} @ u16")
    + _images(_BOXES + "im2col", "@ @{} @ {{pixel{} u16")
    + f"{_ACROSS} @90 : = @ @ sixteens @"
    + "".join(f"\nreduce! {_ACROSS} {how} @90 : = @ @ sixteens @" for how in _THERE),
    later=f"""
        {_BOX.format("2")} tile::gather4 multicast::cluster? L2::cache_hint? : \
            rows of sm_100 (.tile::gather4): use .tile, a row at a time
        {_BOX.format("3d|4d|5")} im2col::w|im2col::w::128 multicast::cluster? L2::cache_hint? : \
            images of sm_100 (.im2col::w): use .im2col
    """,
)  # fmt: skip
register_effect_only(
    "cp", section=MOVEMENT, memory="copy", asynchronous="bulk", queue="bulk",
    forms=_hinted(_OUT, "@ @ sixteens")
    + _tensors(_SENT + "tile?", "@{} @")
    + _images(_SENT + "im2col_no_offs", "@{} @")
    + _tensors(f"reduce! {_SENT} {_ANY} tile?", "@{} @")
    + _images(f"reduce! {_SENT} {_ANY} im2col_no_offs", "@{} @")
    + "".join(_hinted(f"reduce! {_OUT} {how}", "@ @ sixteens") for how in _REDUCTIONS),
    later=f"""
        {_OUT} cp_mask L2::cache_hint? : \
            bytes chosen by a mask (.cp_mask), of sm_100: use st.shared and whole units
        {_SENT.format("2")} tile::scatter4 L2::cache_hint? : \
            rows of sm_100 (.tile::scatter4): use .tile, a row at a time
    """,
)  # fmt: skip
