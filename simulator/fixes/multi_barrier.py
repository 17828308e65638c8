"""Barriers at several places at once, where one of them takes nothing away from a hazard.

The statements of one line race as one hazard, which a barrier between two of them may leave as
it was found. Of what was put in together each is left out again, if it is not needed.
"""

import contextlib
import functools
from collections.abc import Sequence
from typing import Protocol

from kernels.source.source_edit import Edit, joined, without_one

from .edits.sync_statements import BLOCK_BARRIER, WARP_BARRIER
from .verification import Failed


class Attempt(Protocol):
    """Tries an edit, the better the smaller its number, and says whether nothing is left.

    ``prove``: at once, in all trials; what is not is proved before it is called a fix.
    """

    def __call__(self, edit: Edit, tries: int, prove: bool = True) -> bool:
        """Try it."""


_LEAST = 3
"""Places; fewer were tried before."""


def several(edits: Sequence[Edit], attempt: Attempt) -> None:
    """Try barriers wherever they do no harm, then without each that is not needed.

    What is left of them is proved when all is tried.
    """
    for text in (BLOCK_BARRIER, WARP_BARRIER):
        _several([edit for edit in edits if edit.text == text], attempt)


def _several(edits: Sequence[Edit], attempt: Attempt) -> None:
    """The same for one barrier."""
    places: list[Edit] = []
    for edit in edits:
        fits = not places or joined(_all(places), edit) is not None
        if fits and all(a == b for a, b, _ in edit.pieces):
            places.append(edit)
    if len(places) < _LEAST:
        return
    with contextlib.suppress(Failed):
        needed = attempt(_all(places), len(places))
        for edit in [*places] if needed else []:
            fewer = [one for one in places if one is not edit]
            with contextlib.suppress(Failed):
                if attempt(_all(fewer), len(fewer), prove=False):
                    places = fewer


def minimise(found: list[tuple[int, int, int, Edit, list[int]]], attempt: Attempt) -> None:
    """Try the best edit that was found without each of the barriers that one piece of it has.

    ``attempt`` is as ``several`` has it, and adds to what was found: errors and warnings that are
    left, the number, the edit.
    """
    best = min(found, key=lambda one: one[:3], default=None)
    edit = best[3] if best else None
    while edit is not None and best is not None:
        fewer, edit = without_one(edit), None
        for number, lighter in enumerate(fewer):
            with contextlib.suppress(Failed):
                attempt(lighter, best[2] - 1 - number, prove=False)
                if found[-1][3] is lighter and found[-1][:2] == best[:2]:
                    best, edit = found[-1], lighter
                    break


def _all(edits: Sequence[Edit]) -> Edit:
    """Insertions at different places as one edit."""

    def both(one: Edit, other: Edit) -> Edit:
        made = joined(one, other)
        assert made is not None
        return made

    return functools.reduce(both, edits)
