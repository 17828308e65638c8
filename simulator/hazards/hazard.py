"""``Hazard``: one finding of a check, with its lines, threads and counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from .kinds import KINDS, UPDATES, HazardKind
from .participants import Fix, Participant, Source, Triple
from .wording.leads import title_with_fix
from .wording.text import COLUMNS, each_once, in_short, report

__all__ = ["SEVERITIES", "Fix", "Hazard", "Participant", "Source", "Triple"]

SEVERITIES = {row.name: row.severity for row in KINDS.values()}
"""Every kind of hazard and its usual severity."""

_FOLLOW = "follows from the above:"
_STEPS = "one update in several steps explains these {count}{how}: the above and"
_NEAR = "between lanes of one warp as well: {}"
_ATOMIC = " (an atomic operation does it in one)"


@dataclass
class Hazard:
    """One finding.

    Attributes:
        kind: Name of its row in ``KINDS``.
        case: Which of the row's cases it is.
        message: The finding in a sentence.
        severity: ``error``, ``warning`` or ``note``.
        space: State space, or ``""``.
        variable: Name of the array or variable, if known.
        also: Other variables with the same finding.
        element: Index of an example element, in units of the access's element size, if known.
        involved: Participants: the instructions that take part.
        count: Number of thread accesses; of a race, the number of pairs of threads. Two racing
            threads are one pair, however often and at however many locations they race. Counting
            stops at ``MAX_PAIRS``.
        capped: Whether there are more pairs than ``count``.
        locations: Of a race: number of elements on which the counted pairs race.
        notes: Further information, a line each.
        certainty: Of a race: in which schedules and for which array contents it occurs.
        fix: A verified fix, if a search found one.
        builds: Builds that show the hazard, if several were checked.
        reach: Of a race: the threads between which it occurs, a key of ``REACHES``.
        pairs: Of several races in one report: the two lines of each.
        heading: Of a race: what is missing, and in which lines (``titles.py``).
        follows: Findings that exist only because of this one; they have no reports of their own.
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
    certainty: str = ""
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
        """Return the descriptor of its kind."""
        return KINDS[self.kind]

    @property
    def title(self) -> str:
        """First line of a report: the repair, where it is known."""
        return title_with_fix(self.heading, self.fix) if self.heading else self.message

    @property
    def lines(self) -> tuple[int, ...]:
        """Source line numbers of the participants."""
        return tuple(i.source.line for i in self.involved if i.source.line)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Source lines of the participants."""
        return tuple(i.source for i in self.involved)

    @property
    def family(self) -> tuple[str, str, str, str, frozenset[str]]:
        """Kind, severity, space, reach and roles."""
        roles = frozenset(item.role for item in self.involved)
        return self.kind, self.severity, self.space, self.reach, roles

    @property
    def variables(self) -> frozenset[str]:
        """Names of all affected variables."""
        return frozenset((self.variable, *self.also))

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """Files and line numbers of the participants."""
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
        """Return the report, wrapped at ``columns``."""
        headline = f"{self.severity}: {self.title}"
        why = _FOLLOW
        if self.case in UPDATES:
            why = _STEPS.format(count=1 + len(self.follows), how="" if self.fix else _ATOMIC)
        near = [
            hazard for hazard in self.follows if hazard.reach == "lane" and self.is_wider(hazard)
        ]
        notes = [*self.notes, *(_NEAR.format(hazard.notes[0].partition(":")[0]) for hazard in near)]
        notes += [f"certainty: {self.certainty}"] if self.certainty else []
        others = each_once(hazard.in_short() for hazard in self.follows if hazard not in near)
        return report(headline, self.involved, notes, self.fix, columns, (why, others))

    def is_wider(self, other: Hazard) -> bool:
        """Whether this race between warps includes the lines of another between lanes of a warp."""
        return (
            self.row.is_race
            and self.row is other.row
            and (self.reach, other.reach) == ("warp", "lane")
            and (self.severity == "error" or other.severity != "error")
            and self.space == other.space
            and other.variables <= self.variables
            and other.places <= self.places
        )

    def in_short(self) -> str:
        """Return the finding in one sentence."""
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
            "certainty": self.certainty or None,
            "fix": self.fix.to_dict() if self.fix else None,
            "builds": list(self.builds),
            "follows": [hazard.to_dict() for hazard in self.follows],
        }
