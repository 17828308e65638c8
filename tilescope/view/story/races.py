"""Moments of races: the value read and the value meant, or two accesses that nothing orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simulator.core.geometry import WARP
from simulator.hazards.hazard import Hazard

from .accesses import capital, cells_of, hue_of, item_of, label_of, step_of, value_of
from .recorded import Moment, RecordedBlock, Recording
from .roles import KEEP, READ, RELEASE
from .rows import as_numbers
from .sentence import plural, quoted
from .steps import flat, threads_on

NEVER, OLD, OVERWRITTEN, LUCK = "not yet written", "an old value", "overwritten", "right by luck"
MEETING = "in no order"
ORDER = (NEVER, OLD, OVERWRITTEN, LUCK)


def race_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return one moment of each kind, wrong values first; right ones only if there is no other."""
    kinds: dict[str, Moment] = {}
    for block in recording.blocks:
        for moment in _in_block(number, hazard, block, recording):
            kinds.setdefault(moment.kind, moment)
    wrong = [kinds[kind] for kind in ORDER[:3] if kind in kinds]
    return wrong or [kinds[kind] for kind in (LUCK,) if kind in kinds]


def meeting_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moment of a race's two accesses, in a list; empty if one is not recorded.

    A hazard that is no race may have one access, and says by itself why it is wrong.
    """
    found = item_of(hazard, recording)
    if found is None or hazard.element is None or not hazard.involved:
        return []
    place, variable, item = found
    accesses = []
    for which, part in enumerate(hazard.involved[:2]):
        block = recording.block(part.block)
        at = (
            step_of(recording, block, hazard, which, hazard.element, place, item) if block else None
        )
        if block is None or at is None:
            return []
        accesses.append((block, *at))
    if not hazard.row.is_race or len(accesses) < 2:
        return [_forbidden(number, hazard, recording, accesses, found)]
    (block, step, thread), (other, other_step, other_thread) = accesses
    within = block is other
    names = [
        recording.thread_name(one)
        + ("" if within else f" of {recording.block_name(where.steps.block)}")
        for where, _, one in accesses
    ]
    roles = [part.role for part in hazard.involved[:2]]
    lines = [part.source.line or part.ptx_line for part in hazard.involved[:2]]
    element = label_of(item, hazard.element), hue_of(recording, place, variable)
    if roles[0] == roles[1]:
        title = [(f"{capital(names[0])} and {names[1]} both {roles[0]} ", -1), element, (".", -1)]
    else:
        title = [(f"{capital(names[0])} {roles[0]}s ", -1), element,
                 (f", which {names[1]} {roles[1]}s.", -1)]  # fmt: skip
    say = "The blocks may run in any order."
    if within:
        between = abs(step - other_step)
        first, second = names if step <= other_step else names[::-1]
        say = f"Here {first} is {plural(between, 'step')} before {second}."
        if not between:
            say = "Both are lanes of one warp, in one step."
    meets = [value_of(recording, *access, item) for access in accesses]
    notes = [capital(note) + "." for note in hazard.notes if not note[:1].isdigit()]
    more = " ".join(["Nothing orders the two accesses.", *notes])
    shown = [other_step if within else -1, other_thread // 32]
    return [
        Moment(
            number, MEETING, "accesses", block.steps.block, step, thread, other_step, other_thread,
            other.steps.block, place=place, variable=variable, element=hazard.element,
            cells=cells_of(recording, block, step, thread, place, item),
            other_cells=cells_of(recording, other, other_step, other_thread, place, item),
            values=meets, remark=_order(accesses, roles, meets),
            title=title, more=more, say=[("In no order. ", -2), (say, -1)],
            tags=[(step, thread // 32, lines[0], f"{roles[0]}s"),
                  (shown[0], shown[1], lines[1], f"{roles[1]}s")],
        )
    ]  # fmt: skip


def _order(
    accesses: list[tuple[RecordedBlock, int, int]], roles: list[str], values: list[float | None]
) -> str:
    """Return in which order a GPU may run two accesses, or that both write the same."""
    (block, step, thread), (other, other_step, other_thread) = accesses
    if roles == ["write", "write"] and values[0] is not None and values[0] == values[1]:
        return "Both write the same value."
    if block is not other:
        return (
            "The simulator runs the blocks in one order; a GPU may run them in another, or at once."
        )
    if thread // WARP != other_thread // WARP:
        return "The simulator runs the warps in one order; a GPU may run them in another."
    if step != other_step:
        return "The simulator runs the lanes of a warp in step; on a GPU one may run ahead."
    return "Here the last lane wins; on a GPU it may be another."


def _forbidden(
    number: int, hazard: Hazard, recording: Recording,
    accesses: list[tuple[RecordedBlock, int, int]], found: tuple[int, int, dict[str, Any]],
) -> Moment:  # fmt: skip
    place, variable, item = found
    block, step, thread = accesses[0]
    more = " ".join(capital(note) + "." for note in hazard.notes)
    tags, cells = [], []
    for (where, at, one), part in zip(accesses, hazard.involved, strict=False):
        line = part.source.line or part.ptx_line
        tags.append((at if where is block else -1, one // 32, line, f"{part.role}s"))
        cells.append(cells_of(recording, where, at, one, place, item))
    moment = Moment(
        number, hazard.kind.replace("-", " "), "accesses", block.steps.block, step, thread,
        place=place, variable=variable, element=hazard.element or 0, cells=cells[0],
        values=[value_of(recording, *access, item) for access in accesses],
        title=quoted(hazard.title), more=more, tags=tags,
        say=[(capital(f"{hazard.involved[0].role}. "), -2),
             (f"{capital(recording.thread_name(thread))} of "
              f"{recording.block_name(block.steps.block)}.", -1)],
    )  # fmt: skip
    if len(accesses) < 2:
        return moment
    other, other_step, other_thread = accesses[1]
    return replace(
        moment,
        other_step=other_step,
        other_thread=other_thread,
        other_block=other.steps.block,
        other_cells=cells[1],
    )


def _in_block(
    number: int, hazard: Hazard, block: RecordedBlock, recording: Recording
) -> list[Moment]:
    roles, watched, extent = recording.roles, recording.watched, recording.extent
    batch, steps = block.batch, block.steps
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
            (at, reader), (other, writer) = read, write
            found[kind] = Moment(
                number, kind, "shared", steps.block, at, reader, other, writer,
                variable=key[0], element=key[1], got=got, should=should,
                tags=[(at, reader // 32, line_of(at), "reads"),
                      (other, writer // 32, line_of(other),
                       f"writes, too {'late' if other > at else 'early'}")],
            )  # fmt: skip

    def line_of(step: int) -> int:
        item = watched[int(steps.watched[step])]
        return int(item["source"] or item["ptx"])

    def differ(one: int, other: int) -> bool:
        return one != other and not (across and one // 32 == other // 32)

    for step, (event_number, act) in enumerate(zip(steps.events, steps.acts, strict=True)):
        event = batch.events[int(event_number)]
        if act == RELEASE:
            reads, fresh = {}, {}
            continue
        moves = act in (READ, KEEP) and not roles.copies[event.watched]
        if not moves or roles.variable[event.watched] < 0 or not event.values:
            continue
        variable = roles.variable[event.watched]
        item = recording.shared[variable]
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
