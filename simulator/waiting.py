"""What the machine says of lanes that wait, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from .program import CompiledBlock


@dataclass
class Waiting:
    """Lanes held by a block barrier."""

    block: CompiledBlock
    mask: Any
    number: Any
    count: Any
    predicate: Any
    in_pieces: bool = False


class Stuck(Exception):
    """No lane can go on: the lanes that wait at barriers, or that spin without end.

    Attributes:
        waiting: Lanes held by block barriers.
        spinning: Lanes by block number that loop for ever (or past the step limit).
        why: ``waits``, ``repeats`` (the machine's whole state has come back) or ``limit``.
    """

    def __init__(self, why: str, waiting: list[Waiting], spinning: dict[int, Any]) -> None:
        super().__init__(why)
        self.why, self.waiting, self.spinning = why, waiting, spinning


class Listener(Protocol):
    """What the machine tells while it runs."""

    def barrier(self, waits: list[Waiting], lanes: Any, alive: Any) -> None:
        """A block barrier lets lanes go that waited at ``waits``."""

    def arrive(self, lanes: Any, number: int) -> None:
        """Lanes pass ``bar.arrive``."""

    def warp_sync(self, lanes: Any, members: Any) -> None:
        """Lanes pass ``bar.warp.sync``, each with its member mask (uint32)."""

    def event(self, kind: str, block: CompiledBlock, lanes: Any) -> None:
        """``trap``, ``assert``, ``bad-mask``, or ``left-out`` (of one's own member mask)."""
