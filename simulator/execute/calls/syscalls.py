"""System functions that PTX calls without a body: ``vprintf``, ``malloc`` and others.

Their interface is in NVIDIA's "PTX Writer's Guide to Interoperability" (System Calls).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Lanes, Mask, as_mask
from ...events import Dispatcher
from ...memory.memories import AddressSpaces
from ...memory.site import text_site
from ...memory.storage.heap import Heap
from ..lane_state import LaneState
from .printf_format import MAX_TEXT, formatted, takes

_ALL_BITS = (1 << 64) - 1


class Syscalls:
    """Executes system functions for the lanes of a batch."""

    def __init__(self, state: LaneState, dispatcher: Dispatcher, memories: AddressSpaces) -> None:
        self.state, self.dispatcher, self.memories = state, dispatcher, memories

    def call(
        self, block: CompiledBlock, given: tuple[Lanes, ...], lanes: Mask | None
    ) -> Mask | None:
        """Execute a call; return the lanes that cannot continue, if any."""
        if block.called == "vprintf":
            self.print(block, given, lanes)
            return None
        state, heap = self.state, self.memories.heap
        shape = state.geometry.shape
        value = np.broadcast_to(given[0], shape)
        result = np.zeros(shape, np.int64)
        assert heap is not None
        for found in np.argwhere(np.broadcast_to(as_mask(lanes), shape)):
            at = tuple(found.tolist())
            result[at] = self._manage(heap, block, at, int(value[at]) & _ALL_BITS)
        if block.called == "free":
            failing = (result == 0) & as_mask(lanes)
            return failing if failing.any() else None
        if block.result >= 0:
            old = state.registers[block.result]
            state.registers[block.result] = np.where(as_mask(lanes), result, old)
        return None

    def _manage(self, heap: Heap, block: CompiledBlock, lane: tuple[int, ...], given: int) -> int:
        """Execute ``malloc`` or ``free`` for one lane."""
        dispatcher, home, end = self.dispatcher, heap.array, heap.end
        if block.called == "malloc":
            address = heap.allocate(given)
            if address and heap.end == end:
                for callback in dispatcher.reallocated:
                    callback(home, range(address - home.base, address - home.base + given))
            return address
        if piece := heap.piece(given):
            for callback in dispatcher.freed:
                callback(block, lane, home, piece)
        return heap.free(given)

    def print(self, block: CompiledBlock, given: tuple[Lanes, ...], lanes: Mask | None) -> None:
        """Execute ``vprintf``; it returns the number of its arguments."""
        state, (form, start) = self.state, given
        for callback in self.dispatcher.printed:
            callback(state.count(lanes)[0], self.texts(block, form, start, lanes))
        if block.result < 0:
            return
        forms, which = np.unique(form, return_inverse=True)
        counts = np.array([takes(self.string((0, 0, 0, 0), int(a))) for a in forms], np.int32)
        old = state.registers[block.result]
        printed = counts[which].reshape(form.shape)[()]
        state.registers[block.result] = np.where(as_mask(lanes), printed, old)

    def texts(
        self, block: CompiledBlock, form: Lanes, start: Lanes, lanes: Mask | None
    ) -> Iterator[tuple[int, int, str]]:
        """Yield block, thread and text of each printing lane."""
        g = self.state.geometry
        forms, starts = np.broadcast_to(form, g.shape), np.broadcast_to(start, g.shape)
        for found in np.argwhere(np.broadcast_to(as_mask(lanes), g.shape)):
            at: tuple[int, int, int, int] = tuple(found.tolist())
            thread = int(g.thread_ids[(*at[:3], 0)])
            number = functools.partial(self.number, at)
            printed = functools.partial(self.string, at, block=block)
            form_text = self.string(at, int(forms[at]))
            text = formatted(form_text, int(starts[at]), number, printed)
            yield int(g.blocks[at[3]]), thread, text

    def failed(self, given: tuple[Lanes, ...], lanes: Mask | None) -> str:
        """Return the failed condition of ``__assertfail``, of the first lane."""
        shape = self.state.geometry.shape
        at = np.unravel_index(int(np.argmax(np.broadcast_to(as_mask(lanes), shape))), shape)
        first = tuple(int(i) for i in at)
        return self.string(first, int(np.broadcast_to(given[0], shape)[first]))

    def number(self, lane: tuple[int, ...], address: int, code: str) -> float:
        """Read a number at a generic address, as a lane would."""
        size = struct.calcsize(code)
        if self.memories.looked:
            self.memories.looked(address, size, lane)
        content = self.memories.bytes_at(address, size, lane).ljust(size, b"\0")
        value: float = struct.unpack(f"<{code}", content)[0]
        return value

    def string(
        self, lane: tuple[int, ...], address: int, max_length: int = MAX_TEXT,
        block: CompiledBlock | None = None,
    ) -> str:  # fmt: skip
        """Read a string at a generic address, up to its NUL or ``max_length`` bytes.

        ``block``: the block that prints it.
        """
        memories = self.memories
        content, end, _ = memories.bytes_at(address, max_length, lane).partition(b"\0")
        if block:
            read = len(content + end)
            if not end and read < max_length:
                self._beyond(block, lane, address + read)
            if memories.looked:
                memories.looked(address, read, lane)
            for callback in self.dispatcher.string_read if read else ():
                callback(block, lane, address, read, memories.array_at(address))
        return content.decode("utf-8", "replace")

    def _beyond(self, block: CompiledBlock, lane: tuple[int, ...], address: int) -> None:
        """Report a string that extends beyond its allocation."""
        call, function = block.block.instructions[-1], block.block.function.name
        site = text_site(call, function, "generic", block.number)
        thread = int(np.ravel_multi_index(lane[:3], self.state.geometry.shape[:3]))
        self.memories.bad_lane(site, address, thread, lane[3])
