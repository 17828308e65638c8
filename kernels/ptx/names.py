"""C++ names out of mangled ones, as far as reports need them."""

import functools
import re

LOCAL_MEMORY = "memory of the thread"
"""Stands for the one array in which a compiler keeps all local variables of a function."""


@functools.lru_cache(maxsize=4096)
def variable_name(symbol: str) -> str:
    """``As`` out of ``_ZZ5tiledILi16EEvPKfE2As``; other symbols stay as they are."""
    if symbol.startswith("__local_depot"):
        return LOCAL_MEMORY
    if not symbol.startswith("_Z"):
        return symbol.split("#")[0]
    for m in reversed(list(re.finditer(r"(\d{1,9})(?=[A-Za-z_])", symbol))):
        length = int(m[1])
        name = symbol[m.end() : m.end() + length]
        if len(name) == length and re.fullmatch(r"[A-Za-z_]\w*", name):
            return name
    return symbol
