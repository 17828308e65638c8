"""The state spaces, a ``bytearray`` each, and where they begin among generic addresses."""

from kernels.ptx.module import Function, Module, Symbol, Variable

SHARED, LOCAL = 1 << 50, 1 << 51
RANK = 24
"""Bits of an address inside a block's shared memory; above them stands whose it is."""
ARRAY = 32
"""Bits of addresses that each global array has to itself."""
PARAMETERS = 1 << 10
VARIABLES = PARAMETERS + 1


class Fault(Exception):
    """An access outside of everything, or misaligned."""


def place(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Offsets of variables one after another, and the end."""
    offsets = {}
    for variable in variables:
        start = -(-start // variable.align) * variable.align
        offsets[variable.name] = start
        start += variable.nbytes
    return offsets, start


class Memory:
    """All that the threads of a launch share."""

    def __init__(self, module: Module, functions: list[Function], arrays: list[bytearray]) -> None:
        self.arrays: dict[int, bytearray] = dict(enumerate(arrays, 1))
        self.addresses: dict[tuple[str, str], int] = {}
        shared = [("", v) for v in module.variables.values() if v.space == "shared"]
        local, dynamic = 0, []
        for function in functions:
            for variable in function.variables.values():
                if variable.space == "shared":
                    shared.append((function.name, variable))
                elif variable.space == "local":
                    local = -(-local // variable.align) * variable.align
                    self.addresses[function.name, variable.name] = local
                    local += variable.nbytes
        self.local_bytes = local
        end = 0
        for scope, variable in shared:
            if variable.external:
                dynamic.append((scope, variable))
                continue
            end = -(-end // variable.align) * variable.align
            self.addresses[scope, variable.name] = end
            end += variable.nbytes
        self.dynamic_start = -(-end // 16) * 16
        for scope, variable in dynamic:
            self.addresses[scope, variable.name] = self.dynamic_start
        number = VARIABLES
        for variable in module.variables.values():
            if variable.space in ("global", "const"):
                self.addresses["", variable.name] = number << ARRAY
                number += 1
        for variable in module.variables.values():
            if variable.space in ("global", "const"):
                at = self.addresses["", variable.name] >> ARRAY
                self.arrays[at] = self.content(variable)

    def own(self, function: Function) -> list[range]:
        """Where a function's variables are in local memory."""
        places = ((self.addresses[function.name, v.name], v)
                  for v in function.variables.values() if v.space == "local")  # fmt: skip
        return [range(at, at + v.nbytes) for at, v in places]

    def content(self, variable: Variable) -> bytearray:
        """Initial bytes of a module variable."""
        count = max(1, variable.nbytes)
        size = count
        for extent in variable.dims:
            size //= extent
        made = bytearray()
        for item in variable.init:
            if isinstance(item, Symbol):
                item = self.addresses["", item.name] + item.offset
            made += (item & (1 << 8 * size) - 1).to_bytes(size, "little")
        return made.ljust(count, b"\0")
