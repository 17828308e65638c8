"""Statements in a row that read and write what others do: each of them is split.

So reductions were written for lanes in step: ``v[t] += v[t + 16]; v[t] += v[t + 8];``, each of
which needs a barrier between its read and its write (CUDA guide, "Independent Thread Scheduling").
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from kernels.source.source_edit import Edit

from .divergence import may_diverge
from .insertion_points import Levels, inserted
from .splits import BETWEEN, split_assignment
from .statements import StatementList, Syntax

Link = tuple[StatementList, int, bool]
"""A statement, and whether a barrier goes into it."""


def chain_edits(
    syntax: Syntax, places: Sequence[Levels], written: Sequence[bool], barrier: str
) -> Iterator[Edit]:
    """Yield the assignments at these places with a barrier inside each, and behind each as well.

    Those that are only ``written`` at are not split first, where that may do. What ends the row
    needs no barrier behind it, or does for the sake of what follows.
    """
    chain = _chain(syntax, places, written)
    whole = [(body, at, True) for body, at, _ in chain]
    if len(chain) < 2:
        return
    for links in [chain, whole] if chain != whole else [whole]:
        for behind in (0, len(links) - 1, len(links)):
            edit = _all_of(syntax, links, behind, barrier)
            if edit is not None:
                yield edit


def _chain(syntax: Syntax, places: Sequence[Levels], written: Sequence[bool]) -> list[Link]:
    """Return the statements in order; an ``if`` around one that may diverge stands for it."""
    row: dict[object, Link] = {}
    for levels, alone in zip(places, written, strict=True):
        fit = [
            (body, at)
            for body, at in levels
            if at < len(body.statements) and split_assignment(syntax, body, at, 1, "", False)
        ]
        if fit:
            body, at = next((one for one in fit if not may_diverge(one[0])), fit[-1])
            key = body.key, body.single, at
            row[key] = body, at, not alone or (key in row and row[key][2])
    chain = sorted(row.values(), key=lambda link: link[0].statements[link[1]].start_byte)
    ahead = list(itertools.takewhile(lambda link: not link[2], chain))
    return chain[max(len(ahead) - 1, 0) :]  # of those that write ahead of all others, the last


def _all_of(syntax: Syntax, links: Sequence[Link], behind: int, barrier: str) -> Edit | None:
    """Return one edit of the links, the first so many of them with a barrier behind."""
    made, split = list[Edit](), 0
    for number, (body, at, inside) in enumerate(links):
        edit = None
        if inside:
            split += 1
            edit = split_assignment(syntax, body, at, split, barrier, number < behind)
        elif number < behind:
            edit = inserted(syntax, body, at + 1, barrier)
        made += [edit] if edit is not None else []
    splits = [edit for edit in made if edit.where == BETWEEN]
    if not splits or len({edit.file for edit in made}) > 1:
        return None
    first, *others = splits + [edit for edit in made if edit.where != BETWEEN]
    pieces = tuple(sorted(piece for edit in made for piece in edit.pieces))
    if any(one[1] > two[0] for one, two in itertools.pairwise(pieces)):
        return None  # one inside another
    return dataclasses.replace(
        first, pieces=pieces, also=tuple((edit.line, edit.where) for edit in others)
    )
