"""Threads, one after another; they change places only where they have to wait."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from kernels.ptx.module import Function, Instruction, Module
from kernels.ptx.parser import parse
from tests.oracles.interpreter import decode, undefined_steps
from tests.oracles.interpreter.barriers import Barriers, Deadlock
from tests.oracles.interpreter.clusters import Cluster
from tests.oracles.interpreter.definedness import Follow, Shadow
from tests.oracles.interpreter.memory import Memory

LANES = 32
TURN = 3000
"""Instructions after which another thread goes: one may spin for what another has to do."""


class Livelock(Exception):
    """More steps than allowed."""


class Wait:
    """What a thread stands at: a barrier, or an instruction of its warp."""

    def __init__(self, ins: Instruction, values: tuple[int, ...], finish: Any) -> None:
        self.ins, self.values, self.finish = ins, values, finish

    @property
    def way(self) -> tuple[int, str]:
        """Of a barrier: its count, and how it reduces; all that meet there have the same."""
        words = (word for word in ("and", "or", "popc") if self.ins.has(word))
        return self.values[1], next(words, "")


class Frame:
    """One call: registers by number, and the bytes of its parameters."""

    __slots__ = (
        "carry", "code", "function", "home", "params", "pc", "regs", "results", "unset",
        "unset_carry", "unset_params",
    )  # fmt: skip

    def __init__(self, function: Function, code: decode.Code) -> None:
        self.function, self.code, self.home = function, code.steps, code
        self.regs = [0] * code.registers
        self.unset = [0] * code.registers
        self.unset_params: dict[str, Shadow] = {}
        self.unset_carry = 0
        self.params: dict[str, bytearray] = {}
        self.results: tuple[str, ...] = ()
        self.pc = 0
        self.carry = 0


class Thread:
    """One thread of a block."""

    def __init__(self, block: Block, tid: tuple[int, int, int], linear: int) -> None:
        self.block, self.tid, self.linear = block, tid, linear
        self.memory = block.launch.memory
        self.shared = block.shared
        self.local = bytearray(self.memory.local_bytes)
        self.lane, self.warp = linear % LANES, linear // LANES
        self.done = False
        self.wait: Wait | None = None
        self.undefined: tuple[int, ...] = ()
        launch = block.launch
        frame = Frame(launch.entry, launch.code[launch.entry.name])
        frame.params = dict(launch.params)
        self.stack = [frame]

    def go(self, steps: int) -> int:
        """Run until the thread waits, ends or has had its turn; the steps that are left."""
        turn = max(steps - TURN, 0)
        while True:
            frame = self.stack[-1]
            code, pc = frame.code, frame.pc
            while True:
                steps -= 1
                if steps < turn:
                    if steps < 0:
                        raise Livelock
                    frame.pc = pc
                    return steps
                after = code[pc](self, frame)
                if after is None:
                    pc += 1
                elif after.__class__ is int:
                    pc = after
                else:
                    break
            frame.pc = pc + 1
            if after is decode.EXIT:
                self.done = True
                return steps
            if after is decode.RETURN:
                self.stack.pop()
                if not self.stack:
                    self.done = True
                    return steps
                caller = self.stack[-1]
                for ours, result in zip(frame.results, frame.function.results, strict=True):
                    caller.params[ours] = frame.params[result.name]
                    caller.unset_params.pop(ours, None)
                    if result.name in frame.unset_params:
                        caller.unset_params[ours] = frame.unset_params[result.name]
            elif isinstance(after, decode.Call):
                callee = self.block.launch.module.functions[after.name]
                made = Frame(callee, self.block.launch.code[after.name])
                for theirs, param in zip(after.arguments, callee.params, strict=True):
                    given = frame.params.get(theirs, bytes(param.nbytes))  # nothing set any of it
                    made.params[param.name] = bytearray(given)
                    if theirs in frame.unset_params:
                        made.unset_params[param.name] = frame.unset_params.pop(theirs)
                for result in callee.results:
                    made.params[result.name] = bytearray(result.nbytes)
                made.results = after.results
                if self.block.launch.follow:
                    own = self.memory.own(callee)
                    self.block.launch.follow.forget(self.local, own)
                self.stack.append(made)
            else:
                self.wait = after
                return steps


class Block:
    """The threads of one block, and its barriers."""

    cluster: Cluster
    rank: int

    def __init__(self, launch: Launch, ctaid: tuple[int, int, int]) -> None:
        self.launch, self.ctaid = launch, ctaid
        self.shared = bytearray(launch.shared_bytes)
        x, y, z = launch.block
        self.threads = [
            Thread(self, (i % x, i // x % y, i // (x * y)), i) for i in range(x * y * z)
        ]
        self.barriers = Barriers(self)

    def warps(self) -> bool:
        """Let groups of lanes go that stand at the same warp instruction, or at copies of it."""
        moved = False
        for first in range(0, len(self.threads), LANES):
            warp = [t for t in self.threads[first : first + LANES] if not t.done]
            groups: dict[Any, list[Thread]] = {}
            for t in warp:
                if t.wait and decode.of_warp(t.wait.ins):
                    ins, members = t.wait.ins, t.wait.values[-1]
                    copies = ins if ins.opcode == "activemask" else (ins.opcode, ins.modifiers)
                    groups.setdefault((copies, members), []).append(t)
            for (_, members), group in groups.items():
                here = sum(1 << t.lane for t in group)
                if any(not members >> t.lane & 1 for t in group):
                    raise Deadlock("a lane executes a warp instruction whose mask leaves it out")
                living = sum(1 << t.lane for t in warp)
                if here != members & living:
                    continue
                if self.launch.follow:
                    undefined_steps.together(group, members & living)
                decode.together(group, members & living)
                for t in group:
                    t.wait = None
                moved = True
        return moved


class Launch:
    """A kernel, its arguments and its memory."""

    def __init__(
        self, module: Module, entry: str, grid: Sequence[int], block: Sequence[int],
        arrays: list[bytearray], params: bytes, dynamic: int, steps: int,
        nan: Callable[[int, str], int] | None, follow: Follow | None,
    ) -> None:  # fmt: skip
        self.module, self.steps, self.nan, self.follow = module, steps, nan, follow
        self.grid = (*grid, 1, 1)[:3]
        self.block = (*block, 1, 1)[:3]
        self.dynamic = dynamic
        self.entry = module.functions[entry]
        functions = decode.called(module, self.entry)
        self.memory = Memory(module, functions, arrays)
        self.shared_bytes = self.memory.dynamic_start + dynamic
        self.params = {"": bytearray(params)}
        for p in self.entry.params:
            self.params[p.name] = bytearray(params[p.offset : p.offset + p.nbytes])
        self.memory.arrays[decode.PARAMETERS] = self.params[""]
        self.code = {f.name: decode.Code(self, f) for f in functions}

    def run(self, order: random.Random | None = None) -> None:
        """All blocks, one after another."""
        if self.follow:
            self.follow.arrays(self.memory.arrays)
        x, y, z = self.grid
        places = [(i % x, i // x % y, i // (x * y)) for i in range(x * y * z)]
        size = (*self.entry.required_cluster, 1)[0]
        clusters = [places[i : i + size] for i in range(0, len(places), size)]
        if order:
            order.shuffle(clusters)
        for those in clusters:
            Cluster([Block(self, place) for place in those]).run(order, self.steps)
        if self.follow:
            self.follow.end()


def run(
    ptx: str,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    steps: int = 2_000_000,
    order: int | None = None,
    nan: Callable[[int, str], int] | None = None,
    follow: Follow | None = None,
) -> list[bytes]:
    """Run a kernel; the arrays' bytes afterwards.

    Args:
        ptx: The text; ``entry``: the kernel in it.
        grid: Blocks; ``block``: threads.
        args: Bytes of each argument: a ``bytearray`` is an array behind a pointer (copied),
            ``bytes`` are passed by value.
        shared_bytes: Dynamic shared memory.
        steps: Instructions a block may run.
        order: A seed that mixes threads and blocks; a kernel without races does not see it.
        nan: What a NaN that an instruction makes is to be instead, from its bits and its type.
        follow: Notes what is done with uninitialised memory.

    Raises:
        Deadlock, Livelock, NotModelled: It cannot be run to the end.
    """
    module = parse(ptx)
    arrays = [bytearray(a) for a in args if isinstance(a, bytearray)]
    buffer, number = bytearray(), 0
    for param, arg in zip(module.functions[entry].params, args, strict=True):
        buffer = buffer.ljust(param.offset, b"\0")
        if isinstance(arg, bytearray):
            number += 1
            arg = (number << 32).to_bytes(8, "little")
        buffer += arg
    launch = Launch(
        module, entry, grid, block, arrays, bytes(buffer), shared_bytes, steps, nan, follow
    )  # fmt: skip
    launch.run(random.Random(order) if order is not None else None)
    return [bytes(launch.memory.arrays[i + 1]) for i in range(len(arrays))]


Step = Callable[[Thread, Frame], Any]
