"""Module variables by name: contents of ``__constant__`` and ``__device__`` for a launch.

Names are those of C++ (``coeff``, ``ns::coeff``) or of the PTX.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..kernel import Kernel
from ..ptx.module import Module, Variable
from ..ptx.names import variable_name
from ..source.element_types import misfit, spelled
from ..source.structures import layout_of, repeated
from .convert import Arguments, convert
from .values import Packer, Value

_QUALIFIERS = r"\b(?:__\w+__|static|extern|inline|const|constexpr|volatile|alignas\s*\([^)]*\))"
_OF_PTX = {"f32": "float", "f64": "double", "u16": "unsigned short", "u32": "unsigned int",
           "u64": "unsigned long long"}  # fmt: skip
"""Of variables that no source declares; the PTX of an ``int`` is the same."""


def convert_all(
    kernel: Kernel, module: Module, args: Sequence[Any], symbols: Mapping[str, Any] | None
) -> Arguments:
    """Convert a launch's arguments together with the contents of module variables.

    A variable takes an array of its size. By its declared type it also takes by-value contents: a
    number, a tuple of a structure's fields (arrays and textures allowed), a texture or surface, or
    a list of these for an array.

    Raises:
        ValueError: There is no such variable, or a value has another size or dtype.
        TypeError: A value is of another kind; also whatever ``convert`` raises.
    """
    plain, fills = dict[str, Any](), dict[str, Callable[[Packer], Value]]()
    for name, given in (symbols or {}).items():
        variable = _find(module, name)
        if variable.name in plain or variable.name in fills:
            raise ValueError(f"symbol {name!r} is given twice")
        if isinstance(given, np.ndarray) and not given.dtype.hasobject:
            plain[variable.name] = _fitting(kernel, variable, name, given)
        else:
            fills[variable.name] = _fill(kernel, variable, name, given)
    arguments = convert(kernel, args, kernel.labels(), fills)
    for name, array in plain.items():
        for other in (*arguments.arrays, *arguments.symbols.values()):
            if np.may_share_memory(other, array) and np.shares_memory(other, array):
                raise ValueError(f"symbol {variable_name(name)!r} overlaps another array")
        arguments.symbols[name] = array
    return arguments


def _fitting(kernel: Kernel, variable: Variable, name: str, array: Any) -> Any:
    """Check an array against the variable that it fills."""
    if array.nbytes != variable.nbytes:
        raise ValueError(
            f"symbol {name!r} has {variable.nbytes:,} bytes, the array {array.nbytes:,}"
        )
    element = declared_element(kernel, variable) or _OF_PTX.get(variable.type, "")
    if wrong := misfit(element, array.dtype):
        raise ValueError(f"symbol {name!r}: {wrong.replace('*,', ',')}")
    return array


def _fill(
    kernel: Kernel, variable: Variable, name: str, given: Any
) -> Callable[[Packer], Value]:  # fmt: skip
    """Return a function that packs a variable's value once the arrays are gathered."""
    kind = declared_element(kernel, variable) or (_OF_PTX | {"u64": "void*", "b64": "void*"}).get(
        variable.type, ""
    )
    layout = layout_of(kind, kernel.declarations) if kind else None
    if layout is not None and layout.nbytes and layout.nbytes < variable.nbytes:
        layout = repeated(layout, variable.nbytes // layout.nbytes)
    return lambda packer: packer.variable(variable.nbytes, given, layout, f"symbol {name!r}")


def _find(module: Module, name: str) -> Variable:
    own = [v for v in module.variables.values() if v.space in ("global", "const")]
    parts = name.split("::")
    path = "".join(f"{len(part)}{part}" for part in parts)
    found = [v for v in own if v.name == name] or [
        v for v in own
        if variable_name(v.name) == parts[-1] and (len(parts) == 1 or path in v.name)
    ]  # fmt: skip
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"symbol {name!r} could be {' or '.join(v.name for v in found)}")
    named = (variable_name(v.name) for v in own if "$" not in v.name)  # the compiler's: $str
    listed = ", ".join(sorted(named)) or "none"
    raise ValueError(
        f"no __constant__ or __device__ variable {name!r} in the PTX; it has: {listed}"
    )


def declared_element(kernel: Kernel, variable: Variable) -> str:
    """Return the declared C++ type of a variable's elements; ``""`` if unknown."""
    name = re.escape(variable_name(variable.name))
    found = re.compile(rf"__(?:constant|device)__([\w\s:]*?)\b{name}\s*(?=[;=,\[{{])")
    kinds = {m[1] for source in kernel.declarations.values() for m in found.finditer(source)}
    kind = re.sub(_QUALIFIERS, " ", kinds.pop()) if len(kinds) == 1 else ""
    return spelled(kind, kernel.declarations)
