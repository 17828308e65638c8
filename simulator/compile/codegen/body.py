"""A block's function as text, before it is compiled."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Exchange(NamedTuple):
    """A statement that exchanges values between lanes, which may be at different copies of it.

    Attributes:
        line: The statement.
        name: The variable that it assigns.
        call: The function and its arguments, without the warp.
        reads: Registers among the arguments.
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
