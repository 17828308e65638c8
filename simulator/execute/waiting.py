"""What the machine keeps of lanes that wait, and what it raises where none can go on."""

from __future__ import annotations

from dataclasses import dataclass

from ..compile.program import CompiledBlock
from ..events import Apart
from ..geometry import Lanes, Mask
from .schedule import Groups

Operands = tuple[Mask | None, Lanes, Lanes, Mask | None]
"""Of a barrier instruction: guard, number, count, and what a reduction takes in."""


@dataclass
class Waiting:
    """Lanes held by a block barrier.

    Attributes:
        number: The barrier's, by lane; ``count``: the threads it waits for, 0 for the block.
        predicate: What a reduction takes in.
        since: The step at which they came.
    """

    block: CompiledBlock
    mask: Mask | None
    number: Lanes
    count: Lanes
    predicate: Mask | None
    since: int = 0


class Stuck(Exception):
    """No lane can go on: the lanes that wait at barriers, or that spin without end.

    Attributes:
        waiting: What is known of the lanes held by block barriers.
        spinning: Lanes by block number that loop for ever (or past the step limit).
        why: ``waits``, ``repeats`` (no fair schedule changes anything any more) or ``limit``.
        steps: How many basic blocks had run.
    """

    def __init__(self, why: str, waiting: list[Apart], spinning: Groups, steps: int = 0) -> None:
        super().__init__(why)
        self.why, self.waiting, self.spinning, self.steps = why, waiting, spinning, steps
