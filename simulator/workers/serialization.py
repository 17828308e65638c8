"""Serialisation of observers between processes.

Both processes have compiled the same PTX. Objects of the launch and its program are pickled by
name, so that a site maps to the same site and remains a dictionary key.
"""

import io
import pickle
from collections.abc import Iterator
from typing import cast

from ..compile.program import Program
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation


def _things(launch: PreparedLaunch, allocations: dict[int, Allocation]) -> Iterator[object]:
    """Yield the objects that both processes have, in the same order."""
    program = launch.program
    yield from (launch, launch.kernel, program, program.layout, program.module, program.entry)
    yield from (program.blocks, program.sites, program.arithmetic, program.flights)
    for function in program.module.functions.values():
        yield from (function, *function.body)
    for block in program.blocks:
        yield from (block, block.lowered, block.block, *block.block.instructions)
    for site in program.sites:
        yield from (site, site.instruction, site.bulk)
    yield from program.arithmetic
    yield from program.flights
    yield from (allocations[number] for number in sorted(allocations))


class _Pickler(pickle.Pickler):
    """Pickler that writes objects of a launch by their index or program key."""

    def __init__(
        self, file: io.BytesIO, launch: PreparedLaunch, allocations: dict[int, Allocation]
    ) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        program = launch.program
        self.names: dict[int, object] = {}
        for place, thing in enumerate(_things(launch, allocations)):
            if thing is not None:
                self.names.setdefault(id(thing), place)
        self.names |= {id(memo): ("memo", key) for key, memo in program.memos.items()}
        self.names |= {id(fact): ("fact", make) for make, fact in program.facts.items()}

    def persistent_id(self, thing: object) -> object:
        """Return an object's name, or ``None``."""
        return self.names.get(id(thing))


class _Unpickler(pickle.Unpickler):
    """Unpickler for names of ``_Pickler``."""

    def __init__(
        self, file: io.BytesIO, launch: PreparedLaunch, allocations: dict[int, Allocation]
    ) -> None:
        super().__init__(file)
        self.program: Program = launch.program
        self.things = list(_things(launch, allocations))

    def persistent_load(self, name: object) -> object:
        """Return the object with a name."""
        if isinstance(name, int):
            return self.things[name]
        what, key = cast("tuple[str, object]", name)
        if what == "memo":
            return self.program.memo(*cast("tuple[object, ...]", key))
        return self.program.analysis(cast("type[object]", key))


def pack(what: object, launch: PreparedLaunch, allocations: dict[int, Allocation]) -> bytes:
    """Pickle an object that refers to a launch."""
    file = io.BytesIO()
    _Pickler(file, launch, allocations).dump(what)
    return file.getvalue()


def unpack(packed: bytes, launch: PreparedLaunch, allocations: dict[int, Allocation]) -> object:
    """Unpickle such an object in another process or this one."""
    return _Unpickler(io.BytesIO(packed), launch, allocations).load()
