"""Contents of a shared variable after each barrier, and the reads behind every value."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.observe.trace.access_counts import ArrayMap
from simulator.observe.trace.trace import Batch

from .roles import ATOMIC, KEEP, LOAD, READ, RELEASE, WRITE, Roles
from .steps import StorySteps, flat, threads_on

MAX_WIDTH, MAX_ROWS = 1024, 40
SHARED_ROW = -1


@dataclass
class MemoryRow:
    """Contents of an array after a barrier.

    Attributes:
        place: Global array's number, or ``SHARED_ROW`` for the shared variable.
        first: Index of the leftmost element drawn.
        values: Contents, NaN for elements not yet written.
        edges: Pairs ``(to, from)``: element ``from`` of the row above is an operand of ``to``.
        written: Elements written in this row.
        name: Name of the array or of the rewriting.
        round: Number of the rewriting of the shared variable; 0: its first contents, or an array.
        end: Step with which it is complete, counted from 1; 0: an array.
        combined: Elements made of two of the row above, by what they are, such as ``sum``;
            ``OF`` if they are one of the two.
        threads: Threads that write elements.
    """

    place: int
    first: int = 0
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    edges: list[tuple[int, int]] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    round: int = 0
    name: str = ""
    end: int = 0
    combined: dict[str, list[int]] = field(default_factory=dict)
    threads: set[int] = field(default_factory=set)

    @property
    def what(self) -> str:
        """Kind of the row in a word or two."""
        if self.place != SHARED_ROW:
            return "global"
        if not self.round:
            return "loaded"
        return f"reach {self.reach}" if self.reach else ""

    @property
    def reach(self) -> int:
        """Largest distance between an element and one of its operands."""
        return max((abs(to - source) for to, source in self.edges), default=0)


def rows_of(
    batch: Batch, steps: StorySteps, roles: Roles, maps: dict[int, ArrayMap], variable: int,
    start: int, size: int, width: int, letter: str, extent: tuple[int, ...],
) -> list[MemoryRow]:  # fmt: skip
    """Return the rows of one block: global input, shared variable after each barrier, output.

    Args:
        batch: Batch of the block.
        steps: Steps of the block.
        roles: Roles of the instructions.
        maps: Global arrays by place.
        variable: Number of the shared variable.
        start: First byte of the variable.
        size: Bytes of an element.
        width: Elements of a row. Indices count modulo ``width``: two alternating buffers are one.
        letter: Kind of the elements, ``f``, ``i`` or ``u``.
        extent: Extents of a block, (z, y, x).
    """
    threads = int(np.prod(extent))
    state = np.full(width, np.nan)
    interval: list[set[int]] = [set() for _ in range(threads)]
    worked: list[set[int]] = [set() for _ in range(threads)]
    operations = {number for found in roles.combines.values() for number in found}
    taken: list[dict[int, int]] = [{} for _ in range(threads)]
    rows: list[MemoryRow] = []
    now = MemoryRow(SHARED_ROW)
    inputs: dict[int, dict[int, float]] = {}
    first_edges: list[tuple[int, int, int]] = []
    outputs: dict[int, dict[int, float]] = {}
    out_edges: list[tuple[int, int, int]] = []

    for step, (number, act) in enumerate(zip(steps.events, steps.acts, strict=True), 1):
        event = batch.events[int(number)]
        if act == RELEASE:
            if now.written:
                now.values, now.end = state.copy(), step
                rows.append(now)
                now = MemoryRow(SHARED_ROW)
                interval = [set() for _ in range(threads)]
                worked = [set() for _ in range(threads)]
            continue
        if event.watched in operations:
            for thread in np.flatnonzero(threads_on(event, steps.column, extent)).tolist():
                worked[thread].add(event.watched)
        if act not in (LOAD, READ, KEEP, WRITE, ATOMIC) or roles.copies[event.watched]:
            continue
        on = np.flatnonzero(threads_on(event, steps.column, extent))
        offsets = flat(event.offset, steps.column, extent)[on]
        places = flat(event.place, steps.column, extent)[on]
        values = flat(event.values[0], steps.column, extent)[on] if event.values else None
        if values is None:
            continue
        item = maps.get(int(places[0])) if len(places) else None
        numbers = as_numbers(values, item.dtype.kind if item is not None else letter)
        for thread, offset, place, value in zip(
            on.tolist(), offsets.tolist(), places.tolist(), numbers.tolist(), strict=True
        ):
            if act == LOAD and place in maps:
                at = offset // maps[place].size
                inputs.setdefault(place, {})[at] = value
                taken[thread][place] = at
            elif act == READ and roles.variable[event.watched] == variable:
                interval[thread].add((offset - start) // size % width)
            elif act == KEEP and roles.variable[event.watched] == variable:
                at = (offset - start) // size % width
                state[at] = value
                now.written.append(at)
                now.threads.add(thread)
                for operation, name in roles.combines.get(event.watched, {}).items():
                    if operation < 0 or operation in worked[thread]:
                        now.combined.setdefault(name, []).append(at)
                if not rows:
                    first_edges += [(at, p, i) for p, i in taken[thread].items()]
                now.edges += [(at, source) for source in interval[thread]]
            elif act in (WRITE, ATOMIC) and place in maps:
                at = offset // maps[place].size
                outputs.setdefault(place, {})[at] = value
                out_edges += [(place, at, source) for source in interval[thread]]
    if now.written:
        now.values, now.end = state.copy(), len(steps.acts)
        rows.append(now)
    for number, row in enumerate(rows):
        row.round = number
        row.name = f"round {number}" if number else ""
    before = [_of_array(place, found, first_edges) for place, found in list(inputs.items())[:1]]
    after = []
    for place, found in sorted(outputs.items(), key=lambda item: -len(item[1]))[:1]:
        row, _ = _of_array(place, found, [])
        row.edges = [(at - row.first, source) for p, at, source in out_edges if p == place]
        after.append(row)
    if before and rows:
        row, rows[0].edges = before[0]
        rows.insert(0, row)
    return [*rows, *after][:MAX_ROWS]


def _of_array(
    place: int, found: dict[int, float], edges: list[tuple[int, int, int]]
) -> tuple[MemoryRow, list[tuple[int, int]]]:
    """Return elements of a global array as a row, and the edges to the row below."""
    first = min(found)
    width = min(MAX_WIDTH, max(found) - first + 1)
    row = MemoryRow(place, first, np.full(width, np.nan))
    for at, value in found.items():
        if at - first < width:
            row.values[at - first] = value
            row.written.append(at - first)
    return row, [(at, i - first) for at, p, i in edges if p == place and i - first < width]


def as_numbers(values: Any, kind: str) -> NDArray[np.float64]:
    """Return recorded bits as numbers of a kind, ``f``, ``i`` or ``u``: PTX moves them untyped."""
    if kind in ("f", "i", "u") and values.dtype.kind in "iu" and values.dtype.itemsize > 1:
        values = np.ascontiguousarray(values).view(f"{kind}{values.dtype.itemsize}")
    found: NDArray[np.float64] = values.astype(np.float64)
    return found
