"""Which races are those of an update that takes several steps: a look, a change, a write."""

from __future__ import annotations

from ...analysis.influence import ForwardSlices
from ...memory.site import Site
from ...races.report.race_log import RaceGroup, RaceLog


class Steps:
    """Asks what the program does between the two accesses of a race."""

    def __init__(self, book: RaceLog, steering: ForwardSlices) -> None:
        self.book, self.steering, self.sites = book, steering, book.sites

    def looks(self, group: RaceGroup) -> bool:
        """Whether threads look at what they race for, and write it if they find it so.

        Each of two accesses that race is to the place that the other one's thread looks at or
        writes itself: comparing and exchanging two elements has pairs of which that is not so.
        """
        pairs = [(self.sites[one], self.sites[other]) for one, other in group.meets]
        if group.reads:
            return all(self._decides(*_read_first(one, other)) for one, other in pairs)
        looks = [
            other for other in self.book.groups.values()
            if other.reads and (other.space, other.name) == (group.space, group.name)
            and self.looks(other)
        ]  # fmt: skip
        written = {number for look in looks for pair in look.meets for number in pair}
        return group.sides[0] | group.sides[1] <= written and all(
            self.steering.same_place(one, other) for one, other in pairs
        )

    def _decides(self, read: Site, write: Site) -> bool:
        """Whether what stands in a place decides whether it is written, and not with what."""
        odd = any(site.strong or site.volatile or site.asynchronous for site in (read, write))
        plain = not odd and (read.access, write.access) == ("load", "store")
        same_location = read.size == write.size and self.steering.same_place(read, write)
        decides = plain and same_location and self.steering.chooses(read, write)
        return decides and not self.steering.flows(read, write)

    def guesses(self, group: RaceGroup) -> bool:
        """Whether a compare-and-swap at the same place checks what a read found."""
        if not group.reads:
            return False
        one, other = ([self.sites[number] for number in sorted(side)] for side in group.sides)
        reads, writes = (one, other) if one[0].access == "load" else (other, one)
        swaps = [
            self.sites[number]
            for known in self.book.groups.values()
            if (known.space, known.name) == (group.space, group.name)
            for number in sorted(set().union(*known.sides))
            if self.sites[number].operation == "cas"
        ]
        return all(site.access == "atomic" for site in writes) and all(
            any(self.steering.expected(read, swap) for swap in swaps) for read in reads
        )

    def loses(self, group: RaceGroup) -> bool:
        """Whether both write what they made of what stood there, by reads that race, too."""
        reads = {
            number
            for other in self.book.groups.values()
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
    """Two accesses, a load among them in front."""
    return (one, other) if one.access == "load" else (other, one)
