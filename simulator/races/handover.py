"""What is kept of fences, strong accesses and barriers: see ``releases``."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..geometry import WARP, Flat
from ..memory.site import Site


@dataclass(slots=True)
class Seen:
    """Up to when a thread had seen each thread of its block, by its number, at some moment.

    Attributes:
        warp: The thread's; ``met``: when the warp last met as a whole, ``block``: when the block.
        warps: Up to when it had seen each warp; ``lanes``: each lane of its own.
        threads: Up to when each thread, through mbarriers.
    """

    warp: int
    met: int
    block: int
    warps: Flat | None
    lanes: Flat | None
    threads: Flat | None

    def __getitem__(self, thread: int) -> int:
        warp, time = thread // WARP, self.block
        if self.warps is not None:
            time = max(time, int(self.warps[warp]))
        if warp == self.warp:
            time = max(time, self.met)
            if self.lanes is not None:
                time = max(time, int(self.lanes[thread % WARP]))
        if self.threads is not None:
            time = max(time, int(self.threads[thread]))
        return time


@dataclass(eq=False, slots=True)
class Release:
    """A strong write, and what its thread knew by its last fence.

    ``fenced``: when that was, of each reach (``isa.table``) or a wider one.
    """

    site: Site
    thread: int
    block: int
    end: int
    fenced: tuple[int, ...]
    met: int
    warp: int
    published: tuple[Flat, ...] | None
    known: Seen | None


@dataclass(eq=False, slots=True)
class Content:
    """The releases whose values a location's content goes back to: a write and atomics on it."""

    place: int
    releases: list[Release] = field(default_factory=list)
    distinct: list[tuple[int, Release]] = field(default_factory=list)
    by_block: dict[int, list[tuple[int, Release]]] = field(default_factory=dict)
    by_end: dict[tuple[int, int], tuple[int, Release]] = field(default_factory=dict)
    known: set[tuple[object, ...]] = field(default_factory=set)

    def add(self, release: Release) -> None:
        """Note a release; one that spins hands on no more than what it did the first time."""
        r, numbered = release, (len(self.releases), release)
        self.releases.append(release)
        self.by_end[r.thread, r.end] = numbered
        what = (r.site.number, r.thread, r.fenced, r.met, r.warp, id(r.published))
        if what not in self.known:
            self.known.add(what)
            self.distinct.append(numbered)
            self.by_block.setdefault(r.block, []).append(numbered)


@dataclass(eq=False, slots=True)
class Acquire:
    """A strong read, of the first ``count`` releases of a location's content."""

    site: Site
    thread: int
    content: Content
    count: int
    reach: int
    time: int


@dataclass(slots=True)
class Fence:
    """A fence of some threads; ``known``: see ``Releases.fence``."""

    time: int
    threads: Flat
    reach: int
    known: Sequence[Seen] | None


@dataclass(slots=True)
class Meeting:
    """A block barrier let threads go; ``blocks``: those of which all threads came."""

    time: int
    threads: Flat
    blocks: Flat


@dataclass(slots=True)
class StrongAccess:
    """A strong access of many lanes, in their turns; see ``Releases.access``."""

    time: int
    threads: Flat
    site: Site
    places: Flat
    turns: Flat
    met: Flat
    warp: Flat
    known: Sequence[Seen] | None
    vain: list[bool] | None


Noted = Fence | Meeting | StrongAccess
"""Something that happened, in the order of time."""


def covers(release: Release, time: int, thread: int, far: int, threads: int) -> bool:
    """Whether a release hands on what a thread of its block did at a time; ``far``: to whom."""
    fenced = release.fenced[far]
    if thread == release.thread:
        return time < fenced or (time == release.end and fenced >= 0)
    if release.known is not None and fenced > 0 and time <= release.known[thread % threads]:
        return True
    if time <= release.met < fenced:
        return True
    same = thread % threads // WARP == release.thread % threads // WARP
    if same and time <= release.warp < fenced:
        return True
    if release.published is None or fenced < 0:
        return False
    return bool(time <= release.published[far][thread % threads])
