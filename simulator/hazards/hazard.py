"""Hazards: what is wrong with a kernel, where, and an example of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .kinds import KINDS, UPDATES, HazardKind
from .participants import Fix, Participant, Source, Triple
from .wording.leads import title_with_fix
from .wording.text import COLUMNS, in_short, report

__all__ = ["SEVERITIES", "Fix", "Hazard", "Participant", "Source", "Triple"]

SEVERITIES = {row.name: row.severity for row in KINDS.values()}
"""Every kind of hazard and its usual severity."""

_FOLLOW = "follows from the above:"
_STEPS = "one update in several steps explains these {count}{how}: the above and"
_ATOMIC = " (an atomic operation does it in one)"


@dataclass
class Hazard:
    """One finding.

    Attributes:
        kind: The name of its row in ``KINDS``; ``case``: which of the row's cases it is.
        message: The finding in a sentence.
        severity: ``error``, ``warning`` or ``note``.
        space: State space, or ``""``.
        variable: Array or variable name, if known; ``also``: others with the same finding.
        element: Index of an example element (by the access's element size), if known.
        involved: The instructions that take part.
        count: How often: thread accesses; of a race, pairs of threads: two threads that race
            are one pair, however often and at however many locations they do. Of a race, counting
            stops at some pairs, the smallest; ``capped``: whether there are more.
        locations: Of a race: elements for which the pairs race that are counted.
        notes: What else a reader wants to know, a line each.
        fix: A verified fix, where one was looked for and found.
        builds: In which builds it was seen, where several were checked.
        reach: Of a race: between whom it is, a key of ``REACHES``.
        pairs: Of races told as one: the two lines of each.
        heading: Of a race: what is missing, and in which lines (``titles.py``).
        follows: Findings that exist only because of this one: no reports of their own.
    """

    kind: str
    message: str
    severity: str = "error"
    space: str = ""
    variable: str = ""
    element: int | None = None
    involved: tuple[Participant, ...] = ()
    count: int = 1
    locations: int = 0
    capped: bool = False
    notes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    fix: Fix | None = None
    builds: tuple[str, ...] = ()
    case: str = field(default="", repr=False)
    reach: str = field(default="", repr=False)
    pairs: tuple[tuple[Source, ...], ...] = field(default=(), repr=False)
    follows: tuple[Hazard, ...] = field(default=(), repr=False)
    heading: str = field(default="", repr=False)

    @property
    def row(self) -> HazardKind:
        """What holds for all hazards of its kind."""
        return KINDS[self.kind]

    @property
    def title(self) -> str:
        """What a report begins with: what to do about it, where that is known."""
        return title_with_fix(self.heading, self.fix) if self.heading else self.message

    @property
    def lines(self) -> tuple[int, ...]:
        """The source line numbers involved."""
        return tuple(i.source.line for i in self.involved if i.source.line)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source lines involved."""
        return tuple(i.source for i in self.involved)

    @property
    def family(self) -> tuple[str, str, str, str, frozenset[str]]:
        """Kind, severity, space, reach and roles."""
        roles = frozenset(item.role for item in self.involved)
        return self.kind, self.severity, self.space, self.reach, roles

    @property
    def variables(self) -> frozenset[str]:
        """All variables it is about."""
        return frozenset((self.variable, *self.also))

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """Files and lines involved."""
        return frozenset((source.file, source.line) for source in self.sources)

    @property
    def thread(self) -> Triple | None:
        """An example thread, x first."""
        return self.involved[0].thread if self.involved else None

    @property
    def block(self) -> Triple | None:
        """The example thread's block, x first."""
        return self.involved[0].block if self.involved else None

    def __str__(self) -> str:
        return self.text()

    def text(self, columns: int = COLUMNS) -> str:
        """The report, in lines of so many columns."""
        headline = f"{self.severity}: {self.title}"
        why = _FOLLOW
        if self.case in UPDATES:
            why = _STEPS.format(count=1 + len(self.follows), how="" if self.fix else _ATOMIC)
        beneath = why, [hazard.in_short() for hazard in self.follows]
        return report(headline, self.involved, self.notes, self.fix, columns, beneath)

    def in_short(self) -> str:
        """The finding in a sentence."""
        return in_short(self.severity, self.title, () if self.heading else self.involved)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "title": self.title,
            "message": self.message,
            "space": self.space,
            "variable": self.variable,
            "also": list(self.also),
            "element": self.element,
            "involved": [item.to_dict() for item in self.involved],
            "count": self.count,
            "pairs": self.count if self.row.is_race else None,
            "pairs_capped": self.capped,
            "locations": self.locations,
            "notes": list(self.notes),
            "fix": self.fix.to_dict() if self.fix else None,
            "builds": list(self.builds),
            "follows": [hazard.to_dict() for hazard in self.follows],
        }
