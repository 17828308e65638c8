"""Warp-synchronous instructions: lanes wait until all lanes of the member mask arrive.

At ``mma.sync.aligned`` and similar they wait for the whole warp, at ``wgmma.wait_group`` for the
warpgroup. ``shfl.sync``, ``vote.sync``, ``match.sync``, ``redux.sync``, ``elect.sync`` and
``bar.warp.sync`` wait for the non-exited lanes of the mask, which execute an instruction with the
same qualifiers and mask (PTX ISA). Compilers duplicate instructions; lanes at different copies of
one exchange values all the same, as on an H200.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from kernels.ptx.module import Imm

from ...compile.ir_values import Constant, Register, SourceValue
from ...compile.program import Code, CompiledBlock
from ...core.geometry import GROUP, NO_LANE, WARP, WHOLE_WARP, Lanes, Mask, Rows, WarpView, as_mask
from ...events import Dispatcher
from ...isa.table import Results
from ..lane_state import LaneState
from ..schedule import Part
from .warp_sync_sites import DuplicatedSites


class WarpSync:
    """Lanes of one batch that are blocked at warp-synchronous instructions.

    Attributes:
        waiting: Blocked lanes, by block number.
        met: Lanes at copies of an instruction that can execute it together, by block number.
        copies: Blocks that begin with copies of one instruction.
        ordering: Blocks whose first instruction orders the lanes' accesses.
    """

    def __init__(
        self, state: LaneState, dispatcher: Dispatcher, blocks: Sequence[CompiledBlock],
        copies: DuplicatedSites,
        ordering: frozenset[int], ask: Callable[[int], Code], view: Callable[[Mask], WarpView],
    ) -> None:  # fmt: skip
        self.state, self.dispatcher, self.blocks = state, dispatcher, blocks
        self.copies, self.ordering = copies, ordering
        self._ask, self._view = ask, view
        self.waiting: dict[int, Mask] = {}
        self.met: list[dict[int, Mask]] = []
        self.opened: dict[int, Mask] = {}
        self._known: dict[int, tuple[Lanes, Mask | None]] = {}

    def admit(self, block: CompiledBlock, mask: Mask | None, everyone: bool) -> Part:
        """Return the lanes that may pass a warp-synchronous instruction; ``False``: none.

        ``everyone``: whether they are all live lanes.
        """
        number, gate = block.number, block.gate
        assert gate
        if everyone and not gate.guard and (gate.members is None or self._right(block, mask)):
            self.opened.pop(number, None)
            return mask
        here = self.waiting.pop(number, None)
        if here is not None:
            mask = here if mask is None else mask | here
        on = as_mask(mask)
        passing = NO_LANE
        if gate.guard:
            passing = on & ~self.heeded(gate.guard, on)
            on = on & ~passing
        if gate.members is None:
            going = passing | self._aligned(number, on)
            return self._whole(going) if going.any() else False
        named = self.members(block)
        left_out = on & ((named >> self._lane) & np.uint32(1) == 0)
        if left_out.any():
            for callback in self.dispatcher.event:
                callback("left-out", block, left_out)
        if named.ndim == 0:
            missing = self._missing(self.state.geometry.active_bits(on))
            ready = on & (((missing & named) == 0) | left_out)
        else:
            ready = self._agreed(np.where(on, named, np.uint32(0))) | left_out
        opened = self.opened.pop(number, None)
        if opened is not None:
            ready = ready | (on & opened)
            rest = opened & ~on
            if rest.any():
                self.opened[number] = rest
        late = on & ~ready
        if late.any():
            self.waiting[number] = late
            self._meet(number)
        elif everyone and not left_out.any() and not passing.any():
            self._known[number] = named, mask
            return mask
        going = ready | passing
        return self._whole(going) if going.any() else False

    def heeded(self, guard: SourceValue | None, lanes: Mask) -> Mask:
        """Return the lanes whose guard enables a block's first instruction."""
        if guard is None:
            return lanes
        assert isinstance(guard.value, Register)
        holds: Mask = self.state.registers[guard.value.number]
        return lanes & (~holds if guard.negated else holds)

    def _right(self, block: CompiledBlock, mask: Mask | None) -> bool:
        """Whether all live lanes are known to name one another."""
        named = self.members(block)
        if named.ndim == 0 and named == WHOLE_WARP:
            return True
        known = self._known.get(block.number)
        return known is not None and known[0] is named and known[1] is mask

    @functools.cached_property
    def _lane(self) -> Lanes:
        return self.state.geometry.lane_ids.astype(np.uint32)

    def _whole(self, lanes: Mask) -> Mask:
        return lanes if lanes.ndim else np.full((1, 1, 1, 1), lanes)

    def members(self, block: CompiledBlock) -> Lanes:
        """Return the member masks at a warp-synchronous block, uint32."""
        assert block.gate
        assert block.gate.members
        value = block.gate.members.value
        if isinstance(value, Constant):
            return cast(Lanes, value.value)
        assert isinstance(value, Register)
        named: Lanes = self.state.registers[value.number]
        return named.view(np.uint32) if value.carrier == "s32" else named.astype(np.uint32)

    def _missing(self, bits: Rows) -> Lanes:
        """Return the live lanes of each thread's warp that are not in ``bits``, uint32."""
        return self.state.geometry.spread(self._missing_rows(bits))

    def _missing_rows(self, bits: Rows) -> Rows:
        g, alive = self.state.geometry, self.state.alive
        living = g.existing if alive is None else g.warp_bits(alive)
        return living & ~bits

    def _agreed(self, masks: Lanes) -> Mask:
        """Return the lanes whose named lanes have all exited or wait with the same member mask.

        ``masks``: the member mask of each waiting lane, else 0.
        """
        g = self.state.geometry
        theirs = g.by_warp(masks, np.uint32(0))
        ready, largest = theirs != 0, theirs.max(axis=1, keepdims=True)
        if ((theirs == largest) | ~ready).all():  # all of a warp that wait name the same
            short = largest[:, 0] & self._missing_rows(g.warp_bits(masks != 0))
            return g.from_rows((ready & (short == 0)[:, None]).reshape(g.warps * WARP, -1))
        living = g.by_warp(as_mask(self.state.alive), False)
        for lane in range(WARP):
            named = ((theirs >> np.uint32(lane)) & np.uint32(1)) == 1
            other = theirs[:, lane : lane + 1]
            ready = ready & (~named | ~living[:, lane : lane + 1] | (other == theirs))
        return g.from_rows(ready.reshape(g.warps * WARP, -1))

    def _aligned(self, number: int, on: Mask) -> Mask:
        """Return the lanes at an ``.aligned`` instruction whose whole warp has reached it.

        A product of a warpgroup begins when its four warps have arrived. A wait for products also
        needs all four, so that none continues before the others have begun them.
        """
        opened = self.opened.pop(number, NO_LANE)
        if (opened & ~on).any():
            self.opened[number] = opened & ~on
        self.waiting[number] = on & ~opened
        complete = self._complete([number])
        met = [(place, lanes) for place, lanes in complete.items() if lanes.any()]
        several = len(met) > 1 and self._group(number) == "wait"
        for place, lanes in met if several else ():  # before one of them tells others of it
            wait = self.blocks[place].block.instructions[0]
            pending = cast(Imm, wait.operands[0]).value
            for callback in self.dispatcher.async_group:
                callback(lanes, pending, "product", False, wait)
        going = complete.pop(number) | (on & opened)
        self._go_on(complete)
        return going

    def _complete(self, numbers: Sequence[int]) -> dict[int, Mask]:
        """Return the lanes at some ``.aligned`` instructions that may continue."""
        found = {}
        for number in dict.fromkeys(numbers):
            size, sites = WARP, [number]
            if group := self._group(number):
                size, sites = GROUP, [n for n in self.waiting if self._group(n) == group]
            come = functools.reduce(np.logical_or, [self.waiting[n] for n in sites])
            together = self._everybody(come, size)
            for place in sites:
                found[place] = self.waiting[place] & together
        for place, going in found.items():
            late = self.waiting.pop(place) & ~going
            if late.any():
                self.waiting[place] = late
        return found

    def _everybody(self, come: Mask, size: int) -> Mask:
        """Return the lanes of groups of ``size`` threads whose live lanes have all arrived."""
        g = self.state.geometry
        there = g.factored(as_mask(come | ~as_mask(self.state.alive)))
        whole = np.logical_and.reduceat(there, np.arange(0, g.threads, size), axis=0)
        return g.from_rows(np.repeat(whole, size, axis=0))

    def _group(self, number: int) -> str:
        gate = self.blocks[number].gate
        return gate.group if gate else ""

    def _go_on(self, complete: dict[int, Mask]) -> None:
        for number, lanes in complete.items():
            if lanes.any():
                self._open(number, lanes)

    def look_again(self) -> None:
        """Release lanes that waited for exited ones."""
        if not self.waiting:
            return
        named = [number for number in self.waiting if number in self.copies.of]
        self._go_on(self._complete([number for number in self.waiting if number not in named]))
        for number in named:
            block = self.blocks[number]
            masks = np.where(self.waiting[number], self.members(block), np.uint32(0))
            if self._agreed(masks).any():
                self.state.join(number, self.waiting.pop(number))
        for copies in {self.copies.of[number] for number in named if number in self.waiting}:
            self._meet(copies[0])

    def force(self) -> None:
        """Release lanes whose partners never arrive, as nothing else can run."""
        number = min(self.waiting, key=lambda n: (self._group(n) != "wait", n))
        mask = self.waiting.pop(number)
        name = "absent" if number in self.copies.of else self._group(number)
        for callback in self.dispatcher.event if name in ("absent", "warpgroup") else ():
            callback(name, self.blocks[number], mask)
        self._open(number, mask)

    def _open(self, number: int, lanes: Mask) -> None:
        """Release lanes without their missing partners."""
        self.state.join(number, lanes)
        self.opened[number] = lanes | self.opened.get(number, NO_LANE)

    def forget(self, lanes: Mask) -> None:
        """Remove lanes that exit."""
        for table in (self.waiting, self.opened, *self.met):
            for number in list(table):
                table[number] = table[number] & ~lanes
                if not table[number].any():
                    del table[number]

    def _meet(self, number: int) -> None:
        """Join lanes at different copies of an instruction with the same member mask."""
        numbers = [copy for copy in self.copies.of[number] if copy in self.waiting]
        if len(numbers) < 2:
            return
        masks: Lanes = np.zeros(self.state.geometry.shape, np.uint32)
        for copy in numbers:
            named = self.members(self.blocks[copy])
            masks = np.where(self.waiting[copy], named, masks)
        together = self._agreed(masks)
        met = {copy: go for copy in numbers if (go := self.waiting[copy] & together).any()}
        for copy, go in met.items():
            late = self.waiting.pop(copy) & ~go
            if late.any():
                self.waiting[copy] = late
        if not met:
            return
        if number in self.ordering:
            for callback in self.dispatcher.warp_sync:
                callback(together, masks)
        if not self.blocks[number].warp_barrier:
            self.met.append(met)
            return
        for copy, go in met.items():
            self._open(copy, go)

    def exchange(self, met: dict[int, Mask]) -> dict[int, list[Results]]:
        """Return what lanes at copies of an instruction exchange, by block number."""
        registers = self.state.registers
        asked = [self._ask(number)(registers) for number in met]
        lanes = list(met.values())
        view = self._view(functools.reduce(np.logical_or, lanes))
        got: dict[int, list[Results]] = {number: [] for number in met}
        for calls in zip(*asked, strict=True):  # each copy's
            operands = []
            for values in zip(*(operands for _, *operands in calls), strict=True):
                value = values[0]
                for here, other in zip(lanes[1:], values[1:], strict=True):
                    value = np.where(here, other, value)
                operands.append(value)
            for (number, here), (function, *_) in zip(met.items(), calls, strict=True):
                view.asking = here
                got[number].append(function(view, *operands))
        return got
