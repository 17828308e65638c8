"""What ptxas asks of declarations, beyond their grammar."""

from __future__ import annotations

from .module import Variable
from .types import TYPE_SIZES

_VECTOR_BYTES = 16
_NO_TYPE = ("bf16", "bf16x2")
"""Types of instructions that no register and no variable has: they are held as bits."""


def wrong_type(kind: str) -> str:
    """Why nothing can be declared with a type; empty if it can."""
    if kind in _NO_TYPE:
        return f"nothing is declared as .{kind}: .b{8 * TYPE_SIZES[kind]} holds it"
    return ""


def wrong_variable(variable: Variable, vector: int, module: dict[str, Variable] | None) -> str:
    """Why a variable cannot be declared so; empty if it can.

    Args:
        variable: As declared.
        vector: Elements of ``.v2`` or ``.v4``, else 1.
        module: The module's variables so far; ``None`` within a function.
    """
    name, space = variable.name, variable.space
    if variable.init and space in ("shared", "local", "param"):
        return f"{name!r} is in .{space} and cannot have an initial value"
    if 0 in variable.dims and not variable.external:
        return f"{name!r} has no extent"
    if vector * TYPE_SIZES[variable.type] > _VECTOR_BYTES:
        return f"{name!r} is a vector of more than {_VECTOR_BYTES} bytes"
    if module is None:
        return ""
    if space in ("local", "param", "tex"):
        return f"{name!r} is in .{space} and stands outside of a function"
    before = module.get(name)
    if before and not before.external and not variable.external:
        return f"{name!r} is declared twice"
    return ""
