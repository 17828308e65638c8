"""Moments of single accesses: outside an array, never written, or of a copy in flight."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.hazards.hazard import Hazard

from .recorded import Moment, RecordedBlock, Recording
from .roles import KEEP
from .rows import as_numbers
from .sentence import Part, plural

OUTSIDE, UNSET, FLIGHT = "outside the array", "written by no thread", "still under way"
_IN_FLIGHT = ("copy", "proxy")
"""Cases of races with an asynchronous copy."""


def access_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moment of an access, in a list; empty if its block or array is not recorded."""
    if hazard.element is None or not hazard.involved:
        return []
    found = item_of(hazard, recording)
    if hazard.row.check == "memory" and found is not None:
        outside = not 0 <= hazard.element < int(np.prod(found[2]["shape"]))
        return _single(number, hazard, recording, OUTSIDE) if outside else []
    if hazard.row.check == "uninitialised" and hazard.space == "shared":
        return _single(number, hazard, recording, UNSET)
    if hazard.row.is_race and hazard.case in _IN_FLIGHT:
        return _in_flight(number, hazard, recording)
    return []


def item_of(hazard: Hazard, recording: Recording) -> tuple[int, int, dict[str, Any]] | None:
    """Return place, shared variable's number and description of a hazard's array."""
    if hazard.space == "shared":
        for number, item in enumerate(recording.shared):
            if item["name"] == hazard.variable:
                return -1, number, item
        return None
    for item in recording.arrays:
        if item["name"] == hazard.variable and item["drawn"]:
            return item["place"], -1, item
    return None


def cells_of(
    recording: Recording, block: RecordedBlock, step: int, thread: int, place: int,
    item: dict[str, Any],
) -> list[tuple[int, int]]:  # fmt: skip
    """Return thread and element of each access of the warp to one array."""
    threads, places, offsets = recording.warp_access(block, step, thread)
    start = item.get("start", 0)
    width = max(1, recording.roles.widths[int(block.steps.watched[step])] // item["size"])
    return [
        (one, (offset - start) // item["size"] + k)
        for one, at, offset in zip(threads.tolist(), places.tolist(), offsets.tolist(), strict=True)
        if at == place
        for k in range(width)
    ]


def step_of(
    recording: Recording, block: RecordedBlock, hazard: Hazard, which: int, element: int,
    place: int, item: dict[str, Any],
) -> tuple[int, int] | None:  # fmt: skip
    """Return step and thread of the execution in which a participant accesses an element."""
    thread = recording.thread(hazard.involved[which].thread)
    for step in recording.executions(block, hazard.involved[which], thread):
        if recording.roles.copies[int(block.steps.watched[step])]:
            continue
        first = thread if thread is not None else int(np.flatnonzero(block.steps.lanes[step])[0])
        for one, at in cells_of(recording, block, step, first, place, item):
            if at == element and thread in (None, one):
                return step, one
    return None


def value_of(
    recording: Recording, block: RecordedBlock, step: int, thread: int, item: dict[str, Any]
) -> float | None:
    """Return the value of a thread's access, as a number of the array's type."""
    values = recording.values(block, step)
    if values is None:
        return None
    kind = item.get("kind") or np.dtype(item.get("type", "V1")).kind
    return float(as_numbers(values[thread : thread + 1], kind)[0])


def label_of(item: dict[str, Any], element: int) -> str:
    """Return an element in the source's notation; one outside the array by its linear index."""
    shape = item["shape"]
    if len(shape) < 2 or not 0 <= element < int(np.prod(shape)):
        return f"{item['name']}[{element}]"
    return str(item["name"]) + "".join(f"[{int(i)}]" for i in np.unravel_index(element, shape))


def hue_of(recording: Recording, place: int, variable: int) -> int:
    """Return the hue of a global array, or of the one that is copied into a shared variable."""
    place = recording.roles.sources[variable] if variable >= 0 else place
    return recording.hues.get(place, 2)


def _single(number: int, hazard: Hazard, recording: Recording, kind: str) -> list[Moment]:
    block, found = recording.block(hazard.block), item_of(hazard, recording)
    if block is None or found is None or hazard.element is None:
        return []
    place, variable, item = found
    at = step_of(recording, block, hazard, 0, hazard.element, place, item)
    if at is None:
        return []
    step, thread = at
    role, line = hazard.involved[0].role, hazard.involved[0].source.line
    name = recording.thread_name(thread)
    who = f"{name} of {recording.block_name(block.steps.block)}"
    element: Part = (label_of(item, hazard.element), hue_of(recording, place, variable))
    cells = cells_of(recording, block, step, thread, place, item)
    total = int(np.prod(item["shape"]))
    if kind == OUTSIDE:
        end = f"; {item['name']} has {plural(total, 'element')}."
        say = _outside(cells, total, thread // 32, role, item["name"])
        more = f"The launch {role}s outside {_times(hazard.count)}. "
        more += "On a GPU another array may be there, or no memory at all."
        tag = f"{role}s outside"
    else:
        end = ", which no thread has written."
        say = f"{capital(name)} gets whatever stood there before."
        more = f"The launch reads such elements {_times(hazard.count)}. "
        more += "Shared memory holds no zeros at the start."
        tag = "reads"
    return [
        Moment(
            number, kind, "outside" if kind == OUTSIDE else "shared", block.steps.block, step,
            thread, place=place, variable=variable, element=hazard.element,
            got=value_of(recording, block, step, thread, item), cells=cells,
            title=[(f"{capital(who)} {role}s ", -1), element, (end, -1)], more=more,
            say=[(capital(f"{role}. "), -2), (say, -1)], tags=[(step, thread // 32, line, tag)],
        )
    ]  # fmt: skip


def _outside(cells: list[tuple[int, int]], total: int, warp: int, role: str, name: str) -> str:
    count = len({thread for thread, element in cells if not 0 <= element < total})
    return f"{plural(count, 'thread')} of warp {warp} {role}{'s' * (count == 1)} outside {name}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def capital(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _in_flight(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moment at which a thread reads what an asynchronous copy writes.

    ``cells`` are the elements that the reader's warp reads in this step and whose last write is
    the copy.
    """
    roles = [item.role for item in hazard.involved[:2]]
    block, found = recording.block(hazard.block), item_of(hazard, recording)
    if block is None or found is None or sorted(roles) != ["read", "write"]:
        return []
    place, variable, item = found
    assert hazard.element is not None
    reads, writes = (
        step_of(recording, block, hazard, roles.index(role), hazard.element, place, item)
        for role in ("read", "write")
    )
    if reads is None or writes is None or variable < 0:
        return []
    step, thread = reads
    copies = set(recording.numbers(hazard.involved[roles.index("write")]))
    last = _last_writers(recording, block, step, variable)
    cells = [
        (one, element)
        for one, element in cells_of(recording, block, step, thread, place, item)
        if last.get(element) in copies
    ]
    name, copier = recording.thread_name(thread), recording.thread_name(writes[1])
    element: Part = (label_of(item, hazard.element), hue_of(recording, place, variable))
    lines = {role: hazard.involved[roles.index(role)].source.line for role in ("read", "write")}
    between = plural(abs(step - writes[0]), "step")
    early = writes[0] < step
    end = " while a copy to it may still be under way." if early else " before it is copied."
    wait = hazard.notes[-1] if len(hazard.notes) > 1 else ""
    more = f"Nothing waits for the copy of line {lines['write']}."
    if wait:
        more += f" {capital(wait)}."
    if early:
        say = f"The copy by {copier} began {between} before; nothing has waited for it."
    else:
        say = f"The copy by {copier} follows {between} later."
    return [
        Moment(
            number, FLIGHT, "shared", block.steps.block, step, thread, writes[0], writes[1],
            place=place, variable=variable, element=hazard.element,
            got=value_of(recording, block, step, thread, item), cells=cells,
            title=[(f"{capital(name)} reads ", -1), element, (end, -1)], more=more,
            say=[("Read. ", -2), (say, -1)],
            tags=[(step, thread // 32, lines["read"], "reads"),
                  (writes[0], writes[1] // 32, lines["write"], "copies")],
        )
    ]  # fmt: skip


def _last_writers(
    recording: Recording, block: RecordedBlock, before: int, variable: int
) -> dict[int, int]:
    """Return the instruction that wrote each element of a shared variable last before a step."""
    found: dict[int, int] = {}
    item = recording.shared[variable]
    for step in range(before):
        watched = int(block.steps.watched[step])
        if block.steps.acts[step] != KEEP or recording.roles.variable[watched] != variable:
            continue
        if recording.roles.copies[watched]:
            continue  # a bulk copy: its elements are not lanes of an access
        for warp in np.flatnonzero(block.steps.lanes[step]).tolist():
            cells = cells_of(recording, block, step, warp * 32, -1, item)
            found |= {element: watched for _, element in cells}
    return found
