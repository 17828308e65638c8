"""What a net has to say."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Difference:
    """Something wrong: the seed that shows it again with ``--count 1``, and the shrunk program."""

    seed: int
    what: str
    program: str = ""


@dataclass
class Report:
    """Counts of a net's run, what it found, and what its programs reached.

    Attributes:
        programs: Programs drawn.
        launches: Launches (or texts judged) that were compared.
        differences: What was wrong; empty is what one hopes for.
        reached: Kind of thing (``rows``, ``modifiers``, ``hazards`` ...) to names and how often.
        known: The same kinds to all names there are, as far as that can be said.
        notes: Further lines to print.
    """

    programs: int = 0
    launches: int = 0
    differences: list[Difference] = field(default_factory=list)
    reached: dict[str, dict[str, int]] = field(default_factory=dict)
    known: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def reach(self, kind: str, name: str, times: int = 1) -> None:
        """Count that a program reached something."""
        counts = self.reached.setdefault(kind, {})
        counts[name] = counts.get(name, 0) + times

    def never(self, kind: str) -> list[str]:
        """The names of a kind that no program reached."""
        return sorted(self.known.get(kind, set()) - set(self.reached.get(kind, {})))


def seeds(seconds: float, seed: int, count: int | None = None) -> Iterator[int]:
    """The seeds of a run's programs: until the time is over, or ``count`` of them."""
    end = time.monotonic() + seconds
    n = 0
    while (count is None or n < count) and (time.monotonic() < end or (n == 0 and count)):
        yield seed + n
        n += 1
