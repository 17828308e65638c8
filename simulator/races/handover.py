"""What is kept of fences, strong accesses and barriers: see ``releases``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..geometry import WARP
from ..memory.site import Site


@dataclass(eq=False, slots=True)
class Release:
    """A strong write, and what its thread knew by its last fence."""

    site: Site
    thread: int
    block: int
    end: int
    near: int
    wide: int
    met: int
    warp: int
    published: tuple[Any, Any] | None
    known: Any


@dataclass(eq=False, slots=True)
class Content:
    """The releases whose values a location's content goes back to: a write and atomics on it."""

    place: int
    releases: list[Release] = field(default_factory=list)
    distinct: list[tuple[int, Release]] = field(default_factory=list)
    by_block: dict[int, list[tuple[int, Release]]] = field(default_factory=dict)
    by_end: dict[tuple[int, int], tuple[int, Release]] = field(default_factory=dict)
    known: set[tuple[Any, ...]] = field(default_factory=set)

    def add(self, release: Release) -> None:
        """Note a release; one that spins hands on no more than what it did the first time."""
        r, numbered = release, (len(self.releases), release)
        self.releases.append(release)
        self.by_end[r.thread, r.end] = numbered
        what = (r.site.number, r.thread, r.near, r.wide, r.met, r.warp, id(r.published))
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
    wide: bool
    time: int


class Take(NamedTuple):
    """A lock may have been taken: when, and when a fence after it came, near and wide."""

    turn: int
    near: int
    wide: int


@dataclass(slots=True)
class Noted:
    """Something that happened: a fence, a barrier, or a strong access of many lanes.

    ``vain`` says which lanes' comparison failed, so that they wrote nothing.
    """

    kind: str
    time: int
    threads: Any
    wide: bool = True
    site: Any = None
    places: Any = None
    turns: Any = None
    met: Any = None
    warp: Any = None
    known: Any = None
    vain: Any = None


def covers(release: Release, time: int, thread: int, near: bool, threads: int) -> bool:
    """Whether a release hands on what a thread of its block did at a time."""
    fenced = release.near if near else release.wide
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
    return bool(time <= release.published[0 if near else 1][thread % threads])
