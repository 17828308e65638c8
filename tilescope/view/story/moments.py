"""Moments of a race in shared memory: the value read, the value meant, and their steps."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from simulator import Run
from simulator.hazards.hazard import Hazard
from simulator.observe.trace.trace import Batch

from .roles import KEEP, READ, RELEASE, Roles
from .rows import as_numbers
from .steps import StorySteps, flat, threads_on

NEVER, OLD, OVERWRITTEN, LUCK = "never written", "an old value", "overwritten", "right by luck"
_ORDER = (NEVER, OLD, OVERWRITTEN, LUCK)


@dataclass(frozen=True)
class Moment:
    """One effect of a race in the recorded run.

    Attributes:
        hazard: Number of the race in ``Run.hazards``.
        kind: ``NEVER``, ``OLD``, ``OVERWRITTEN`` or ``LUCK``.
        block: Linear number of the block.
        step: Step of the read; ``thread`` reads.
        other_step: Step of the write; ``other_thread`` writes.
        variable: Number of the shared variable.
        element: Index in the variable.
        got: Value that was read.
        should: Value that the kernel means to read.
    """

    hazard: int
    kind: str
    block: int
    step: int
    thread: int
    other_step: int
    other_thread: int
    variable: int
    element: int
    got: float | None
    should: float | None


def moments_of(
    run: Run, found: Sequence[tuple[Batch, StorySteps]], roles: Roles,
    watched: Sequence[dict[str, Any]], shared: Sequence[dict[str, Any]],
    extent: tuple[int, ...],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return one moment of each kind, of the first race that has any; wrong values first."""
    for number, hazard in enumerate(run.hazards):
        if not hazard.row.is_race or hazard.severity != "error":
            continue
        kinds: dict[str, Moment] = {}
        for batch, steps in found:
            for moment in _in_block(number, hazard, batch, steps, roles, watched, shared, extent):
                kinds.setdefault(moment.kind, moment)
        wrong = [kinds[kind] for kind in _ORDER[:3] if kind in kinds]
        if wrong or LUCK in kinds:
            return [_plain(moment) for moment in wrong or [kinds[LUCK]]]
    return []


def _plain(moment: Moment) -> dict[str, Any]:
    made = asdict(moment)
    for name in ("got", "should"):
        if made[name] is not None and not np.isfinite(made[name]):
            made[name] = None
    return made


def _in_block(
    number: int, hazard: Hazard, batch: Batch, steps: StorySteps, roles: Roles,
    watched: Sequence[dict[str, Any]], shared: Sequence[dict[str, Any]], extent: tuple[int, ...],
) -> list[Moment]:  # fmt: skip
    names = {hazard.variable, *hazard.also}
    lines = {item.source.line or item.ptx_line for item in hazard.involved}
    across = "warp" in hazard.message and "lane" not in hazard.message
    late_write = hazard.involved[0].role == "read"  # the read is first in program order

    def own(index: int) -> bool:
        item = watched[index]
        return (item["source"] or item["ptx"]) in lines and roles.variable[index] >= 0

    known: dict[tuple[int, int], tuple[int, int, float]] = {}
    reads: dict[tuple[int, int], list[tuple[int, int, float, bool, float]]] = {}
    fresh: dict[tuple[int, int], tuple[int, int, float, float | None]] = {}
    found: dict[str, Moment] = {}

    def add(kind: str, key: tuple[int, int], read: tuple[int, int], write: tuple[int, int],
            got: float, should: float | None) -> None:  # fmt: skip
        if kind not in found and not (kind != LUCK and should == got):
            found[kind] = Moment(number, kind, steps.block, *read, *write, *key, got, should)

    def differ(one: int, other: int) -> bool:
        return one != other and not (across and one // 32 == other // 32)

    for step, (event_number, act) in enumerate(zip(steps.events, steps.acts, strict=True)):
        event = batch.events[int(event_number)]
        if act == RELEASE:
            reads, fresh = {}, {}
            continue
        if act not in (READ, KEEP) or roles.variable[event.watched] < 0 or not event.values:
            continue
        variable = roles.variable[event.watched]
        item = shared[variable]
        mine = own(event.watched) and item["name"] in names
        on = np.flatnonzero(threads_on(event, steps.column, extent))
        places = (flat(event.offset, steps.column, extent)[on] - item["start"]) // item["size"]
        values = as_numbers(flat(event.values[0], steps.column, extent)[on], item["kind"]).tolist()
        for thread, element, value in zip(on.tolist(), places.tolist(), values, strict=True):
            key = variable, element
            if act == READ and mine:
                written = known.get(key)
                reads.setdefault(key, []).append(
                    (step, thread, value, written is None, written[2] if written else np.nan)
                )
                if key in fresh and differ(thread, fresh[key][1]):
                    at, writer, _, earlier = fresh[key]
                    kind = OVERWRITTEN if late_write and earlier is not None else LUCK
                    add(kind, key, (step, thread), (at, writer), value,
                        earlier if kind == OVERWRITTEN else value)  # fmt: skip
            elif act == KEEP:
                for at, reader, got, unset, _ in reads.get(key, ()) if mine else ():
                    if not differ(thread, reader):
                        continue
                    kind = LUCK if late_write else NEVER if unset else OLD
                    add(kind, key, (at, reader), (step, thread), got,
                        got if kind == LUCK else value)  # fmt: skip
                before = known.get(key)
                fresh[key] = step, thread, value, before[2] if before else None
                known[key] = step, thread, value
    return list(found.values())


def cause_of(run: Run) -> str:
    """Return the cause of the first error in a few words, for the page's header."""
    errors = [hazard for hazard in run.hazards if hazard.severity == "error"]
    if not errors:
        return ""
    heading, colon, _ = errors[0].heading.partition(":")
    text = heading if colon and len(heading) < 40 else errors[0].row.title
    return text[:1].lower() + text[1:] if not text[:2].isupper() else text


def wrong_outputs(run: Run, fixed: Run) -> tuple[int, int]:
    """Return the number of output elements that differ from the fixed run, and of all elements."""
    assert run.trace is not None
    assert fixed.trace is not None
    wrong = total = 0
    for number, item in run.trace.maps.items():
        other = fixed.trace.maps.get(number)
        if other is None or not other.writes.any() or not item.argument:
            continue
        mine, right = item.after.view(item.dtype), other.after.view(other.dtype)
        if item.dtype.kind == "f":
            same = np.isclose(mine, right, rtol=1e-4, atol=1e-6, equal_nan=True)
        else:
            same = mine == right
        wrong += int((~same).sum())
        total += len(mine)
    return wrong, total
