"""C++ names out of mangled ones, as far as reports need them."""

import functools
import re

LOCAL_MEMORY = "memory of the thread"
"""Stands for the one array in which a compiler keeps all local variables of a function."""

NUMBA_SHARED = "_cudapy_smem_"
"""What Numba calls shared arrays, before a number; the Python name comes after a ``$``."""

_NAME = re.compile(r"L?([1-9]\d{0,8})(?=[A-Za-z_])")
_ARGUMENTS = re.compile(r"I(L[a-z]n?\d+E|[PRK]*[a-z])+E")
"""Simple ones of a template."""
_END = re.compile(r"E?(__?\d*_?)?([$#.].*)?")
"""What follows a variable's name: a discriminator, what a compiler adds."""


@functools.lru_cache(maxsize=4096)
def variable_name(symbol: str) -> str:
    """``As`` out of ``_ZZ5tiledILi16EEvPKfE2As``; other symbols stay as they are.

    A name before it may end in digits: ``_ZN3M114smemE`` is ``smem`` of ``M11``. At an ``E``
    begins what stands in a function.
    """
    if symbol.startswith("__local_depot"):
        return LOCAL_MEMORY
    if symbol.startswith(NUMBA_SHARED) and "$" in symbol:
        return symbol.partition("$")[2]
    if not symbol.startswith("_Z"):
        return symbol.split("#")[0]
    starts = [m.end() for m in re.finditer("^_Z(NK?)?|E(?=L?[1-9])", symbol)]
    read = [_last(symbol, at) for at in starts]
    ended = [name for name, end in read if name and _END.fullmatch(symbol, end)]
    return ended[-1] if ended else read[0][0] or symbol  # the latter of a function


def _last(symbol: str, at: int) -> tuple[str, int]:
    """Return the last of the names that stand at a place, one in another, and where they end."""
    name = ""
    while (m := _NAME.match(symbol, at)) and m.end() + int(m[1]) <= len(symbol):
        at = m.end() + int(m[1])
        name = symbol[m.end() : at]
        arguments = _ARGUMENTS.match(symbol, at)
        at = arguments.end() if arguments else at
    return name, at
