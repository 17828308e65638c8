"""Global memory of a launch: contents from the host, and write-back."""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from kernels.arguments.convert import Arguments, Object, content, write_back
from kernels.arguments.tensor_map import TensorMap
from kernels.arguments.uninitialised import missing_of, still_unset
from kernels.ptx.names import variable_name

from ...core.geometry import Flat
from .image_handles import handle
from .layout import (
    PARAMETERS,
    Layout,
    array_address,
    array_number,
    function_addresses,
    variable_bytes,
)
from .module_state import VariableState, given_addresses, hold
from .spaces import Allocation


def allocate(
    layout: Layout,
    functions: Collection[str],
    arguments: Arguments,
    known: Mapping[str, VariableState],
) -> dict[int, Allocation]:
    """Return global memory: argument arrays, parameters, module variables.

    ``known``: contents of variables that the launch does not set.
    """
    made = {
        number: Allocation(
            number,
            arguments.buffers.get(number, content(array)),
            label,
            bool(array.flags.writeable),
            array.nbytes,
        )
        for number, (array, label) in enumerate(
            zip(arguments.arrays, arguments.labels, strict=True)
        )
        if array is not None
    }
    for number, array in enumerate(arguments.arrays):
        missing = missing_of(array)
        if missing is not None:
            made[number].missing, made[number].lent_flags = missing, True

    for number, pictures in arguments.pictures.items():
        made[number].pictures = list(pictures)
    for number, (name, array) in arguments.others.items():
        made[number] = Allocation(number, content(array), name, True)

    def encoded(of: Object, address: int) -> bytes:
        if isinstance(of, TensorMap):
            return of.packed(address)
        return handle(made[int(array_number(address))], of)

    for number in arguments.tables:
        made[number].change()
        made[number].content()[:] = arguments.table(number, array_address, encoded)
    parameters = np.frombuffer(arguments.parameter_buffer(array_address, encoded), np.uint8)
    made[PARAMETERS] = Allocation(PARAMETERS, parameters, "parameters", False, space="param")
    addresses = _addresses(layout, functions)
    for (scope, name), p in layout.placed.items():
        variable = p.variable
        if variable.space in ("global", "const"):
            number = array_number(p.address)
            given = None if scope else arguments.symbols.get(name)
            previous = None if scope or given is not None else known.get(name)
            if given is not None and name in arguments.filled:
                raw = bytearray(arguments.filled[name].filled(array_address, encoded))
                given = np.frombuffer(raw, np.uint8)
            initial = np.frombuffer(variable_bytes(layout, variable, addresses), np.uint8)
            initial = initial if given is None else content(given)
            initial = initial if previous is None else previous.over(initial)
            writable = variable.space == "global" and (given is None or given.flags.writeable)
            nbytes = max(variable.nbytes, len(initial))
            made[number] = made_one = Allocation(
                number, initial, variable_name(name), writable, nbytes, variable.space
            )
            filled = given is not None or previous is not None
            made_one.unfilled = variable.space == "const" and not variable.init and not filled
            made_one.missing = None if given is None else missing_of(given)
            made_one.lent_flags = made_one.missing is not None
            if previous is not None and previous.missing is not None:
                made_one.missing, made_one.lent_flags = previous.missing.copy(), False
    return made


def module_variables_after(
    layout: Layout,
    functions: Collection[str],
    arguments: Arguments,
    known: Mapping[str, VariableState],
    allocations: Mapping[int, Allocation],
) -> dict[str, VariableState]:
    """Return the contents of variables that the launch or the host has set."""
    found: dict[str, VariableState] = {}
    addresses = _addresses(layout, functions)
    for (scope, name), p in layout.placed.items():
        if scope or p.variable.space not in ("global", "const"):
            continue
        memory = allocations[array_number(p.address)]
        if memory.changed or name in arguments.symbols:
            initial = np.frombuffer(variable_bytes(layout, p.variable, addresses), np.uint8)
            given = given_addresses(arguments, name, memory.nbytes)
            if name not in arguments.symbols and name in known:
                initial = known[name].over(initial)
            found[name] = hold(memory, initial, given, allocations)
    return found


def _addresses(layout: Layout, functions: Collection[str]) -> dict[str, int]:
    """Return the addresses of functions and module variables."""
    found = function_addresses(functions)
    return found | {name: p.address for (scope, name), p in layout.placed.items() if not scope}


def copy_back(
    arguments: Arguments, layout: Layout, allocations: dict[int, Allocation], still: bool,
    stored: Callable[[int, int], Flat | None],
) -> None:  # fmt: skip
    """Write results back to the host's arrays that the launch wrote.

    ``still``: record which bytes remain uninitialised, as the allocations know them. Otherwise
    ``stored`` gives, by an array's number and size, the bytes that the launch has written, or
    ``None`` if they are unknown.
    """
    symbols = {array_number(layout.placed["", n].address): a for n, a in arguments.symbols.items()}
    others = ((number, array) for number, (_, array) in arguments.others.items())
    for number, array in (*enumerate(arguments.arrays), *symbols.items(), *others):
        if array is None:
            continue
        memory, missing = allocations[number], missing_of(array)
        if memory.changed:
            plain = array if missing is None else array.view(np.ndarray)
            write_back(plain, memory.content())
        if missing is None:
            continue
        if still:
            if not memory.lent_flags:
                still_unset(array, memory.missing)
        elif memory.changed:
            written = stored(number, memory.nbytes)
            still_unset(array, np.zeros_like(missing) if written is None else missing & ~written)
