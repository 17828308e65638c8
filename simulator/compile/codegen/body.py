"""Text of a block's function, before it is compiled."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ..ir import Compute


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
    """Statements of a block's function.

    Attributes:
        exchanges: Exchanges of the instruction behind the block's gate.
        returns: The returned expression: a branch's predicate or a barrier's operands.
        names: Free names, which consist of numbers and known opcodes.
        functions: Operations whose functions some of these names are.
    """

    lines: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    returns: str = "None"
    names: dict[str, object] = field(default_factory=dict)
    functions: dict[str, Compute] = field(default_factory=dict)
