"""Hazards of two runs of a kernel, one of it edited, held against each other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..hazards.hazard import Hazard


@dataclass(frozen=True)
class Fact:
    """What one hazard says, told in lines of the files as they were before any edit.

    Attributes:
        kind: The hazard's; of a race that reads, the same whichever access is named first.
        reach: Between whom a race is.
        hazard: What says so.
    """

    kind: str
    space: str
    reach: str
    places: frozenset[tuple[str, int]]
    severity: str
    hazard: Hazard = field(compare=False)

    def within(self, other: Fact) -> bool:
        """Whether the other says this, too."""
        mine, others = (self.kind, self.space, self.reach), (other.kind, other.space, other.reach)
        return mine == others and self.places <= other.places


def fact(hazard: Hazard, lines: Mapping[str, list[int]]) -> Fact:
    """What a hazard says.

    Args:
        hazard: Of a run of the kernel, edited or not.
        lines: For edited files, by real path: where each line comes from.
    """
    places = set()
    for source in hazard.sources:
        if source.line:
            file = os.path.realpath(source.file)
            old = lines.get(file, [])
            line = old[source.line - 1] if 0 < source.line <= len(old) else source.line
            places.add((file, line))
    kind = "a read and a write" if hazard.row.reads else hazard.kind
    return Fact(kind, hazard.space, hazard.reach, frozenset(places), hazard.severity, hazard)


def same(found: Fact, known: Sequence[Fact]) -> list[Fact]:
    """What a finding was called before: of the same places, or else of more."""
    wider = [old for old in known if found.within(old)]
    exact = [old for old in wider if old.places == found.places]
    return [old for old in exact if old.severity == found.severity] or exact or wider


def nothing_new(found: Sequence[Hazard], known: Sequence[Hazard]) -> bool:
    """Whether hazards of one launch are all among those of another."""
    facts = [fact(hazard, {}) for hazard in known]
    return all(any(fact(hazard, {}).within(old) for old in facts) for hazard in found)
