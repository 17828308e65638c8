"""The table of stand-ins: which function of the runtime is answered by which of ours."""

from collections.abc import Callable
from typing import Any, TypeVar

Handler = Callable[..., int | None]
CALLS: dict[str, Handler] = {}
"""By the name of the function. A handler takes the ``Runtime`` and the call's first six integer
arguments, and returns an error code (``None``: success), or what else the function returns."""


class UnsupportedCallError(Exception):
    """The program calls something that has no stand-in."""


_Handler = TypeVar("_Handler", bound=Handler)


def stands_in_for(*names: str) -> Callable[[_Handler], _Handler]:
    """Enter a function into the table under some names."""

    def enter(handler: _Handler) -> _Handler:
        for name in names:
            CALLS[name] = handler
        return handler

    return enter


def plain_name(export: str) -> str:
    """Return the function's name without the suffix of its per-thread-stream variant."""
    return export.removesuffix("_ptsz").removesuffix("_ptds")


def signed(word: Any) -> int:
    """Return the low 32 bits of a register as an ``int``."""
    value = int(word) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
