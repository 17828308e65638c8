"""Threads one at a time: runs what the scalar emitter writes, and waits where threads do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.ptx.types import DTYPES
from simulator.compile.blocks import EXIT
from simulator.execute.prepare import Prepared, prepare
from simulator.execute.specials import SpecialRegisters
from simulator.geometry import Geometry, WarpView
from simulator.isa.windows import WINDOWS
from simulator.memory import atomics
from simulator.memory.layout import PARAMETERS, array_number
from simulator.memory.site import Site
from simulator.memory.spaces import Allocation
from tests.scalar_emitter import Code, Emitter, Wait, parts


@dataclass
class Block:
    """A block of the grid: its memory, and the threads of it."""

    launch: Prepared
    codes: list[Code]
    number: int
    memory: dict[int, Allocation]
    arrived: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.shared = np.zeros(self.launch.shared_bytes, np.uint8)
        shape = self.launch.grid, self.launch.block
        self.geometry = Geometry(*shape, np.array([self.number]))
        launch = self.launch
        self.specials = SpecialRegisters()
        self.specials.start(self.geometry, launch.shared_bytes, launch.dynamic_bytes)
        self.threads = [Thread(self, self.codes, i) for i in range(self.geometry.threads)]

    def run(self) -> None:
        """Run each thread as far as it goes, again and again."""
        for thread in self.threads:
            thread.go()
        while any(thread.wait for thread in self.threads):
            assert self.warps() or self.gates() or self.barriers(), "a deadlock"

    def warps(self) -> bool:
        """Let the lanes of a warp go that stand at one warp instruction, or at copies of it."""
        groups: dict[Any, list[Thread]] = {}
        for thread in self.threads:
            if thread.wait and thread.wait[0] == "warp":
                groups.setdefault((thread.lane // 32, thread.wait[3]), []).append(thread)
        for group in groups.values():
            mask = np.zeros(self.geometry.threads, bool)
            mask[[thread.lane for thread in group]] = True
            view = WarpView(self.geometry, mask.reshape(self.geometry.shape))
            columns = zip(*(thread.wait[2] for thread in group), strict=True)
            found = parts(group[0].wait[1](view, *(self.spread(group, c) for c in columns)))
            found = [np.broadcast_to(value, self.geometry.shape).reshape(-1) for value in found]
            for thread in group:
                thread.go(tuple(value[thread.lane] for value in found))
        return bool(groups)

    def spread(self, group: list[Thread], values: Sequence[Any]) -> Any:
        """Values of some lanes as one of all lanes."""
        made = np.zeros(self.geometry.threads, values[0].dtype)
        made[[thread.lane for thread in group]] = values
        return made.reshape(self.geometry.shape)

    def gates(self) -> bool:
        """Open gates that all living lanes have come to whom their members name."""
        groups: dict[Any, list[Thread]] = {}
        for thread in self.threads:
            if thread.wait and thread.wait[0] == "gate":
                groups.setdefault((thread.lane // 32, thread.wait), []).append(thread)
        opened = False
        for (warp, (_, _, members)), group in groups.items():
            lanes = self.threads[32 * warp : 32 * warp + 32]
            if all(t in group or not t.alive or not members >> i & 1 for i, t in enumerate(lanes)):
                opened = True
                for thread in group:
                    thread.go()
        return opened

    def barriers(self) -> bool:
        """Let threads go that a barrier has waited for."""
        groups: dict[int, list[Thread]] = {}
        for thread in self.threads:
            if thread.wait and thread.wait[0] == "barrier":
                groups.setdefault(int(thread.wait[3]), []).append(thread)
        opened = False
        for number, group in groups.items():
            count = max(int(thread.wait[4]) for thread in group if thread.wait)
            count = count or sum(thread.alive for thread in self.threads)
            if len(group) + self.arrived[number] >= count:
                opened = True
                del self.arrived[number]
                self.release(group)
        return opened

    def release(self, group: list[Thread]) -> None:
        given = [thread.wait[5] for thread in group if thread.wait and thread.wait[2]]
        results = {
            "popc": np.int32(sum(map(bool, given))), "and": np.bool_(all(given)),
            "or": np.bool_(any(given)), None: None,
        }  # fmt: skip
        for thread in group:
            thread.go(results[thread.wait[2]] if thread.wait else None)


class Thread:
    """One thread: registers, local memory, and where it waits."""

    def __init__(self, block: Block, codes: list[Code], lane: int) -> None:
        self.block, self.lane = block, lane
        program = block.launch.program
        self.registers = list(program.registers)
        self.local = np.zeros(program.layout.local_bytes, np.uint8)
        self.alive = True
        self.wait: Wait | None = None
        self.running = self.walk(codes, program.start)

    def walk(self, codes: list[Code], number: int) -> Generator[Wait, Any, None]:
        while number != EXIT:
            number = yield from codes[number](self)

    def go(self, answer: Any = None) -> None:
        """Run until it waits for others, or is done."""
        self.wait = None
        while self.wait is None:
            try:
                wait = self.running.send(answer)
            except StopIteration:
                self.alive = False
                return
            answer = None
            if wait[0] == "barrier" and not wait[1]:
                self.block.arrived[int(wait[3])] += 1
            else:
                self.wait = wait

    def special(self, name: str) -> Any:
        value = self.block.specials[name]
        return np.broadcast_to(value, self.block.geometry.shape).reshape(-1)[self.lane]

    def parameter(self, offset: int, kind: str) -> Any:
        return np.frombuffer(self.block.memory[PARAMETERS].buffer, DTYPES[kind], 1, offset)[0]

    def place(self, site: Site, base: Any) -> tuple[Any, bool]:
        """The elements of an access, as a view of memory, and whether they are global."""
        address = int(base) + site.offset
        window = 0
        if site.space in ("shared", "local"):
            window = 1 if site.space == "shared" else 2
        elif address >> 60:
            window = address >> 60
            address -= WINDOWS["shared" if window == 1 else "local"]
        if window:
            memory = self.block.shared if window == 1 else self.local
        else:
            home = self.block.memory[int(array_number(np.int64(address)))]
            memory, address = home.buffer, address - home.base
        assert address >= 0
        return memory[address : address + site.nbytes].view(DTYPES[site.type]), not window

    def load(self, site: Site, base: Any, _: tuple[()]) -> tuple[Any, ...]:
        if self.lane % 32 >= site.lanes:
            return (DTYPES[site.type].type(0),) * site.count
        return tuple(self.place(site, base)[0].copy())

    def store(self, site: Site, base: Any, values: tuple[Any, ...]) -> None:
        self.place(site, base)[0][:] = values

    def atomic(self, site: Site, base: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
        place, is_global = self.place(site, base)
        old = atomics.apply(
            site.operation, site.type, np.zeros(1, int), tuple(np.array([v]) for v in values),
            lambda _: place.copy(), lambda _, new: place.__setitem__(slice(None), new), is_global,
        )  # fmt: skip
        return (old[0],)


def run(
    kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], shared_bytes: int = 0
) -> list[bytes]:
    """Launch a kernel, a thread after the other; what its arrays hold afterwards."""
    launch = prepare(kernel, grid, block, args, shared_bytes, "lockstep", 1, False)
    memory = launch.allocations()
    for array in memory.values():
        array.change()
    codes = [Emitter(made.lowered).code() for made in launch.program.blocks]
    with np.errstate(all="ignore"):
        for number in range(int(np.prod(launch.grid))):
            Block(launch, codes, number, memory).run()
    return [memory[i].content().tobytes() for i in range(len(launch.arguments.arrays))]
