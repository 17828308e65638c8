"""Several barriers at once, for hazards that no single barrier reduces.

Statements of one line race as one hazard, which a barrier between two of them may not change.
Barriers are inserted together, and each that proves unnecessary is removed again.
"""

import contextlib
import functools
from collections.abc import Sequence
from typing import Protocol

from kernels.source.source_edit import Edit, joined, without_one

from .edits.sync_statements import BLOCK_BARRIER, WARP_BARRIER
from .verification import Failed


class Attempt(Protocol):
    """Tries an edit and returns whether no hazard remains; smaller numbers are better.

    ``prove``: verify it at once in all trials; otherwise it is verified before it is reported.
    """

    def __call__(self, edit: Edit, tries: int, prove: bool = True) -> bool:
        """Try an edit."""


_LEAST = 3
"""Places; fewer were tried before."""


def several(edits: Sequence[Edit], attempt: Attempt) -> None:
    """Try barriers at all harmless places, then without each unnecessary one.

    The remaining set is verified at the end.
    """
    for text in (BLOCK_BARRIER, WARP_BARRIER):
        _several([edit for edit in edits if edit.text == text], attempt)


def _several(edits: Sequence[Edit], attempt: Attempt) -> None:
    """Try several barriers of one kind; see ``several``."""
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
    """Try the best edit without each of the barriers in one of its parts.

    ``attempt`` appends to ``found``: remaining errors and warnings, the number, the edit.
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
    """Merge insertions at different places into one edit."""

    def both(one: Edit, other: Edit) -> Edit:
        made = joined(one, other)
        assert made is not None
        return made

    return functools.reduce(both, edits)
