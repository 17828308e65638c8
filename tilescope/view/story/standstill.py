"""Moments at which threads wait: deadlocks, endless loops, and barriers in divergent code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from simulator.core.geometry import WARP
from simulator.hazards.hazard import Hazard
from simulator.observe.trace.trace import RELEASE

from .recorded import Moment, RecordedBlock, Recording
from .sentence import plural
from .steps import Ints, threads_on

FOR_EVER, DIVERGENT = "for ever", "not all threads"
WAITS, LOOPS, EXITED, RUNS, NOT_BEGUN = "waits", "loops", "left", "runs", "not begun"
_VERBS = {
    WAITS: ("waits at", "wait at"), LOOPS: ("loops at", "loop at"), RUNS: ("is at", "are at"),
}  # fmt: skip
_MAX_RUNS = 2
"""Ranges of threads up to which a sentence lists them."""


@dataclass
class ThreadGroup:
    """Threads of a block that are in one state at one source line.

    Attributes:
        state: ``WAITS``, ``LOOPS``, ``EXITED``, ``RUNS`` or ``NOT_BEGUN``.
        line: Source line, or PTX line without source; 0 for threads that have left.
        ranges: Threads as ranges ``(from, past the end)``.
        count: Number of threads.
        step: Step of the group's last arrival; ``warp`` arrives in it.
        text: The group in words.
    """

    state: str
    line: int
    ranges: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0
    step: int = 0
    warp: int = 0
    text: str = ""


def standstill_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moment at which the threads of a hazard's block stand still, in a list."""
    block = recording.block(hazard.block)
    if block is None or not hazard.involved or block.batch.full:
        return []
    endless = hazard.row.is_endless
    thread = recording.thread(hazard.thread) or 0
    until = len(block.batch.events)
    if not endless:
        arrivals = recording.executions(block, hazard.involved[0], thread)
        if not arrivals:
            return []
        until = _release(recording, block, arrivals[0], thread)
    groups = _groups(recording, block, until, endless)
    if not any(group.state in (WAITS, LOOPS) for group in groups):
        return []
    groups.sort(key=lambda group: not any(a <= thread < b for a, b in group.ranges))
    for group in groups:
        group.text = _threads(recording, group)
    where = f"In {recording.block_name(block.steps.block)} "
    several = int(np.prod(recording.run.grid)) > 1
    title = _sentence(groups, endless, int(np.prod(recording.extent)))
    title = where + title if several else title[:1].upper() + title[1:]
    step = int(np.searchsorted(block.steps.events, until, side="left")) - 1
    more = " ".join(f"{note[:1].upper()}{note[1:]}." for note in hazard.notes)
    marked = [group for group in groups if group.state in (WAITS, LOOPS)]
    return [
        Moment(
            number, FOR_EVER if endless else DIVERGENT, "threads", block.steps.block,
            max(0, step), thread, groups=[asdict(group) for group in groups],
            title=[(title, -1)], more=more,
            say=[("Stand still. ", -2), (_narrated(groups, endless), -1)],
            tags=[(group.step, group.warp, group.line, group.state) for group in marked],
        )
    ]  # fmt: skip


def _release(recording: Recording, block: RecordedBlock, arrival: int, thread: int) -> int:
    """Return the event at which a thread's barrier opens after its arrival, or the last event."""
    events = block.batch.events
    for number in range(int(block.steps.events[arrival]) + 1, len(events)):
        on = threads_on(events[number], block.steps.column, recording.extent)
        if events[number].watched == RELEASE and on[thread]:
            return number
    return len(events)


def _groups(
    recording: Recording, block: RecordedBlock, until: int, endless: bool
) -> list[ThreadGroup]:
    """Group the threads by what each of them did last before an event."""
    threads = int(np.prod(recording.extent))
    last: Ints = np.full(threads, RELEASE - 1, np.int64)
    at: Ints = np.zeros(threads, np.int64)
    for number, event in enumerate(block.batch.events[:until]):
        on = threads_on(event, block.steps.column, recording.extent)
        last[on], at[on] = event.watched, number
    found: dict[tuple[str, int, int], list[int]] = {}
    order = _order_in_warp(last, at)
    for thread, watched in enumerate(last.tolist()):
        state, line = _state(recording, watched, endless)
        key = state, line, int(order[thread]) if state == WAITS else 0
        found.setdefault(key, []).append(thread)
    groups = []
    for (state, line, _), members in found.items():
        latest = max(members, key=lambda thread: int(at[thread]))
        step = int(np.searchsorted(block.steps.events, at[latest], side="right")) - 1
        groups.append(
            ThreadGroup(state, line, _ranges(members), len(members), max(0, step), latest // WARP)
        )
    return groups


def _order_in_warp(last: Ints, at: Ints) -> Ints:
    """Number the arrivals of one instruction inside each warp: lanes may arrive separately."""
    order: Ints = np.zeros(len(last), np.int64)
    for first in range(0, len(last), WARP):
        part = slice(first, first + WARP)
        for watched in set(last[part].tolist()):
            same = last[part] == watched
            order[part][same] = np.unique(at[part][same], return_inverse=True)[1]
    return order


def _state(recording: Recording, watched: int, endless: bool) -> tuple[str, int]:
    if watched < RELEASE:
        return NOT_BEGUN, 0
    if watched == RELEASE:
        return RUNS, 0
    item = recording.watched[watched]
    line = item["source"] or item["ptx"]
    if item["kind"] == "exit":
        return EXITED, 0
    if item["kind"] == "barrier":
        return WAITS, line
    return (LOOPS if endless else RUNS), line


def _ranges(members: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for thread in members:
        if found and found[-1][1] == thread:
            found[-1] = found[-1][0], thread + 1
        else:
            found.append((thread, thread + 1))
    return found


def _threads(recording: Recording, group: ThreadGroup) -> str:
    """Return "threads 0 to 31" in 1-D blocks, "threads 1, 3, 5, ..." or their number."""
    flat = recording.extent[:2] == (1, 1)
    if group.count == 1:
        return recording.thread_name(group.ranges[0][0])
    if flat and len(group.ranges) <= _MAX_RUNS:
        return "threads " + " and ".join(
            f"{a} to {b - 1}" if b > a + 1 else str(a) for a, b in group.ranges
        )
    if flat and len(group.ranges) == group.count:
        return f"threads {', '.join(str(a) for a, _ in group.ranges[:3])}, ..."
    return plural(group.count, "thread")


def _doing(group: ThreadGroup) -> str:
    if group.state == EXITED:
        return "has left" if group.count == 1 else "have left"
    if group.state == NOT_BEGUN or not group.line:
        return "has not arrived" if group.count == 1 else "have not arrived"
    return f"{_VERBS[group.state][group.count != 1]} line {group.line}"


def _sentence(groups: Sequence[ThreadGroup], endless: bool, threads: int) -> str:
    first = groups[0]
    tail = " for ever" if endless else ""
    if len(groups) == 1:
        who = f"all {threads:,} threads" if threads > 1 else "the only thread"
        return f"{who} {_doing(first)}{tail}."
    parts = [f"{group.text} {_doing(group)}" for group in groups[:3]]
    if all(group.state == WAITS and group.line == first.line for group in groups):
        times = [f"{group.text} arrive in step {group.step + 1}" for group in groups[:3]]
        return f"at the barrier of line {first.line} {'; '.join(times)}."
    return f"{'; '.join(parts)}{tail if first.state == WAITS else ''}."


def _narrated(groups: Sequence[ThreadGroup], endless: bool) -> str:
    def number(*states: str) -> int:
        return sum(group.count for group in groups if group.state in states)

    waiting, looping = number(WAITS), number(LOOPS)
    rest = sum(group.count for group in groups) - waiting
    said = f"{plural(waiting, 'thread')} wait{'s' * (waiting == 1)}"
    if not waiting:
        loop = f"{plural(looping, 'thread')} loop{'s' * (looping == 1)}"
        return f"{loop}, and no thread changes the value that ends it."
    if rest:
        return f"{said}; {plural(rest, 'thread')} {'never come' if endless else 'are not there'}."
    return f"{said}, {'and no thread is left to come' if endless else 'but not together'}."
