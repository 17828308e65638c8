"""Races of updates in several steps: test, modify, write."""

from __future__ import annotations

from ...analysis.influence import ForwardSlices
from ...memory.site import Site
from ...races.report.race_log import RaceGroup, RaceLog


class Steps:
    """Analyses the program between the two accesses of a race."""

    def __init__(self, race_log: RaceLog, steering: ForwardSlices) -> None:
        self.race_log, self.steering, self.sites = race_log, steering, race_log.sites

    def looks(self, group: RaceGroup) -> bool:
        """Whether threads test the racing location and write it depending on the result.

        Both racing accesses must be to a location that the other thread tests or writes itself:
        compare-exchange of two elements has pairs for which this is not so.
        """
        pairs = [(self.sites[one], self.sites[other]) for one, other in group.meets]
        if group.reads:
            return all(self._decides(*_read_first(one, other)) for one, other in pairs)
        looks = [
            other for other in self.race_log.groups.values()
            if other.reads and (other.space, other.name) == (group.space, group.name)
            and self.looks(other)
        ]  # fmt: skip
        written = {number for look in looks for pair in look.meets for number in pair}
        return group.sides[0] | group.sides[1] <= written and all(
            self.steering.same_place(one, other) for one, other in pairs
        )

    def _decides(self, read: Site, write: Site) -> bool:
        """Whether a value decides whether its location is written, but not the written value."""
        odd = any(site.strong or site.volatile or site.asynchronous for site in (read, write))
        plain = not odd and (read.access, write.access) == ("load", "store")
        same_location = read.size == write.size and self.steering.same_place(read, write)
        decides = plain and same_location and self.steering.chooses(read, write)
        return decides and not self.steering.flows(read, write)

    def guesses(self, group: RaceGroup) -> bool:
        """Whether a compare-and-swap at the same location checks the value that was read."""
        if not group.reads:
            return False
        one, other = ([self.sites[number] for number in sorted(side)] for side in group.sides)
        reads, writes = (one, other) if one[0].access == "load" else (other, one)
        swaps = [
            self.sites[number]
            for known in self.race_log.groups.values()
            if (known.space, known.name) == (group.space, group.name)
            for number in sorted(set().union(*known.sides))
            if self.sites[number].operation == "cas"
        ]
        return all(site.access == "atomic" for site in writes) and all(
            any(self.steering.expected(read, swap) for swap in swaps) for read in reads
        )

    def loses(self, group: RaceGroup) -> bool:
        """Whether both threads write values derived from racing reads of the location."""
        reads = {
            number
            for other in self.race_log.groups.values()
            if other.reads and (other.space, other.name) == (group.space, group.name)
            for number in other.sides[1]
            if self.sites[number].access == "load"
        }

        def updates(write: Site) -> bool:
            return write.access == "atomic" or any(
                self.steering.flows(self.sites[read], write)
                and self.steering.same_place(self.sites[read], write)
                for read in sorted(reads)
            )

        sides = [[self.sites[number] for number in side] for side in group.sides]
        plain = any(site.access == "store" for side in sides for site in side)
        return plain and all(any(map(updates, side)) for side in sides)


def _read_first(one: Site, other: Site) -> tuple[Site, Site]:
    """Return two accesses with a load first."""
    return (one, other) if one.access == "load" else (other, one)
