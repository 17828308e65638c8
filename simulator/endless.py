"""Loops without end, found by the machine's state coming back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .waiting import Stuck

if TYPE_CHECKING:
    from .machine import Machine


_FIRST_LOOK = 1 << 13


class Endless:
    """Finds loops without end: the machine is deterministic, so a state that returns stays.

    From time to time the whole state is kept, less and less often; while one is kept, it
    is compared whenever the same block comes up, some dozens of times.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.next_look = self.next_keep = min(_FIRST_LOOK, machine.step_limit)
        self.kept: Any = None
        self.compared = 0

    def look(self, number: int, mask: Any) -> None:
        """Called before a block runs, from ``next_look`` on.

        Raises:
            Stuck: The state has been here before, or the step limit is reached.
        """
        machine = self.machine
        if machine.step >= machine.step_limit:
            raise Stuck("limit", machine.barriers.waiting, {**machine.groups, number: mask})
        if machine.step >= self.next_keep:
            self.next_keep = min(machine.step * 2, machine.step_limit)
            self.compared = 0
            self.kept = (number, mask, [np.copy(part) for part in self._state()])
        elif self.kept is not None and number == self.kept[0]:
            self.compared += 1
            if self._same(mask):
                raise Stuck("repeats", machine.barriers.waiting, {**machine.groups, number: mask})
        watching = self.kept is not None and self.compared < 64
        self.next_look = machine.step + 1 if watching else self.next_keep

    def _state(self) -> list[Any]:
        machine = self.machine
        masks = [
            m for m in (*machine.groups.values(), *machine.gates.parked.values()) if m is not None
        ]
        masks += [w.mask for w in machine.barriers.waiting if w.mask is not None]
        keys = np.array([*machine.groups, -1, *machine.gates.parked], np.int64)
        return [keys, *machine.registers, *masks, *machine.memory_state()]

    def _same(self, mask: Any) -> bool:
        _, kept_mask, kept = self.kept
        now = self._state()
        if len(now) != len(kept) or (mask is None) != (kept_mask is None):
            return False
        if mask is not None and not np.array_equal(mask, kept_mask):
            return False
        return all(
            a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
            for a, b in zip(map(np.asarray, now), kept, strict=True)
        )
