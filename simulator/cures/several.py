"""Barriers at several places at once, where one of them takes nothing away from a hazard.

The statements of one line race as one hazard, which a barrier between two of them may leave as
it was found. Of what was put in together each is left out again, if it is not needed.
"""

import contextlib
import functools
from collections.abc import Callable, Sequence

from kernels.source_edit import Edit, joined, without_one

from .proofs import Failed
from .remedies import BLOCK_BARRIER

_LEAST = 3
"""Places; fewer were tried before."""


def several(edits: Sequence[Edit], attempt: Callable[[Edit, int], bool]) -> None:
    """Try barriers wherever they do no harm, then without each that is not needed.

    ``attempt`` tries an edit, the better the smaller its number, and says whether nothing is left.
    """
    places: list[Edit] = []
    for edit in edits:
        fits = not places or joined(_all(places), edit) is not None
        if fits and edit.text == BLOCK_BARRIER and all(a == b for a, b, _ in edit.pieces):
            places.append(edit)
    if len(places) < _LEAST:
        return
    with contextlib.suppress(Failed):
        needed = attempt(_all(places), len(places))
        for edit in [*places] if needed else []:
            fewer = [one for one in places if one is not edit]
            with contextlib.suppress(Failed):
                if attempt(_all(fewer), len(fewer)):
                    places = fewer


def leaner(
    found: list[tuple[int, int, int, Edit, list[int]]], attempt: Callable[[Edit, int], bool]
) -> None:
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
                attempt(lighter, best[2] - 1 - number)
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
