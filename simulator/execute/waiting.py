"""What the machine says of lanes that wait, and to whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..compile.program import CompiledBlock


@dataclass
class Waiting:
    """Lanes held by a block barrier.

    Attributes:
        number: The barrier's, by lane; ``count``: the threads it waits for, 0 for the block.
        predicate: What a reduction takes in.
        since: The step at which they came.
    """

    block: CompiledBlock
    mask: Any
    number: Any
    count: Any
    predicate: Any
    since: int = 0


@dataclass
class Branch:
    """A branch that sent lanes another way than those at a barrier.

    Attributes:
        block: The basic block that it ends.
        lanes: Those lanes.
        leaves: Whether their way goes straight out of the kernel: an early return.
    """

    block: CompiledBlock
    lanes: Any
    leaves: bool


@dataclass
class Apart:
    """Threads of a block that do not come to a barrier together.

    Attributes:
        how: ``gone`` (they have left the kernel without it), ``rounds`` (by another round of
            a loop, or another call), ``places`` (at several barriers of the source), ``warp``
            (lanes of one warp, which have to come as one), ``never`` (those that wait are
            never let go), ``count`` or ``number`` (an operand that no barrier has).
        block: The barrier's basic block; ``lanes``: who is there.
        others: The lanes that are not; ``elsewhere``: at which other barriers they stand.
        branches: What sent these another way, as far as it is known.
        value: The operand.
    """

    how: str
    block: CompiledBlock
    lanes: Any
    others: Any = None
    elsewhere: list[tuple[CompiledBlock, Any]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    value: int = 0


class Stuck(Exception):
    """No lane can go on: the lanes that wait at barriers, or that spin without end.

    Attributes:
        waiting: What is known of the lanes held by block barriers.
        spinning: Lanes by block number that loop for ever (or past the step limit).
        why: ``waits``, ``repeats`` (no fair schedule changes anything any more) or ``limit``.
        steps: How many basic blocks had run.
        part: How many blocks of the grid ran together, if that was not all of them.
    """

    part = 0

    def __init__(
        self, why: str, waiting: list[Apart], spinning: dict[int, Any], steps: int = 0
    ) -> None:
        super().__init__(why)
        self.why, self.waiting, self.spinning, self.steps = why, waiting, spinning, steps


class Listener(Protocol):
    """What the machine tells while it runs."""

    def barrier(self, waits: list[Waiting], lanes: Any, alive: Any) -> None:
        """A block barrier lets lanes go that waited at ``waits``."""

    def arrive(self, lanes: Any, number: int) -> None:
        """Lanes pass ``bar.arrive``."""

    def apart(self, apart: Apart) -> None:
        """Threads of a block do not come to a barrier together."""

    def warp_sync(self, lanes: Any, members: Any) -> None:
        """Lanes pass ``bar.warp.sync``, each with its member mask (uint32)."""

    def event(self, name: str, block: CompiledBlock, lanes: Any) -> None:
        """``trap``, ``assert``; of lanes in a member mask: ``absent``; not in it: ``left-out``."""
