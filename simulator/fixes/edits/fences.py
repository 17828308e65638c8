"""Candidate fences and barriers for races between blocks.

A thread writes data and then sets a flag or increments a counter. A fence belongs between the two,
and another one after the read of the flag, before the data are read (PTX ISA, memory model). If one
thread signals or polls for others, these need a barrier with it in addition.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit, joined, line_of
from kernels.source.source_text import node_end

from .divergence import may_diverge
from .insertion_points import Levels, inserted
from .statements import StatementList, Syntax
from .sync_statements import BLOCK_BARRIER

if TYPE_CHECKING:
    from tree_sitter import Node

FENCE = "__threadfence();"
NO_FENCE = (
    "no fix: no __threadfence() or __syncthreads() between the write and the flag, and before "
    "the read, removes this race alone"
)
_HANDS_ON = re.compile(
    rb"\batomic[A-Z]\w*\s*\(|\bvolatile\b|\.(store|exchange|fetch_\w+|compare_exchange\w*)\s*\("
    rb"|\b(red|atom|st\.(release|relaxed|volatile|mmio))\."
)
_VOLATILE = re.compile(rb"\bvolatile\b[^;(){}=]*?(\w+)\s*(?:[;,)=\[]|$)")
_PLACES, _MEETINGS, _PAIRED = 8, 2, 3
"""On each side: for a fence, for a barrier, and for two fences at once."""
_DEEP = 3
"""So many calls are followed to what hands on."""


def handing_edits(syntax: Syntax, write: Levels, read: Levels) -> Iterator[Edit]:
    """Yield fences and barriers after a write, before its flag, or before the read.

    Both after the write come first, then each at either place. Without a flag there are none.
    """
    handed = list(_handed(syntax, write))
    if not handed:
        return
    behind = [*handed, *((body, index + 1) for body, index in write[:1])]
    ahead = _ahead(read)
    both = f"{BLOCK_BARRIER} {FENCE}"
    one = [list(_inserted(syntax, behind, text)) for text in (FENCE, BLOCK_BARRIER, both)]
    two = [list(_inserted(syntax, ahead, text)) for text in (FENCE, BLOCK_BARRIER)]
    for edits in (one[0], two[0], one[1], two[1], one[2]):
        yield from edits
    first, second = ([edits[0] for edits in side if edits] for side in (one, two))
    fences = itertools.product(one[0][:_PAIRED], two[0][:_PAIRED])
    pairs = [*fences, *itertools.product(first, second)]
    yield from filter(None, dict.fromkeys(joined(*pair) for pair in pairs))


def acquiring_edits(syntax: Syntax, read: Levels) -> Iterator[Edit]:
    """Yield fences before a read that follows a relaxed read of a flag."""
    yield from _inserted(syntax, _ahead(read), FENCE)


def _ahead(read: Levels) -> list[tuple[StatementList, int]]:
    """Return the places before a read, likeliest first."""
    inner = {key: i for i, key in enumerate(dict.fromkeys(body.key for body, _ in read))}
    # Of statements on one line the last that reads is the likeliest; next to it, or out of loops.
    calm = sorted(read, key=lambda level: (level[0].loops, inner[level[0].key], -level[1]))
    near = sorted(read, key=lambda level: (inner[level[0].key], level[1]))
    both_ways = [level for pair in zip(calm, near, strict=True) for level in pair]
    return [(body, min(index, len(body.statements) - 1)) for body, index in both_ways]


def _handed(syntax: Syntax, write: Levels) -> Iterator[tuple[StatementList, int]]:
    """Yield the places of possible flags after a write, in the enclosing lists."""
    text = b"\n".join(syntax.files.values())
    names = [re.escape(name) for name in {*_VOLATILE.findall(text)}]
    flag = re.compile(rb"\b(" + b"|".join(names) + rb")\b") if names else None

    def first(body: StatementList, start: int, deep: int = _DEEP) -> Levels:
        """Return the first possible flag in a list, also in a called function."""
        for gap in range(start, len(body.statements)):
            code = body.statements[gap].text or b""
            if _HANDS_ON.search(code) or (flag and flag.search(code)):
                return [(body, gap)]
            for called in syntax.called(body.statements[gap]) if deep else ():
                if inside := first(called, 0, deep - 1):
                    return [*inside, (body, gap)]
        return []

    for body, index in write:
        yield from first(body, index + 1)


def _narrow(body: StatementList, gap: int) -> Node | None:
    """Return a block-scope fence where device scope is needed, if there is one."""
    for node in body.statements[max(gap - 1, 0) : gap + 1]:
        if re.fullmatch(rb"__threadfence_block\s*\(\s*\)\s*;", node.text or b""):
            return node
    return None


def _inserted(syntax: Syntax, gaps: Levels, text: str) -> Iterator[Edit]:
    """Yield insertions at the first of some places; barriers only in converged code."""
    visited = set()
    meets = BLOCK_BARRIER in text
    for body, gap in gaps:
        fits = gap in body.gaps() and not (meets and may_diverge(body))
        narrow = _narrow(body, gap) if text == FENCE else None
        edit = inserted(syntax, body, gap, text) if fits else None
        if fits and narrow is not None:
            content, end = syntax.files[body.file], node_end(syntax.files[body.file], narrow)
            piece, line = (narrow.start_byte, end, FENCE.encode()), line_of(content, end)
            edit = Edit(body.file, (piece,), line, "for __threadfence_block() on", FENCE)
        if edit is not None and (edit.file, edit.pieces) not in visited:
            visited.add((edit.file, edit.pieces))
            yield edit
            if len(visited) == (_MEETINGS if meets else _PLACES):
                return
