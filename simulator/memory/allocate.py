"""A launch's global memory: what the host gives to it, and what the host gets back."""

from collections.abc import Collection

import numpy as np

from kernels.arguments import Arguments, content, write_back
from kernels.ptx.names import variable_name
from kernels.unset import missing_of, still_unset

from .layout import (
    PARAMETERS,
    Layout,
    array_address,
    array_number,
    function_address,
    variable_bytes,
)
from .spaces import Allocation


def allocate(
    layout: Layout, functions: Collection[str], arguments: Arguments
) -> dict[int, Allocation]:
    """Global memory: the argument arrays, the parameters, the module's variables."""
    made = {
        number: Allocation(number, content(array), label, bool(array.flags.writeable))
        for number, (array, label) in enumerate(
            zip(arguments.arrays, arguments.labels, strict=True)
        )
    }
    for number, array in enumerate(arguments.arrays):
        missing = missing_of(array)
        if missing is not None:
            made[number].missing = missing
    parameters = np.frombuffer(arguments.parameter_buffer(array_address), np.uint8)
    made[PARAMETERS] = Allocation(PARAMETERS, parameters, "parameters", False, space="param")
    addresses = {name: p.address for (scope, name), p in layout.placed.items() if not scope}
    for name in functions:
        addresses.setdefault(name, function_address(functions, name))
    for (_, name), p in layout.placed.items():
        variable = p.variable
        if variable.space in ("global", "const"):
            number = array_number(p.address)
            initial = np.frombuffer(variable_bytes(layout, variable, addresses), np.uint8)
            writable = variable.space == "global"
            nbytes = max(variable.nbytes, len(initial))
            made[number] = Allocation(
                number, initial, variable_name(name), writable, nbytes, variable.space
            )
    return made


def give_back(arguments: Arguments, allocations: dict[int, Allocation], still: bool) -> None:
    """The argument arrays hold what the launch left; ``still``: note what nothing has written."""
    for number, array in enumerate(arguments.arrays):
        write_back(array, allocations[number].content())
        if still:
            still_unset(array, allocations[number].missing)
