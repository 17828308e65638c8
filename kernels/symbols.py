"""Module variables by name: the arrays that a launch gives to ``__constant__`` and ``__device__``.

Names are C++'s (``coeff``, ``ns::coeff``) or the PTX's own.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .arguments import Arguments
from .element_types import misfit, spelled
from .kernel import Kernel
from .ptx.module import Module, Variable
from .ptx.names import variable_name

_QUALIFIERS = r"\b(?:__\w+__|static|extern|inline|const|constexpr|volatile|alignas\s*\([^)]*\))"
_OF_PTX = {"f32": "float", "f64": "double", "u16": "short", "u32": "int", "u64": "long long"}


def add_symbols(
    arguments: Arguments, kernel: Kernel, module: Module, symbols: Mapping[str, Any] | None
) -> None:
    """Note in a launch's arguments which variables its arrays fill.

    Raises:
        ValueError: No such variable, or an array of another size or dtype; ``TypeError``: no array.
    """
    for name, array in (symbols or {}).items():
        variable = _find(module, name)
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise TypeError(f"symbol {name!r} takes a NumPy array, not {type(array).__name__}")
        if array.nbytes != variable.nbytes:
            raise ValueError(
                f"symbol {name!r} has {variable.nbytes:,} bytes, the array {array.nbytes:,}"
            )
        element = _declared(kernel, variable) or _OF_PTX.get(variable.type, "")
        if wrong := misfit(element, array.dtype):
            raise ValueError(f"symbol {name!r}: {wrong.replace('*,', ',')}")
        if variable.name in arguments.symbols:
            raise ValueError(f"symbol {name!r} is given twice")
        for other in (*arguments.arrays, *arguments.symbols.values()):
            if np.may_share_memory(other, array) and np.shares_memory(other, array):
                raise ValueError(f"symbol {name!r} overlaps another array of the launch")
        arguments.symbols[variable.name] = array


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
    listed = ", ".join(sorted(variable_name(v.name) for v in own)) or "none"
    raise ValueError(
        f"no __constant__ or __device__ variable {name!r} in the PTX; it has: {listed}"
    )


def _declared(kernel: Kernel, variable: Variable) -> str:
    """The type of a variable's elements in the kernel's source; ``""`` where it is not found."""
    name = re.escape(variable_name(variable.name))
    found = re.compile(rf"__(?:constant|device)__([\w\s:]*?)\b{name}\s*(?=[;=\[{{])")
    kinds = {m[1] for source in kernel.declarations.values() for m in found.finditer(source)}
    kind = re.sub(_QUALIFIERS, " ", kinds.pop()) if len(kinds) == 1 else ""
    return spelled(kind, kernel.declarations)
