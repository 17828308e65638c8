"""A kernel as C++ writes it: its name, and the types of its parameters where it is overloaded."""

from ..errors import CompileError
from ..ptx import header as ptx_header
from .element_types import spelled
from .mangling import demangle
from .signatures import parted


def expression(entry: str) -> str:
    """Return the C++ expression of a kernel's address; parameter types choose among overloads."""
    name, params = parted(entry)
    return name if params is None else f"static_cast<void (*)({params})>({name})"


def entry_named(ptx: str, entry: str) -> str:
    """Return the entry of a PTX text that has this name; ``""`` if none has.

    Raises:
        CompileError: Several have it.
    """
    names = [found.name for found in ptx_header.entries(ptx)]
    if entry in names:
        return entry
    known = [(name, symbol) for name in names if (symbol := demangle(name))]
    name, params = parted(entry)
    wanted = name.removeprefix("::")
    found = [(name, s) for name, s in known if s.name == wanted or s.name.endswith(f"::{wanted}")]
    if params is not None:
        found = [(name, s) for name, s in found if list(s.params) == _kinds(params)]
    if len(found) > 1:
        listed = "; ".join(f"{name} ({', '.join(s.params)})" for name, s in found)
        first = f"{name}({', '.join(found[0][1].params)})"
        raise CompileError(
            f"several kernels are named {entry!r}; choose one by its parameters, as in {first!r}, "
            f"or by its name in PTX: {listed}"
        )
    return found[0][0] if found else ""


def _kinds(params: str) -> list[str]:
    """Return the types of a list of parameters, as ``Symbol`` has them."""
    parts, depth = [""], 0
    for char in params:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    kinds = [spelled(part, {}) for part in parts]
    return [] if kinds in ([""], ["void"]) else kinds
