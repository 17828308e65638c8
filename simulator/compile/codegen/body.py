"""A block's function as text, before it is compiled."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Exchange(NamedTuple):
    """A value that lanes get from one another, who may stand at copies of the instruction.

    Attributes:
        line: The statement; ``name``: what it assigns.
        call: The function and its arguments but for the warp; ``reads``: registers among them.
    """

    line: int
    name: str
    call: str
    reads: tuple[int, ...]


@dataclass
class Body:
    """The statements of a block's function.

    Attributes:
        exchanges: Of the instruction that the block's gate is in front of.
        returns: The expression it returns: a branch's predicate, a barrier's operands.
        names: What it refers to: each name is made of numbers and known opcodes.
    """

    lines: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    returns: str = "None"
    names: dict[str, object] = field(default_factory=dict)
