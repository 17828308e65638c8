"""Edits that might cure a race between blocks which hand on what they write: a fence.

A thread writes, and then tells by an atomic, or a flag, that it has: a fence belongs between the
two, and another one where that was read, in front of what reads the rest (PTX ISA, memory model).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from kernels.source_edit import Edit, joined

from .places import Levels, inserted
from .statements import Body, Syntax

FENCE = "__threadfence();"
NO_FENCE = (
    "no cure: no __threadfence() between the write and what hands it on, and in front of the read, "
    "removes this race alone"
)
_HANDS_ON = re.compile(
    rb"\batomic[A-Z]\w*\s*\(|\bvolatile\b|\.(store|exchange|fetch_\w+|compare_exchange\w*)\s*\("
    rb"|\b(red|atom|st\.(release|relaxed|volatile|mmio))\."
)
_VOLATILE = re.compile(rb"\bvolatile\b[^;(){}=]*?(\w+)\s*(?:[;,)=\[]|$)")
_PLACES = 3
"""On each side."""


def fence_edits(syntax: Syntax, write: Levels, read: Levels) -> Iterator[Edit]:
    """Fences behind a write, where something hands it on; then with one before the read as well.

    Nothing, where nothing hands it on.
    """
    handed = list(_handed(syntax, write))
    if not handed:
        return
    behind = [*handed, *((body, index + 1) for body, index in write[:1])]
    calm = sorted(read, key=lambda level: level[0].loops)
    ahead = [(body, min(index, len(body.statements) - 1)) for body, index in calm]
    one, two = (
        list(itertools.islice(_inserted(syntax, gaps), _PLACES)) for gaps in (behind, ahead)
    )
    yield from one
    yield from two
    for first, second in itertools.product(one, two):
        both = joined(first, second)
        if both is not None:
            yield both


def _handed(syntax: Syntax, write: Levels) -> Iterator[tuple[Body, int]]:
    """Where something that may hand on what was written comes, in the lists around the write."""
    text = b"\n".join(syntax.files.values())
    names = [re.escape(name) for name in {*_VOLATILE.findall(text)}]
    flag = re.compile(rb"\b(" + b"|".join(names) + rb")\b") if names else None
    for body, index in write:
        for gap in range(index + 1, len(body.statements)):
            code = body.statements[gap].text or b""
            if _HANDS_ON.search(code) or (flag and flag.search(code)):
                yield body, gap
                break


def _inserted(syntax: Syntax, gaps: Levels) -> Iterator[Edit]:
    seen = set()
    for body, gap in gaps:
        edit = inserted(syntax, body, gap, FENCE) if gap in body.gaps() else None
        if edit is not None and (edit.file, edit.pieces) not in seen:
            seen.add((edit.file, edit.pieces))
            yield edit
