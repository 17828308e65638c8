"""A launch as native code takes it: its context, arrays, sites and tables as words in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import WARP
from ..execute.machine import flow_map
from ..execute.prepare import PreparedLaunch
from ..memory.site import Site
from ..memory.storage.layout import MODULE_VARIABLES, PARAMETERS
from ..memory.storage.spaces import Allocation
from ..observe.checks.array_footprint import TOUCHES, touch_kind
from . import layout
from .atomic_classes import operation_number, order_class, order_words, orders_matter
from .compiled_kernel import CompiledKernel
from .eligibility import is_one_warp
from .row_calls import RowCalls

Words = NDArray[np.int64]
"""Words of 64 bits that native code reads and writes."""
_SPACES = 3
_ROOM = 8
"""Words behind each table: accesses of 16 bytes may be wider than what they look at."""


class NativeState:
    """Memory that a run of native code works on.

    Args:
        launch: The launch; ``kernel``: its code.
        checks: What is looked for.
        allocations: Global memory, which changes.
        tracked: Numbers of arrays whose reads the race filter enters from the start.

    Attributes:
        context: See ``layout``.
        arrays: Records of arrays; ``numbers``: of them by place.
        slots: The race filter's, by place of an array.
    """

    def __init__(
        self, launch: PreparedLaunch, kernel: CompiledKernel, checks: Collection[str],
        allocations: dict[int, Allocation], tracked: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.launch, self.kernel, self.allocations = launch, kernel, allocations
        self.program = program = launch.program
        self._buffers: list[NDArray[np.generic]] = []
        self.context: Words = np.zeros(layout.CONTEXT_WORDS, np.int64)
        self.races, self.judges_missing = "races" in checks, "uninitialised" in checks
        blocks = len(program.blocks)
        self.is_ordered = orders_matter(program) and not is_one_warp(launch)
        self._arrays(tracked)
        self._sites()
        self._block_shape()
        self._memories()
        self.threads = self._table(layout.THREADS_RUN, blocks)
        self.warps = self._table(layout.WARPS_RUN, blocks)
        self.parted = self._table(layout.PARTED, blocks)
        self.released = self._table(layout.RELEASED, blocks)
        self.tallies = self._table(layout.TALLIES, len(program.arithmetic))
        words = -(-blocks // 64)
        self._table(layout.GROUPS, blocks)
        self._table(layout.GROUP_BITS, words)
        self._table(layout.PARKED, blocks)
        affected = self._table(layout.AFFECTED, blocks)
        affected[[n for n in kernel.affected if n < blocks]] = 1
        flow = program.analysis(flow_map)
        self._table(layout.YIELDS, blocks)[list(flow.convergence.yields)] = 1
        about = self._table(layout.ABOUT, blocks)
        for number, loops in kernel.about.items():
            about[number] = loops
        self._table(layout.ROUNDS, kernel.heads * layout.MAX_THREADS)
        self._table(layout.MOMENT, blocks)
        self._table(layout.TOKENS, WARP)
        self._table(layout.SAVED, WARP * kernel.points)
        scratch = self._table(layout.SCRATCH, layout.SCRATCH_AREAS * layout.LANE_WORD // 8)
        self.rows = RowCalls(kernel.called_back, scratch)
        self._set(
            COUNTS=int(launch.counted), RACES=int(self.races),
            UNINITIALISED=int(self.judges_missing), ORDERED=int(self.is_ordered),
            IS_UNSURE=int(flow.may_wait),
            LETS_GO=int(is_one_warp(launch) and not flow.may_spin),
            GROUP_WORDS=words, BLOCKS=blocks, POINTS=kernel.points, HEADS=kernel.heads,
            START=program.start,
            CALLBACK=self.rows.address,
        )  # fmt: skip
        self.use(kernel)

    def use(self, kernel: CompiledKernel) -> None:
        """Go on with other machine code of the same kernel."""
        self.kernel = kernel
        self._set(KERNEL=kernel.address)

    # -- words --------------------------------------------------------------------------

    def _set(self, **words: int) -> None:
        for name, value in words.items():
            self.context[getattr(layout, name)] = value

    def _table(self, word: int, size: int) -> Words:
        """Make a table of words, and enter its address."""
        table = np.zeros(size + _ROOM, np.int64)
        self.context[word] = self._address(table)
        return table[:size]

    def _address(self, array: NDArray[np.generic]) -> int:
        """Return where an array's bytes are; it stays there."""
        self._buffers.append(array)
        return int(array.ctypes.data)

    def _bytes(self, word: int, size: int) -> None:
        self.context[word] = self._address(np.zeros(size + 8 * _ROOM, np.uint8))

    # -- records ------------------------------------------------------------------------

    def _arrays(self, tracked: Collection[int]) -> None:
        """Enter the global arrays: arguments, parameters, variables of the module."""
        count = len(self.launch.arguments.arrays)
        variables = 1 + max(
            (n - MODULE_VARIABLES for n in self.allocations if n >= MODULE_VARIABLES), default=-1
        )
        self.arrays = np.zeros((count + 1 + variables, layout.ARRAY_WORDS), np.int64)
        self.numbers: dict[int, int] = {}
        self.changed: dict[int, bool] = {}
        self.slots: dict[int, Words] = {}
        self._marks: dict[tuple[int, str], NDArray[np.bool_]] = {}
        writes = any(s.access != "load" for s in self.program.sites if s.space != "shared")
        grain = self.launch.granules.array
        for number, allocation in self.allocations.items():
            place = (
                number
                if number < count
                else count + (number != PARAMETERS) * (1 + number - MODULE_VARIABLES)
            )
            self.numbers[place] = number
            self.changed[place] = allocation.changed
            if allocation.writable and writes:
                allocation.change()
            content = allocation.content()
            row = self.arrays[place]
            row[layout.HOST] = self._address(content)
            row[layout.BASE], row[layout.BYTES] = allocation.base, allocation.nbytes
            row[layout.WRITABLE] = int(allocation.writable)
            row[layout.TRACKED] = int(number in tracked)
            if self.races and allocation.writable and writes:
                slots = np.zeros(2 * (-(-allocation.nbytes // grain) + 1), np.int64)
                row[layout.SHADOW], self.slots[place] = self._address(slots), slots
            if self.is_ordered and allocation.writable:
                records = np.zeros(order_words(allocation.nbytes), np.int64)
                row[layout.ORDER] = self._address(records)
            if self.launch.followed and number < count:
                for what, how in enumerate(TOUCHES):
                    marks = np.zeros(-(-allocation.nbytes // grain), bool)
                    row[layout.TOUCHED + what] = self._address(marks)
                    self._marks[number, how] = marks
            if allocation.missing is not None and self.judges_missing:
                row[layout.MISSING] = self._address(allocation.own_flags())
            if number == PARAMETERS:
                self._set(PARAMETERS=int(content.ctypes.data))
        self._set(
            ARRAYS=self._address(self.arrays), ARGUMENTS=count, VARIABLES=variables,
            GLOBAL_GRAIN=grain.bit_length() - 1,
        )  # fmt: skip

    def _sites(self) -> None:
        sites = self.program.sites
        self.sites = np.zeros((len(sites) + 1, layout.SITE_WORDS), np.int64)
        for site in sites:
            self._site(self.sites[site.number], site)
        self._set(SITES=self._address(self.sites))

    def _site(self, row: Words, site: Site) -> None:
        first, end = site.object_bounds or (0, self.launch.shared_space)
        row[layout.OFFSET], row[layout.FIRST], row[layout.END] = site.offset, first, end
        row[layout.COUNTED] = int(site.counted)
        if site.access == "atomic":
            row[layout.OPERATION] = operation_number(site) or 0
            row[layout.ORDER_CLASS] = order_class(site)
            row[layout.SIGNED] = int(site.type[0] == "s")
        row[layout.TOUCH] = TOUCHES.index(touch_kind(site))
        row[layout.READ_ONLY] = int(site.access == "load" and site.instruction.has("nc"))

    def _block_shape(self) -> None:
        launch = self.launch
        x, y, _ = launch.block
        threads = math.prod(launch.block)
        warps = -(-threads // WARP)
        number = np.arange(warps * WARP)
        for word, place in (
            (layout.THREAD_X, number % x), (layout.THREAD_Y, number // x % y),
            (layout.THREAD_Z, number // (x * y)),
        ):  # fmt: skip
            self.context[word] = self._address(place.astype(np.int32))
        self._table(layout.WARP_EPOCHS, warps)
        self._table(layout.WARP_AT, warps)
        self._table(layout.WARP_ALIVE, warps)
        frame = -(-max(self.kernel.frame_bytes, 64) // 64) * 64
        start = np.zeros(frame, np.uint8)
        for register, slot in self.kernel.slots.items():
            value = np.asarray(self.program.registers[register])
            if value:
                size = WARP * value.itemsize
                start[slot.offset : slot.offset + size] = np.repeat(value, WARP).view(np.uint8)
        self._set(
            THREADS=threads, WARPS=warps, FRAME_BYTES=frame, FRAME_START=self._address(start),
            GRID_X=launch.grid[0], GRID_Y=launch.grid[1], GRID_Z=launch.grid[2],
        )  # fmt: skip
        self._bytes(layout.FRAMES, frame * warps)

    def _memories(self) -> None:
        """Shared and local memory of a block."""
        shared, local = self.launch.shared_space, self.program.layout.local_bytes
        threads = int(self.context[layout.WARPS]) * WARP
        grain = self.launch.granules.shared
        self._bytes(layout.SHARED, shared)
        self._bytes(layout.SHARED_DEFINED, shared)
        self._table(layout.SHARED_SHADOW, 2 * (-(-shared // grain) + 4))
        self._table(layout.SHARED_ORDER, order_words(shared) if self.is_ordered else 0)
        self._bytes(layout.LOCAL, local * threads)
        self._bytes(layout.LOCAL_DEFINED, local * threads)
        self._set(
            SHARED_BYTES=shared, LOCAL_BYTES=local, SHARED_GRAIN=grain.bit_length() - 1
        )  # fmt: skip

    # -- results ------------------------------------------------------------------------

    def figures(self, site: int) -> Words:
        """Return the figures of a site, a row for each space."""
        row = self.sites[site]
        figures: Words = row[layout.FIGURES : layout.FIGURES_END].reshape(_SPACES, 8)
        return figures

    def touched(self) -> dict[tuple[int, str], NDArray[np.bool_]]:
        """Return which locations of arrays were touched, by their number and how."""
        return {key: marks for key, marks in self._marks.items() if marks.any()}

    @property
    def may_share(self) -> bool:
        """Whether other threads may run blocks, too: exchanges are found, and no row is called."""
        return self.races and not self.kernel.called_back

    @property
    def written_late(self) -> int | None:
        """The array because of which native code gave up with ``READ_BEFORE``."""
        if self.context[layout.WHY] != layout.READ_BEFORE:
            return None
        return self.numbers[int(self.context[layout.LATE_ARRAY]) // (layout.ARRAY_WORDS * 8)]

    @property
    def reason(self) -> str:
        """Why native code gave up, and where."""
        text = layout.REASONS.get(int(self.context[layout.WHY]), "something unknown")
        where = int(self.context[layout.WHERE])
        if where < 0:
            return text
        site = self.program.sites[where // (layout.SITE_WORDS * 8)]
        return f"{text} ({site.instruction.name})"


def settle(states: Sequence[NativeState]) -> bool:
    """Note which arrays have changed; whether none was read through the read-only path too.

    ``states``: of all threads, on the same arrays.
    """
    first = states[0]
    for place, number in first.numbers.items():
        rows = [state.arrays[place] for state in states]
        if not any(row[layout.WRITTEN] for row in rows):
            first.allocations[number].changed = first.changed[place]
        elif any(row[layout.READ_ONLY_LOADS] for row in rows):
            return False
    return True
