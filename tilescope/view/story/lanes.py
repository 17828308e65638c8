"""Moments of all other hazards with an instruction: what each lane of the warp accesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.core.geometry import WARP
from simulator.hazards.hazard import Hazard, Participant
from simulator.isa.memory.address_windows import RANK_BITS, WINDOWS
from simulator.observe.trace.access_counts import LOCAL, NOWHERE, SHARED

from .accesses import capital, label_of, value_of
from .recorded import Moment, RecordedBlock, Recording
from .sentence import quoted
from .steps import threads_on

_VERBS = {"read": "reads", "write": "writes", "atomic": "updates"}
_BACK = 1000
"""Steps of the block before a moment in which the lanes' last accesses are sought."""
_LISTED = 3
"""Participants of a hazard that the page marks."""


def lane_moments(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moment of a hazard's thread and its warp, in a list; empty if not recorded.

    If the instruction is no step, as a trap, the moment is the thread's last step before it.
    """
    if not hazard.involved:
        return []
    shown = _shown(hazard)
    block = recording.block(shown.block)
    found = _place(recording, block, shown) if block else None
    if block is None or found is None:
        return []
    step, thread, is_step = found
    lanes = _lanes(recording, block, hazard, step, thread)
    own = next(text for one, _, text in lanes if one == thread)
    is_access = is_step and bool(_accesses(recording, block, hazard, step, thread))
    kind = hazard.kind.replace("-", " ")
    facts, tags = [], []
    for part in hazard.involved[:_LISTED]:
        verb, what = _VERBS.get(part.role, kind), part.element
        tags.append((step if part is shown else -1, thread // WARP, _line(part), verb))
        if part is shown and (is_access or not what):
            verb, what = verb if is_access else "last access before", own
        facts.append((f"{capital(_who(recording, part))}, line {_line(part)}", verb, what))
    verb = shown.role if shown.role in _VERBS else kind
    say = f"{capital(_who(recording, shown))}, line {_line(shown)}."
    before = f"Each lane is shown with its last access before line {_line(shown)}."
    return [
        Moment(
            number, kind, "lanes", block.steps.block, step, thread, lanes=lanes, facts=facts,
            tags=tags, remark="" if is_access or not own else before,
            title=quoted(hazard.title), more=" ".join(f"{capital(n)}." for n in hazard.notes),
            say=[(f"{capital(verb)}. ", -2), (say, -1)],
        )
    ]  # fmt: skip


def _place(
    recording: Recording, block: RecordedBlock, shown: Participant
) -> tuple[int, int, bool] | None:
    """Return step and thread, and whether the instruction is a step."""
    thread = recording.thread(shown.thread)
    steps = recording.executions(block, shown, thread)
    if steps:
        if thread is None:
            thread = int(np.flatnonzero(threads_on(
                block.event(steps[0]), block.steps.column, recording.extent
            ))[0])  # fmt: skip
        return steps[0], thread, True
    thread = thread or 0
    own = np.flatnonzero(block.steps.lanes[:, thread // WARP])
    own = own[block.steps.watched[own] >= 0].tolist()
    items = [recording.watched[int(n)] for n in block.steps.watched[own]]
    first = _first_line(recording, shown.ptx_line)
    before = [s for s, one in zip(own, items, strict=True) if first <= one["ptx"] <= shown.ptx_line]
    if not before:  # a function of its own, such as __syncwarp() of a build that inlines nothing
        line = shown.source.line
        before = [s for s, one in zip(own, items, strict=True) if 0 < one["source"] <= line]
    return ((before or own)[-1], thread, False) if own else None


def _first_line(recording: Recording, line: int) -> int:
    """Return the first PTX line of the function that has a line."""
    assert recording.run.trace is not None
    functions = recording.run.trace.program.module.functions.values()
    starts = [one.body[0].line for one in functions if one.body]
    return max((start for start in starts if start <= line), default=0)


def _who(recording: Recording, part: Participant) -> str:
    if part.thread is None or part.block is None:
        return part.role
    thread = recording.thread_name(recording.thread(part.thread) or 0)
    return f"{thread} of {recording.block_name(recording.number(part.block))}"


def _shown(hazard: Hazard) -> Participant:
    """Return the participant at which the page opens: of two accesses the read."""
    reads = (item for item in hazard.involved[:2] if item.role == "read")
    return next(reads, hazard.involved[0])


def _line(part: Participant) -> int:
    return part.source.line or part.ptx_line


def _lanes(
    recording: Recording, block: RecordedBlock, hazard: Hazard, step: int, thread: int
) -> list[tuple[int, bool, str]]:
    """Return each thread of the warp, whether it is active, and its last access up to a step."""
    on = threads_on(block.event(step), block.steps.column, recording.extent)
    first = thread // WARP * WARP
    warp = range(first, min(first + WARP, len(on)))
    texts: dict[int, str] = {}
    wanted = {one for one in warp if on[one]}
    for before in range(step, max(-1, step - _BACK), -1):
        if not wanted - texts.keys():
            break
        if block.steps.lanes[before][thread // WARP]:
            found = _accesses(recording, block, hazard, before, thread)
            texts = {one: text for one, text in found.items() if one in wanted} | texts
    return [(one, bool(on[one]), texts.get(one, "")) for one in warp]


def _accesses(
    recording: Recording, block: RecordedBlock, hazard: Hazard, step: int, thread: int
) -> dict[int, str]:
    """Return what each thread of a warp accesses in a step, and the value unless it is refused."""
    watched = int(block.steps.watched[step])
    if watched < 0 or block.event(step).offset is None or recording.roles.copies[watched]:
        return {}
    item = recording.watched[watched]
    threads, places, offsets = recording.warp_access(block, step, thread)
    rows = list(zip(threads.tolist(), places.tolist(), offsets.tolist(), strict=True))
    own = next((offset for one, _, offset in rows if one == thread), 0)
    found = {}
    for one, place, offset in rows:
        array, at = _array(recording, place, offset)
        if array is not None:
            text = _element(array, at, item["width"])
            value = value_of(recording, block, step, one, array)
            if (
                hazard.row.check != "memory"
                and value is not None
                and item["width"] <= array["size"]
            ):
                text += f" = {_number(value)}"
        elif place == LOCAL and hazard.space == "local" and hazard.element is not None:
            index = hazard.element + (offset - own) // item["size"]
            text = f"{hazard.variable}[{index}]"
        else:
            text = f"{item['space']} {offset:#x}" if place == LOCAL else f"{offset:#x}"
        found[one] = text
    return found


def _array(recording: Recording, place: int, offset: int) -> tuple[dict[str, Any] | None, int]:
    """Return the array at a place, and the offset in it; in a cluster also that of other blocks."""
    if place >= 0:
        return next((one for one in recording.arrays if one["place"] == place), None), offset
    rank = 0
    if place == NOWHERE and offset >> 60 == WINDOWS["shared"] >> 60:
        rank, offset = divmod(offset - WINDOWS["shared"], 1 << RANK_BITS)
    if place == SHARED or rank > 0:
        for one in recording.shared:
            if one["start"] <= offset < one["start"] + one["bytes"]:
                name = f"rank {rank - 1}: {one['name']}" if rank else one["name"]
                return one | {"name": name}, offset - one["start"]
    return None, offset


def _element(array: dict[str, Any], at: int, width: int) -> str:
    if at % array["size"] or width > array["size"]:
        return f"{array['name']} at byte {at}"
    return label_of(array, at // array["size"])


def _number(value: float) -> str:
    text = str(int(value)) if value == int(value) else f"{value:.4g}"
    return text.replace("-", "\u2212")
