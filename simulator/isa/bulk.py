"""Copies in bulk, by the asynchronous proxy: ``cp.async.bulk`` and ``cp.reduce.async.bulk``.

What they do stands in ``memory/bulk.py``; when they are done, in ``races/copies.py``.
"""

from .movement import MOVEMENT
from .table import plain

_DONE = "mbarrier::complete_tx::bytes"
_IN = f"async! bulk! shared::cta|shared::cluster! global {_DONE}"
_ALL = f"async! bulk! shared::cluster! global {_DONE} multicast::cluster"
_ACROSS = f"async! bulk! shared::cluster! shared::cta {_DONE}"
_OUT = "async! bulk! global! shared::cta! bulk_group!"
_BOX = (
    "async! bulk! tensor! {}d! shared::cta|shared::cluster! global! "
    "mbarrier::complete_tx::bytes tile?"
)
_BOXES = f"async! bulk! tensor! {{}}d! shared::cluster! global! {_DONE} tile? multicast::cluster"
_THERE = ("and|or|xor .b32", "add .u32|s32|u64", "inc|dec .u32", "min|max .u32|s32")
_REDUCTIONS = (
    "and|or|xor .b32|b64", "add .u32|s32|u64|f32|f64", "inc|dec .u32", "min|max .u32|s32|u64|s64",
)  # fmt: skip


def _hinted(modifiers: str, operands: str) -> str:
    """A form with and without a cache policy."""
    return f"""
        {modifiers} @90 : = {operands}
        {modifiers} L2::cache_hint @90 : = {operands} policy
    """


def _tensors(modifiers: str, operands: str) -> str:
    """Forms for tensors of one to five axes."""
    return "".join(_hinted(modifiers.format(n), operands.format(n)) for n in range(1, 6))


plain(
    "cp", section=MOVEMENT,
    forms=_hinted("async! bulk! prefetch! L2! global!", "@ i32")
    + _tensors("async! bulk! prefetch! tensor! {}d! L2! global! tile?", "@{}"),
)  # fmt: skip
plain(
    "cp", section=MOVEMENT, asynchronous="commit", queue="bulk",
    forms="async! bulk! commit_group! @90 :",
)  # fmt: skip
plain(
    "cp", section=MOVEMENT, asynchronous="wait", queue="bulk",
    forms="async! bulk! wait_group! read? @90 : = imm",
)  # fmt: skip
plain(
    "cp", section=MOVEMENT, memory="copy", asynchronous="bulk", queue="transaction",
    forms=_hinted(_IN, "@ @ i32 @") + _tensors(_BOX, "@ @{} @")
    + _hinted(_ALL, "@ @ i32 @ b16") + _tensors(_BOXES, "@ @{} @ b16")
    + f"{_ACROSS} @90 : = @ @ i32 @"
    + "".join(f"\nreduce! {_ACROSS} {how} @90 : = @ @ i32 @" for how in _THERE),
)  # fmt: skip
plain(
    "cp", section=MOVEMENT, memory="copy", asynchronous="bulk", queue="bulk",
    forms=_hinted(_OUT, "@ @ i32")
    + _tensors("async! bulk! tensor! {}d! global! shared::cta! bulk_group tile?", "@{} @")
    + "".join(_hinted(f"reduce! {_OUT} {how}", "@ @ i32") for how in _REDUCTIONS),
    later=f"""
        {_OUT} cp_mask L2::cache_hint? : single bytes of a copy in bulk
        reduce! {_OUT} add|min|max noftz? L2::cache_hint? .f16|bf16 : halves
        async! bulk! prefetch? tensor! 1d|2d|3d|4d|5d! L2|shared::cta|shared::cluster|global? \
            shared::cta|global! tile|tile::gather4|tile::scatter4|im2col|im2col_no_offs? \
            mbarrier::complete_tx::bytes|bulk_group? multicast::cluster? L2::cache_hint? : \
            other copies of tensors in bulk
        reduce! async! bulk! tensor! 1d|2d|3d|4d|5d! global! shared::cta! \
            and|or|xor|add|inc|dec|min|max tile|im2col_no_offs? bulk_group L2::cache_hint? : \
            copies of tensors in bulk
    """,
)  # fmt: skip
