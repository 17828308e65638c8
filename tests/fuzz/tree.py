"""A program as a tree of statements, so that any of them can be left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Statement:
    """Lines, or lines around bodies.

    Attributes:
        text: What to write; ``{0}``, ``{1}`` ... stand for the bodies, ``{id}`` for a number
            that no other statement has.
        bodies: Lists of statements within.
    """

    text: str
    bodies: list[list[Statement]] = field(default_factory=list)

    def render(self, counter: Iterator[int]) -> str:
        """The text, bodies included."""
        if not self.bodies and "{id}" not in self.text:
            return self.text
        text = self.text.replace("{id}", str(next(counter)))
        for i, body in enumerate(self.bodies):
            text = text.replace(f"{{{i}}}", "\n".join(s.render(counter) for s in body))
        return text

    def count(self) -> int:
        return 1 + sum(s.count() for body in self.bodies for s in body)


def render(body: list[Statement]) -> str:
    """Statements as text."""
    counter = iter(range(1 << 30))
    return "\n".join(s.render(counter) for s in body)


SHRINKS = True
"""Whether programs are made smaller at all."""


def shrink(body: list[Statement], fails: Callable[[], bool], tries: int = 400) -> None:
    """Leave out statements, in place, as long as the program still fails.

    Args:
        body: The program's statements; ``fails`` looks at them.
        fails: Whether the program, as it now is, still shows the difference.
        tries: How often it may be asked.
    """
    left = [tries if SHRINKS else 0]

    def without(items: list[Statement]) -> bool:
        changed = False
        size = max(1, len(items) // 2)
        while size and left[0] > 0:
            at = 0
            while at < len(items) and left[0] > 0:
                piece = items[at : at + size]
                del items[at : at + size]
                left[0] -= 1
                if fails():
                    changed = True
                else:
                    items[at:at] = piece
                    at += size
            size //= 2
        for statement in items:
            for inner in statement.bodies:
                changed = without(inner) or changed
        return changed

    while without(body) and left[0] > 0:
        pass


class Draw(random.Random):
    """Random choices of a generator."""

    def chance(self, p: float) -> bool:
        return self.random() < p
