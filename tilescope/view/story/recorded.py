"""Recorded blocks of a run, and a moment of a hazard in one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator import Run
from simulator.hazards.hazard import Participant, Triple
from simulator.observe.trace.trace import Batch, TraceEvent

from .roles import Roles
from .sentence import Part
from .steps import Ints, StorySteps, flat, threads_on


@dataclass(frozen=True)
class RecordedBlock:
    """One block of the page, with its batch."""

    batch: Batch
    steps: StorySteps

    def event(self, step: int) -> TraceEvent:
        """Return the event of a step."""
        return self.batch.events[int(self.steps.events[step])]

    def runs(self, step: int, thread: int, extent: tuple[int, ...]) -> bool:
        """Return whether a thread is active in a step."""
        return bool(threads_on(self.event(step), self.steps.column, extent)[thread])


@dataclass(frozen=True)
class Recording:
    """Recorded blocks of a run, and the tables by which the page describes them.

    Attributes:
        blocks: Blocks whose steps the page has.
        roles: Roles of the instructions.
        watched: Recorded instructions, as in the page's data.
        arrays: Global arrays, likewise.
        shared: Shared variables, likewise.
        extent: Extents of a block, (z, y, x).
        hues: Hues of the global arrays by place.
    """

    run: Run
    blocks: Sequence[RecordedBlock]
    roles: Roles
    watched: Sequence[dict[str, Any]]
    arrays: Sequence[dict[str, Any]]
    shared: Sequence[dict[str, Any]]
    extent: tuple[int, ...]
    hues: Mapping[int, int]

    def block(self, place: Triple | None) -> RecordedBlock | None:
        """Return a block by its coordinates, if the page has its steps."""
        if place is None:
            return None
        number = self.number(place)
        return next((block for block in self.blocks if block.steps.block == number), None)

    def number(self, place: Triple) -> int:
        """Return the linear number of a block."""
        gx, gy = self.run.grid[:2]
        return place[0] + gx * (place[1] + gy * place[2])

    def thread(self, place: Triple | None) -> int | None:
        """Return the linear number of a thread."""
        if place is None:
            return None
        bx, by = self.run.block[:2]
        return place[0] + bx * (place[1] + by * place[2])

    def numbers(self, item: Participant) -> list[int]:
        """Return the recorded instructions of a hazard's participant."""
        return [n for n, one in enumerate(self.watched) if one["ptx"] == item.ptx_line]

    def executions(self, block: RecordedBlock, item: Participant, thread: int | None) -> list[int]:
        """Return the steps at which a thread, or any one, executes a participant's instruction."""
        steps = np.flatnonzero(np.isin(block.steps.watched, self.numbers(item))).tolist()
        return [s for s in steps if thread is None or block.runs(s, thread, self.extent)]

    def warp_access(self, block: RecordedBlock, step: int, thread: int) -> tuple[Ints, Ints, Ints]:
        """Return threads, places and byte offsets of the accesses of a thread's warp in a step."""
        event = block.event(step)
        on = threads_on(event, block.steps.column, self.extent)
        warp = np.arange(len(on)) // 32 == thread // 32
        threads: Ints = np.flatnonzero(on & warp)
        places, offsets = (
            flat(part, block.steps.column, self.extent)[threads]
            for part in (event.place, event.offset)
        )
        return threads, places, offsets

    def values(self, block: RecordedBlock, step: int) -> NDArray[Any] | None:
        """Return the first value of each thread in a step, in shape ``(threads,)``."""
        event = block.event(step)
        return flat(event.values[0], block.steps.column, self.extent) if event.values else None

    def thread_name(self, thread: int) -> str:
        """Return "thread (x,y)" of a linear number."""
        bx, by = self.run.block[:2]
        at = thread % bx, thread // bx % by, thread // (bx * by)
        return f"thread {_coordinates(at, self.run.block)}"

    def block_name(self, number: int) -> str:
        """Return "block (x,y)" of a linear number."""
        gx, gy = self.run.grid[:2]
        at = number % gx, number // gx % gy, number // (gx * gy)
        return f"block {_coordinates(at, self.run.grid)}"


def _coordinates(at: tuple[int, int, int], extent: Sequence[int]) -> str:
    axes = max((axis + 1 for axis, size in enumerate(extent) if size > 1), default=1)
    return f"({','.join(map(str, at[:axes]))})"


@dataclass(frozen=True)
class Moment:
    """One step at which a hazard is visible in the recorded run.

    Attributes:
        hazard: Number of the hazard in ``Run.hazards``.
        kind: What happens, such as ``NEVER`` or ``OUTSIDE``; the player shows it.
        picture: How the page draws it: ``shared``, ``outside``, ``threads``, ``accesses`` or
            ``lanes``.
        block: Linear number of the block.
        step: Step of the access, in which ``thread`` is active.
        other_step: Step of the second access, by ``other_thread`` of ``other_block``; -1 without
            one.
        place: Global array's number, -1 for the shared variable ``variable``.
        element: Index in it.
        got: Value that was read or written.
        should: Value that the kernel means to read.
        cells: Rows ``(thread, element)`` of the warp's access in this step; ``other_cells`` of
            the second access.
        values: Values of both accesses, of the picture ``accesses``.
        groups: Groups of threads, of the picture ``threads``: see ``standstill.py``.
        lanes: Rows ``(thread, is active, access)`` of the warp, of the picture ``lanes``.
        facts: Rows ``(thread and line, verb, access)`` of participants, of the same picture.
        remark: Sentence beside the picture.
        title: Sentence on top; ``more`` stands below it, ``say`` in the player.
        tags: Rows ``(step, warp, line, text)`` of what the code and the timeline mark.
    """

    hazard: int
    kind: str
    picture: str
    block: int
    step: int
    thread: int
    other_step: int = -1
    other_thread: int = -1
    other_block: int = -1
    place: int = -1
    variable: int = -1
    element: int = -1
    got: float | None = None
    should: float | None = None
    cells: Sequence[tuple[int, int]] = ()
    other_cells: Sequence[tuple[int, int]] = ()
    values: Sequence[float | None] = ()
    groups: Sequence[dict[str, Any]] = ()
    lanes: Sequence[tuple[int, bool, str]] = ()
    facts: Sequence[tuple[str, str, str]] = ()
    remark: str = ""
    title: Sequence[Part] = ()
    more: str = ""
    say: Sequence[Part] = ()
    tags: Sequence[tuple[int, int, int, str]] = field(default=())
