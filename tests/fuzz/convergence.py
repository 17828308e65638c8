"""The net of convergence: where ptxas lets lanes converge, and counts under every schedule.

Draws small programs of conditional branches, loops, jumps out of them and early returns, some with
statements of their own. ptxas assembles them at level 0; its machine code says where convergence
barriers end (``BSYNC``). The simulator's rule has to name the same blocks, and to count the same
under every schedule.
"""

import random
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import simulator
from kernels import Kernel
from kernels.machine_code.elf import sections
from kernels.ptx.module import Imm
from simulator.execute.machine import flow_map
from simulator.execute.prepare import prepare
from tests.fuzz import ptxas
from tests.fuzz.report import Difference, Report, seeds

TOGETHER = 16
"""Programs of one text for ptxas."""
SIZE, EARLY = 4, 3
"""Statements with a condition; of every other program, which may return early.

``docs/counters.md`` says how often the rule is right for more.
"""
_MARK = 0x7A0000
_MOVE, _SYNC, _BRANCH = 0x802, 0x941, 0x947
_SCHEDULES = ("warps", "reverse", 5)


class Block(NamedTuple):
    """A basic block: its end is ``next``, ``branch`` (if a coin says so), ``jump`` or ``exit``."""

    name: str
    end: str = "next"
    target: str = ""


class _Drawer:
    """Draws a program: statements as C++ has them, in the order in which compilers lay them out."""

    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.blocks = [Block("entry")]
        self.left, self.names, self.depth, self.early = size, 0, 0, seed % 2
        self.loops: list[tuple[str, str]] = []
        self.far: list[Block] = []
        self.shared = ""

    def name(self) -> str:
        self.names += 1
        return f"b{self.names}"

    def some(self, most: int = 3) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement()

    def statement(self) -> None:
        self.left -= 1
        kinds = ["plain"]
        if self.left > 0 and self.depth < 4:
            kinds += ["if", "else", "do", "while", "leave", "leave", "or"]
            kinds += ["again", "return", "far", "share"] if self.early else []
        self.depth += 1
        getattr(self, f"_{self.random.choice(kinds)}")()
        self.depth -= 1

    def _plain(self) -> None:
        self.blocks.append(Block(self.name()))

    def _if(self) -> None:
        end = self.name()
        self.blocks.append(Block(self.name(), "branch", end))
        self.some()
        self.blocks.append(Block(end))

    def _else(self) -> None:
        other, end = self.name(), self.name()
        self.blocks.append(Block(self.name(), "branch", other))
        self.some()
        self.blocks += [Block(self.name(), "jump", end), Block(other)]
        self.some()
        self.blocks.append(Block(end))

    def _or(self) -> None:
        then, end = self.name(), self.name()
        self.blocks += [
            Block(self.name(), "branch", then), Block(self.name(), "branch", end), Block(then),
        ]  # fmt: skip
        self.some(1)
        self.blocks.append(Block(end))

    def _do(self) -> None:
        head, end, last = self.name(), self.name(), self.name()
        self.blocks.append(Block(head))
        self.loops.append((last, end))
        self.some()
        self.loops.pop()
        self.blocks += [Block(last, "branch", head), Block(end)]

    def _while(self) -> None:
        end = self.name()
        self.blocks.append(Block(self.name(), "branch", end))
        self._do()
        self.blocks.append(Block(end))

    def _again(self) -> None:
        then, end = self.name(), self.name()
        self.blocks.append(Block(self.name(), "branch", then))
        self.some(1)
        self.blocks += [Block(self.name(), "branch", then), Block(self.name(), "jump", end)]
        self.blocks.append(Block(then))
        self.some(1)
        self.blocks.append(Block(end))

    def _return(self) -> None:
        end = self.name()
        self.blocks.append(Block(self.name(), "branch", end))
        self.some(2)
        self.blocks += [Block(self.name(), "jump", "exit"), Block(end)]

    def _far(self) -> None:
        self.far.append(Block(self.name(), "jump", "exit"))
        self.blocks.append(Block(self.name(), "branch", self.far[-1].name))

    def _share(self) -> None:
        self.shared = self.shared or self.name()
        self.blocks.append(Block(self.name(), "branch", self.shared))

    def _leave(self) -> None:
        targets = ["exit", *(to for last, end in self.loops for to in (last, end, end))]
        self.blocks.append(Block(self.name(), "branch", self.random.choice(targets)))


def draw(seed: int, size: int = 0) -> list[Block]:
    """A program, by its seed; those of odd seeds may return early."""
    drawer = _Drawer(seed, size or (EARLY if seed % 2 else SIZE))
    drawer.some()
    drawer.some()
    late = list(drawer.far)
    if drawer.shared:
        late.append(Block(drawer.shared))
    if late and drawer.random.randrange(2):
        drawer.blocks.append(Block(drawer.name(), "jump", "exit"))
    return [*drawer.blocks, *late, Block("exit", "exit")]


def text(programs: Sequence[Sequence[Block]]) -> str:
    """PTX of programs, entries k0, k1 ...: each block leaves a mark, coins are each lane's own."""
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    for number, blocks in enumerate(programs):
        lines += [
            f".visible .entry k{number}(.param .u64 in, .param .u64 out)", "{",
            ".reg .pred %p;", ".reg .b32 %r<4>;", ".reg .b64 %d<4>;", "ld.param.u64 %d1, [in];",
            "ld.param.u64 %d2, [out];", "mov.u32 %r1, %tid.x;", "mul.wide.u32 %d3, %r1, 4;",
            "add.s64 %d1, %d1, %d3;", "add.s64 %d2, %d2, %d3;", "ld.global.u32 %r2, [%d1];",
        ]  # fmt: skip
        for place, block in enumerate(blocks):
            lines += [f"{block.name}:", f"mov.u32 %r3, {_MARK + place};",
                      "st.global.u32 [%d2], %r3;"]  # fmt: skip
            if block.end == "branch":
                lines += ["mad.lo.u32 %r2, %r2, 1664525, 1013904223;", "shr.u32 %r3, %r2, 27;",
                          "setp.lt.u32 %p, %r3, 16;", f"@%p bra {block.target};"]  # fmt: skip
            elif block.end != "next":
                lines.append("ret;" if block.end == "exit" else f"bra {block.target};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def barriers(programs: Sequence[Sequence[Block]]) -> list[set[str]]:
    """For each program the blocks in front of which ptxas ends convergence barriers."""
    found: list[set[str]] = [set() for _ in programs]
    for section in sections(ptxas.assembled(text(programs), "sm_90")).values():
        if (entry := re.fullmatch(r"\.text\.k(\d+)", section.name)) is None:
            continue
        number, waiting = int(entry[1]), False
        for low, _ in struct.iter_unpack("<QQ", section.data()):
            opcode, value = low & 0xFFF, low >> 32
            if opcode == _MOVE and value >> 16 == _MARK >> 16:
                if waiting:
                    found[number].add(programs[number][value & 0xFFFF].name)
                waiting = False
            elif opcode == _SYNC:
                waiting = True
            elif opcode == _BRANCH:
                waiting = False
    return found


def points(kernel: Kernel, blocks: Sequence[Block]) -> set[str]:
    """The blocks that the simulator takes for convergence points."""
    args = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    launch = prepare(kernel, 1, 64, args, 0, "lockstep", 1, False)
    places = {}
    for block in launch.program.blocks:
        for ins in block.block.instructions:
            for operand in ins.operands:
                if isinstance(operand, Imm) and operand.value >> 16 == _MARK >> 16:
                    places[block.number] = blocks[operand.value & 0xFFFF].name
    regions = launch.program.analysis(flow_map).convergence.points
    return {places[number] for number in regions if number in places}


def counts(kernel: Kernel, seed: int, schedule: str | int) -> tuple[int, ...]:
    """What is counted of a launch of six warps, the last of them a part."""
    given = np.random.default_rng(seed).integers(1 << 32, size=168, dtype=np.uint32)
    run = simulator.launch(
        kernel, 2, 168, [given, np.zeros(168, np.uint32)], checks="none", schedule=schedule
    )
    stores, c = run.counters.global_store, run.counters
    return stores.requests, stores.sectors, stores.accesses, c.warp_instructions


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    report = Report()
    for some in _together(seeds(seconds, seed, count)):
        programs = [draw(one) for one in some]
        found = barriers(programs) if ptxas.path() else None
        if found is None:
            report.notes = ["not held to ptxas: the wheel nvidia-cuda-nvcc is missing"]
        for place, (one, blocks) in enumerate(zip(some, programs, strict=True)):
            report.programs += 1
            kernel = Kernel.from_ptx(text([blocks]), "k0")
            if found is not None and (mine := points(kernel, blocks)) != found[place]:
                what = f"ptxas: {sorted(found[place])}, here: {sorted(mine)}"
                report.differences.append(Difference(one, what, text([blocks])))
            first = counts(kernel, one, "lockstep")
            for schedule in _SCHEDULES:
                report.launches += 1
                if (other := counts(kernel, one, schedule)) != first:
                    what = f"lockstep counts {first}, {schedule} {other}"
                    report.differences.append(Difference(one, what, text([blocks])))
    return report


def _together(numbers: Iterator[int]) -> Iterator[list[int]]:
    some: list[int] = []
    for number in numbers:
        some.append(number)
        if len(some) == TOGETHER:
            yield some
            some = []
    if some:
        yield some
