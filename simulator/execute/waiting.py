"""What the machine keeps of lanes that wait, and what it raises where none can go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..compile.program import CompiledBlock
from ..events import Apart


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


class Stuck(Exception):
    """No lane can go on: the lanes that wait at barriers, or that spin without end.

    Attributes:
        waiting: What is known of the lanes held by block barriers.
        spinning: Lanes by block number that loop for ever (or past the step limit).
        why: ``waits``, ``repeats`` (no fair schedule changes anything any more) or ``limit``.
        steps: How many basic blocks had run.
    """

    def __init__(
        self, why: str, waiting: list[Apart], spinning: dict[int, Any], steps: int = 0
    ) -> None:
        super().__init__(why)
        self.why, self.waiting, self.spinning, self.steps = why, waiting, spinning, steps
