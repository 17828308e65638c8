"""What observers saw, on its way from one process to another.

Both have compiled the same PTX, so that what belongs to the launch and its program goes by name: a
site of one process is the same site in the other, and stays a key of dictionaries.
"""

import io
import pickle
from collections.abc import Iterator
from typing import cast

from ..compile.program import Program
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation


def _things(launch: PreparedLaunch, allocations: dict[int, Allocation]) -> Iterator[object]:
    """What both processes have, in an order that is the same in both."""
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
    """Writes what belongs to a launch as its place among ``_things``, or its key in the program."""

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
        """A name, or ``None``."""
        return self.names.get(id(thing))


class _Unpickler(pickle.Unpickler):
    """Finds what ``_Pickler`` names."""

    def __init__(
        self, file: io.BytesIO, launch: PreparedLaunch, allocations: dict[int, Allocation]
    ) -> None:
        super().__init__(file)
        self.program: Program = launch.program
        self.things = list(_things(launch, allocations))

    def persistent_load(self, name: object) -> object:
        """What has a name."""
        if isinstance(name, int):
            return self.things[name]
        what, key = cast("tuple[str, object]", name)
        if what == "memo":
            return self.program.memo(*cast("tuple[object, ...]", key))
        return self.program.analysis(cast("type[object]", key))


def pack(what: object, launch: PreparedLaunch, allocations: dict[int, Allocation]) -> bytes:
    """What refers to a launch, as bytes."""
    file = io.BytesIO()
    _Pickler(file, launch, allocations).dump(what)
    return file.getvalue()


def unpack(packed: bytes, launch: PreparedLaunch, allocations: dict[int, Allocation]) -> object:
    """The same in another process, or of this one."""
    return _Unpickler(io.BytesIO(packed), launch, allocations).load()
