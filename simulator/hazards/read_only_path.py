"""Hazards of the read-only path.

Loads through it, and ``__restrict__`` pointers, of written bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..memory.site import Site
from ..memory.storage.spaces import Allocation
from .findings import Findings
from .hazard import Hazard, Triple
from .kinds import ALIASED, CACHE, PICTURE, READ_ONLY_PATH
from .participants import ROLES, Participant
from .races.titles import lines_of
from .wording.naming import spot


class PathParticipant(NamedTuple):
    """A participating access with an example thread."""

    site: Site
    thread: Triple
    block: Triple


def read_only(
    findings: Findings,
    home: Allocation,
    at: int,
    pairs: Sequence[tuple[PathParticipant, PathParticipant]],
    elements: int,
    fetches: bool,
) -> None:
    """Report read-only loads of written bytes; ``pairs``: loads with writes of byte ``at``."""
    _tell(findings, home, at, pairs, elements, PICTURE if fetches else CACHE)


def aliased(
    findings: Findings, home: Allocation, at: int, sides: tuple[PathParticipant, PathParticipant],
    names: tuple[str, str], elements: int,
) -> None:  # fmt: skip
    """Report two restricted pointers of which one writes bytes that both access."""
    _tell(findings, home, at, [sides], elements, ALIASED, names)


def _tell(
    findings: Findings,
    home: Allocation,
    at: int,
    pairs: Sequence[tuple[PathParticipant, PathParticipant]],
    elements: int,
    case: str,
    names: Sequence[str] = (),
) -> None:
    said = READ_ONLY_PATH.case(case)
    site = pairs[0][0].site
    place = spot(home, at, site, findings.layout, findings.functions, findings.shapes)
    parts = [[_part(findings, side) for side in pair] for pair in pairs]
    unique = {(part.role, part.source): part for pair in parts for part in pair}
    involved = sorted(unique.values(), key=lambda part: part.role != ROLES["load"])
    reads, writes = ([p for p in involved if (p.role == ROLES["load"]) is load]
                     for load in (True, False))  # fmt: skip
    through = [
        f"`{name}` ({lines_of([part])})" for name, part in zip(names, parts[0], strict=False)
    ]
    words = {
        "place": f"{place.space} `{place.text}`", "who": " and ".join(through),
        "line": lines_of(reads), "word": lines_of(writes),
    }  # fmt: skip
    many = f"{elements:,} element{'s' * (elements != 1)} of {place.variable}"
    findings.more.append(
        Hazard(
            READ_ONLY_PATH.name, said.message.format_map(words), said.severity, place.space,
            place.variable, place.element, tuple(involved), elements, elements,
            notes=(many, said.note), case=case,
            pairs=tuple(tuple(part.source for part in pair) for pair in parts),
        )
    )  # fmt: skip


def _part(findings: Findings, side: PathParticipant) -> Participant:
    return findings.sources.part(
        ROLES[side.site.access], [side.site.instruction], side.thread, side.block
    )
