"""Moments of a race in shared memory: the value read, the value meant, and their steps."""

from __future__ import annotations

import numpy as np

from simulator.hazards.hazard import Hazard

from .recorded import Moment, RecordedBlock, Recording
from .roles import KEEP, READ, RELEASE
from .rows import as_numbers
from .steps import flat, threads_on

NEVER, OLD, OVERWRITTEN, LUCK = "never written", "an old value", "overwritten", "right by luck"
ORDER = (NEVER, OLD, OVERWRITTEN, LUCK)


def race_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return one moment of each kind, wrong values first; right ones only if there is no other."""
    kinds: dict[str, Moment] = {}
    for block in recording.blocks:
        for moment in _in_block(number, hazard, block, recording):
            kinds.setdefault(moment.kind, moment)
    wrong = [kinds[kind] for kind in ORDER[:3] if kind in kinds]
    return wrong or [kinds[kind] for kind in (LUCK,) if kind in kinds]


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
