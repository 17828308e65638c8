"""Parts of the global arrays that a block accesses in each phase, and how often each is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.observe.trace.access_counts import ArrayMap
from simulator.observe.trace.trace import Batch, TraceEvent

from .beats import Beats
from .roles import ATOMIC, LOAD, READ, WRITE, Roles
from .steps import Ints, StorySteps, flat, threads_on

MAX_LEVELS = 6
"""Different counts up to which each is a level of its own."""
_QUANTILES = 5


@dataclass
class BlockReach:
    """Elements of global arrays that a block accesses.

    Attributes:
        windows: Rows ``(phase, place, is_write, row, column, row past the end, column past the
            end)``. Phases count from 0; 1-D arrays have one row.
        distinct: Number of different elements read in each phase.
        of_beats: Number of different elements that the block's loads read during each beat.
        read: Indices of the elements read, by place, sorted and unique.
        written: Indices of the elements written, likewise.
    """

    windows: list[tuple[int, ...]] = field(default_factory=list)
    distinct: dict[int, int] = field(default_factory=dict)
    of_beats: list[int] = field(default_factory=list)
    read: dict[int, Ints] = field(default_factory=dict)
    written: dict[int, Ints] = field(default_factory=dict)


def reach_of(
    batch: Batch, steps: StorySteps, beats: Beats, roles: Roles, maps: dict[int, ArrayMap],
    extent: tuple[int, ...],
) -> BlockReach:  # fmt: skip
    """Return windows and elements of one block."""
    found = BlockReach()
    borders = [end for _, end, _ in beats.phases]
    parts: dict[tuple[int, int, int], list[Ints]] = {}
    loaded: dict[int, list[tuple[int, Ints]]] = {}
    for step, (number, act) in enumerate(zip(steps.events, steps.acts, strict=True)):
        event = batch.events[int(number)]
        phase = int(np.searchsorted(borders, step, side="right"))
        if event.watched >= 0 and roles.copies[event.watched]:
            to_offset, to_place = event.values[:2]
            sides = (event.place, event.offset), (to_place, to_offset)
            for writes, (place_of, offset_of) in enumerate(sides):
                by_place = _copied(event, place_of, offset_of, steps.column, maps)
                for place, part in by_place.items():
                    parts.setdefault((phase, place, writes), []).append(part)
            continue
        if act not in (LOAD, WRITE, ATOMIC):
            continue
        on = threads_on(event, steps.column, extent)
        places = flat(event.place, steps.column, extent)[on]
        offsets = flat(event.offset, steps.column, extent)[on]
        width = roles.widths[event.watched]
        for place in set(places.tolist()) & maps.keys():
            item = maps[place]
            size = max(1, item.size)
            here = np.unique(offsets[places == place] // size)
            if width > size:
                here = np.unique((here[:, None] + np.arange(width // size)).reshape(-1))
            here = here[(here >= 0) & (here < item.reads.size)]
            if len(here):
                parts.setdefault((phase, place, int(act != LOAD)), []).append(here)
                if act == LOAD:
                    loaded.setdefault(step, []).append((place, here))
    for (phase, place, writes), pieces in sorted(parts.items()):
        elements = np.unique(np.concatenate(pieces))
        found.windows.append((phase, place, writes, *window(elements, maps[place].shape)))
        if not writes:
            found.distinct[phase] = found.distinct.get(phase, 0) + len(elements)
        into = found.written if writes else found.read
        known = [into[place]] if place in into else []
        into[place] = np.unique(np.concatenate([*known, elements]))
    found.of_beats = _distinct(beats, loaded)
    return found


def _distinct(beats: Beats, loaded: dict[int, list[tuple[int, Ints]]]) -> list[int]:
    """Count the different elements loaded during each beat.

    Args:
        beats: Beats of the block.
        loaded: Place and elements of each load, by step.
    """
    known: dict[tuple[int, int], int] = {}
    found = []
    for _, _, start, end, _ in beats.beats:
        if (start, end) not in known:
            some = [part for step in range(start, end) for part in loaded.get(step, ())]
            by_place: dict[int, list[Ints]] = {}
            for place, elements in some:
                by_place.setdefault(place, []).append(elements)
            known[start, end] = sum(
                len(pieces[0] if len(pieces) == 1 else np.unique(np.concatenate(pieces)))
                for pieces in by_place.values()
            )
        found.append(known[start, end])
    return found


def copied_elements(
    batch: Batch, steps: StorySteps, roles: Roles, maps: dict[int, ArrayMap]
) -> dict[int, tuple[int, int]]:
    """Return the array that each bulk copy of a block reads, and how many elements, by step."""
    found: dict[int, tuple[int, int]] = {}
    for step, (number, watched) in enumerate(zip(steps.events, steps.watched, strict=True)):
        if watched >= 0 and roles.copies[watched]:
            event = batch.events[int(number)]
            by_place = _copied(event, event.place, event.offset, steps.column, maps)
            if by_place:
                total = sum(len(part) for part in by_place.values())
                found[step] = next(iter(by_place)), total
    return found


def shared_reads(
    batch: Batch, steps: StorySteps, roles: Roles, shared: Sequence[dict[str, Any]],
    extent: tuple[int, ...],
) -> dict[int, Ints]:  # fmt: skip
    """Count how often a block's threads read each element of its shared variables."""
    found: dict[int, Ints] = {}
    for number, act in zip(steps.events, steps.acts, strict=True):
        event = batch.events[int(number)]
        variable = roles.variable[event.watched] if act == READ else -1
        if variable < 0:
            continue
        item = shared[variable]
        on = threads_on(event, steps.column, extent)
        offsets = flat(event.offset, steps.column, extent)[on] - item["start"]
        counts = found.setdefault(variable, np.zeros(item["bytes"] // item["size"], np.int64))
        for byte in range(0, max(item["size"], roles.widths[event.watched]), item["size"]):
            elements = (offsets + byte) // item["size"]
            np.add.at(counts, elements[(elements >= 0) & (elements < len(counts))], 1)
    return found


def _copied(
    event: TraceEvent, places: Any, offsets: Any, column: int, maps: dict[int, ArrayMap]
) -> dict[int, Ints]:
    """Return the indices of the elements on one side of a bulk copy, by place."""
    found: dict[int, list[Ints]] = {}
    size = int(event.values[3].reshape(-1)[0])
    for row in range(event.offset.shape[1]):
        place = int(places[0, row, 0, column])
        if place not in maps or event.values[2][0, row, 0, column] < 0:
            continue
        own = max(1, maps[place].size)
        here = offsets[0, row, :, column]
        starts = here[event.offset[0, row, :, column] >= 0] // own
        elements = (starts[:, None] + np.arange(max(1, size // own))).reshape(-1)
        inside = (elements >= 0) & (elements < maps[place].reads.size)
        found.setdefault(place, []).append(elements[inside])
    return {place: np.unique(np.concatenate(parts)) for place, parts in found.items()}


def window(elements: Ints, shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the smallest rectangle of rows and columns that contains some elements."""
    if len(shape) < 2:
        return 0, int(elements.min()), 1, int(elements.max()) + 1
    columns = int(shape[-1])
    rows, cols = elements // columns, elements % columns
    return int(rows.min()), int(cols.min()), int(rows.max()) + 1, int(cols.max()) + 1


def use_counts(counts: Any) -> dict[str, Any]:
    """Return least, greatest and mean count, and levels ``(from, to, elements)`` of counts.

    If there are more than ``MAX_LEVELS`` different counts, each level has at least a fifth of the
    elements, except the last one.
    """
    flat = np.asarray(counts).reshape(-1)
    if not flat.size:
        return {"low": 0, "high": 0, "mean": 0.0, "levels": []}
    values, sizes = np.unique(flat, return_counts=True)
    pairs = list(zip(values.tolist(), sizes.tolist(), strict=True))
    levels: list[list[int]] = []
    for value, size in pairs:
        is_full = not levels or len(pairs) <= MAX_LEVELS or levels[-1][2] >= flat.size / _QUANTILES
        if is_full:
            levels.append([int(value), int(value), 0])
        levels[-1][1] = int(value)
        levels[-1][2] += size
    return {
        "low": int(values[0]), "high": int(values[-1]), "mean": float(flat.mean()),
        "levels": levels,
    }  # fmt: skip
