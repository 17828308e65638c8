"""Instructions as closures over a thread and its frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kernels.ptx.module import (
    Address,
    Function,
    Imm,
    Instruction,
    Module,
    Operand,
    Pair,
    Reg,
    Special,
    Symbol,
    Vector,
)  # fmt: skip
from tests.oracles.interpreter import access, clusters, undefined_steps, warp
from tests.oracles.interpreter.memory import PARAMETERS
from tests.oracles.interpreter.values import (
    WIDTH,
    Meaning,
    NotModelled,
    mask,
    meaning,
    number,
    with_nan,
)

if TYPE_CHECKING:
    from tests.oracles.interpreter.machine import Frame, Launch, Thread

EXIT, RETURN = object(), object()
Read = Callable[["Thread", "Frame"], int]
Write = Callable[["Thread", "Frame", int], None]
Step = Callable[["Thread", "Frame"], Any]
NOTHING = (
    "membar", "fence", "nanosleep", "prefetch", "prefetchu", "discard", "applypriority", "pmevent",
)  # fmt: skip
MOVES = ("mov", "selp", "slct", "copysign")
"""What passes bits on, NaN or not."""
__all__ = ["PARAMETERS"]


class Call(NamedTuple):
    """A call: the callee, and the names of what is passed and given back."""

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]


def called(module: Module, entry: Function) -> list[Function]:
    """The entry and all that it may call, loaded."""
    found: dict[str, Function] = {}
    todo = [entry.name]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        function = module.functions.get(name)
        if function is None:
            raise NotModelled(f"call of {name}")
        function.load()
        found[name] = function
        todo += [ins.targets[0] for ins in function.body if ins.opcode == "call"]
    return list(found.values())


def of_warp(ins: Instruction) -> bool:
    """Whether an instruction waits for lanes of the warp, not for the block."""
    return ins.opcode not in ("bar", "barrier") or ins.has("warp")


class Code:
    """A function's steps."""

    def __init__(self, launch: Launch, function: Function) -> None:
        self.launch, self.function = launch, function
        self.numbers = {name: i for i, name in enumerate(function.registers)}
        self.registers = len(self.numbers)
        self.steps: list[Step] = [self.step(ins) for ins in function.body]
        self.steps.append(lambda t, f: RETURN)

    # -- operands -------------------------------------------------------------------

    def register(self, name: str) -> tuple[int, str]:
        if name not in self.numbers:
            raise NotModelled(f"register {name}")
        return self.numbers[name], self.function.registers[name]

    def address_of(self, name: str) -> int:
        for scope in (self.function.name, ""):
            if (scope, name) in self.launch.memory.addresses:
                return self.launch.memory.addresses[scope, name]
        if self.function.is_entry:
            for p in self.function.params:
                if p.name == name:
                    return (PARAMETERS << 32) + p.offset
        raise NotModelled(f"address of {name}")

    def read(self, operand: Operand | None, kind: str) -> Read:
        """The bits of a source operand as a value of a type."""
        bits = mask(WIDTH[kind])
        if isinstance(operand, Reg):
            index, have = self.register(operand.name)
            if operand.negated:
                return lambda t, f: 1 - f.regs[index]
            if WIDTH[have] <= WIDTH[kind]:
                return lambda t, f: f.regs[index]
            return lambda t, f: f.regs[index] & bits
        if isinstance(operand, Imm):
            constant = immediate(operand, kind)
            return lambda t, f: constant
        if isinstance(operand, Special):
            name = operand.name
            special = warp.special(name)
            return lambda t, f: special(t) & bits
        if isinstance(operand, Symbol):
            address = self.address_of(operand.name) + operand.offset
            return lambda t, f: address & bits
        raise NotModelled(f"operand {operand}")

    def write(self, operand: Operand | None, kind: str) -> Write:
        """Assignment of a value of a type, extended to the register's width."""
        if operand is None:
            return lambda t, f, x: None
        if not isinstance(operand, Reg):
            raise NotModelled(f"destination {operand}")
        index, have = self.register(operand.name)
        bits = mask(WIDTH[have])
        if kind[0] == "s" and WIDTH[have] > WIDTH[kind]:

            def extended(t: Thread, f: Frame, x: int) -> None:
                f.regs[index] = number(x, kind) & bits

            return extended

        def plain(t: Thread, f: Frame, x: int) -> None:
            f.regs[index] = x & bits

        return plain

    # -- instructions ---------------------------------------------------------------

    def step(self, ins: Instruction) -> Step:
        """One instruction, its guard included."""
        try:
            bare = self.bare(ins)
        except (IndexError, KeyError, AttributeError) as error:
            raise NotModelled(f"{ins.name}: {error!r}") from error
        if self.launch.follow:
            bare = undefined_steps.beside(self, ins, bare)
        if ins.guard is None:
            return bare
        index, _ = self.register(ins.guard.name)
        wanted = 0 if ins.guard.negated else 1
        if self.launch.follow:
            look = undefined_steps.guard(self, ins)

            def looked(t: Thread, f: Frame) -> Any:
                look(f)
                return bare(t, f) if f.regs[index] == wanted else None

            return looked
        return lambda t, f: bare(t, f) if f.regs[index] == wanted else None

    def bare(self, ins: Instruction) -> Step:
        name = ins.opcode
        if name == "bra":
            target = self.function.labels[ins.targets[0]]
            return lambda t, f: target
        if name == "brx":
            places = [self.function.labels[label] for label in ins.targets]
            index = self.read(ins.operands[0], "u32")
            return lambda t, f: places[index(t, f)]
        if name == "exit" or (name == "ret" and self.function.is_entry):
            return lambda t, f: EXIT
        if name == "ret":
            return lambda t, f: RETURN
        if name == "call":
            names = tuple(o.name for o in ins.operands if isinstance(o, Symbol))
            made = Call(ins.targets[0], names, ins.results)
            return lambda t, f: made
        if name in NOTHING:
            return lambda t, f: None
        if name == "barrier" and ins.has("cluster"):
            return clusters.barrier(ins)
        if name in ("mapa", "getctarank"):
            return clusters.mapped(self, ins)
        if name in ("bar", "barrier", "shfl", "vote", "match", "redux", "elect", "activemask"):
            return warp.waiting(self, ins)
        if name in ("ld", "ldu", "st", "atom", "red", "cvta", "isspacep"):
            return access.step(self, ins)
        if name == "mov" and any(isinstance(o, Vector) for o in ins.operands):
            return self.vector_move(ins)
        return self.value(ins)

    def value(self, ins: Instruction) -> Step:
        """An instruction that computes values."""
        what: Meaning = meaning(ins)
        if self.launch.nan and ins.types and ins.opcode not in MOVES and "pred" not in what.results:
            what = what._replace(fn=with_nan(ins.types[0], what.fn, self.launch.nan))
        fn = what.fn
        reads_carry = ins.opcode in ("addc", "subc", "madc")
        sources = list(ins.operands[1:])
        kinds = what.sources[:-1] if reads_carry else what.sources
        reads = [self.read(o, k) for o, k in zip(sources, kinds, strict=True)]
        first = ins.operands[0]
        targets = [first.first, first.second] if isinstance(first, Pair) else [first]
        if reads_carry or ins.has("cc"):
            write = self.write(first, what.results[0])
            sets = ins.has("cc")

            def with_carry(t: Thread, f: Frame) -> None:
                values = [r(t, f) for r in reads]
                result = fn(*values, f.carry) if reads_carry else fn(*values)
                if sets:
                    result, f.carry = result
                write(t, f, result)

            return with_carry
        if len(what.results) > 1:
            targets += [None] * (len(what.results) - len(targets))
            writes = [self.write(o, k) for o, k in zip(targets, what.results, strict=True)]

            def several(t: Thread, f: Frame) -> None:
                results = fn(*[r(t, f) for r in reads])
                for put, result in zip(writes, results, strict=True):
                    put(t, f, result)

            return several
        put = self.write(first, what.results[0])
        if len(reads) == 1:
            (one,) = reads
            return lambda t, f: put(t, f, fn(one(t, f)))
        if len(reads) == 2:
            a, b = reads
            return lambda t, f: put(t, f, fn(a(t, f), b(t, f)))
        return lambda t, f: put(t, f, fn(*[r(t, f) for r in reads]))

    def vector_move(self, ins: Instruction) -> Step:
        """``mov`` that packs or unpacks."""
        target, source = ins.operands
        size = WIDTH[ins.types[-1]]
        if isinstance(source, Vector):
            each = size // len(source.items)
            reads = [self.read(o, f"b{each}") for o in source.items]
            put = self.write(target, f"b{size}")
            return lambda t, f: put(
                t, f, sum(r(t, f) << i * each for i, r in enumerate(reads))
            )  # fmt: skip
        assert isinstance(target, Vector)
        each = size // len(target.items)
        whole = self.read(source, f"b{size}")
        writes = [self.write(o, f"b{each}") for o in target.items]

        def unpack(t: Thread, f: Frame) -> None:
            x = whole(t, f)
            for i, put_one in enumerate(writes):
                put_one(t, f, x >> i * each & mask(each))

        return unpack

    def base(self, address: Address) -> Read:
        """The number that stands between brackets."""
        offset = address.offset
        if isinstance(address.base, Reg):
            index, _ = self.register(address.base.name)
            return lambda t, f: f.regs[index] + offset
        if isinstance(address.base, Symbol):
            constant = self.address_of(address.base.name) + offset
        else:
            constant = address.base.value + offset
        return lambda t, f: constant


def immediate(imm: Imm, kind: str) -> int:
    """A constant's bits as a type has them."""
    from tests.simulator.isa.floats import FORMATS

    if imm.kind == "int":
        if kind in FORMATS and imm.value:
            return FORMATS[kind].encode(imm.value, 0)
        return imm.value & mask(WIDTH[kind]) if kind != "pred" else int(imm.value != 0)
    if WIDTH[kind] == WIDTH[imm.kind]:
        return imm.value
    if kind in FORMATS:
        return FORMATS[imm.kind].convert(imm.value, FORMATS[kind])
    raise NotModelled(f"a floating constant for .{kind}")


def together(group: list[Thread], members: int) -> None:
    """Lanes at the same warp instruction execute it."""
    warp.together(group, members)
