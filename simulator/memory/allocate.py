"""A launch's global memory: what the host gives to it, and what the host gets back."""

from collections.abc import Collection

import numpy as np

from kernels.arguments import Arguments, Object, content, write_back
from kernels.ptx.names import variable_name
from kernels.tensor_map import TensorMap
from kernels.unset import missing_of, still_unset

from .layout import (
    PARAMETERS,
    Layout,
    array_address,
    array_number,
    function_addresses,
    variable_bytes,
)
from .pictures import handle
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

    def encoded(of: Object, address: int) -> bytes:
        if isinstance(of, TensorMap):
            return of.packed(address)
        return handle(made[int(array_number(address))], of)

    for number in arguments.tables:
        made[number].change()
        made[number].content()[:] = arguments.table(number, array_address, encoded)
    parameters = np.frombuffer(arguments.parameter_buffer(array_address, encoded), np.uint8)
    made[PARAMETERS] = Allocation(PARAMETERS, parameters, "parameters", False, space="param")
    addresses = function_addresses(functions)
    addresses |= {name: p.address for (scope, name), p in layout.placed.items() if not scope}
    for (scope, name), p in layout.placed.items():
        variable = p.variable
        if variable.space in ("global", "const"):
            number = array_number(p.address)
            given = None if scope else arguments.symbols.get(name)
            if given is not None and name in arguments.filled:
                raw = bytearray(arguments.filled[name].filled(array_address, encoded))
                given = np.frombuffer(raw, np.uint8)
            initial = np.frombuffer(variable_bytes(layout, variable, addresses), np.uint8)
            initial = initial if given is None else content(given)
            writable = variable.space == "global" and (given is None or given.flags.writeable)
            nbytes = max(variable.nbytes, len(initial))
            made[number] = made_one = Allocation(
                number, initial, variable_name(name), writable, nbytes, variable.space
            )
            made_one.unfilled = variable.space == "const" and not variable.init and given is None
            made_one.missing = None if given is None else missing_of(given)
    return made


def give_back(
    arguments: Arguments, layout: Layout, allocations: dict[int, Allocation], still: bool
) -> None:
    """The host's arrays hold what the launch left; ``still``: note what nothing has written.

    Those are left alone that it did not write to.
    """
    symbols = {array_number(layout.placed["", n].address): a for n, a in arguments.symbols.items()}
    for number, array in (*enumerate(arguments.arrays), *symbols.items()):
        if allocations[number].changed:
            write_back(array, allocations[number].content())
        if still:
            still_unset(array, allocations[number].missing)
