"""Calls under a guard and calls through a pointer, spelt out as branches and plain calls.

A pointer is compared with the address of each function that it may hold: those of the PTX whose
address something takes, and whose parameters are as large as the call's. What the rest of the
simulator sees are ordinary instructions, at the call's lines.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator

from kernels.errors import PtxError
from kernels.ptx.header import Param
from kernels.ptx.module import (
    Address,
    Function,
    Instruction,
    Module,
    Operand,
    Reg,
    Symbol,
    Variable,
    Vector,
)

from ..isa.control import ASTRAY
from ..isa.roles import calls
from ..isa.validity import not_yet, shape


def spell_out(module: Module, function: Function) -> None:
    """Replace such calls of a function; one that has none stays as it is.

    Raises:
        PtxError: A call that passes what it cannot pass through a pointer; names its lines.
    """
    if not any(calls(ins) and (ins.guard or _through(function, ins)) for ins in function.body):
        return
    Dispatch(module, function).rewrite()


def _through(function: Function, ins: Instruction) -> bool:
    return ins.targets[0] in function.registers


class Dispatch:
    """Rewrites one function."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.labels: dict[str, int] = {}
        self.body: list[Instruction] = []

    def rewrite(self) -> None:
        """Replace the body, and move its labels."""
        places: list[int] = []
        for ins in self.function.body:
            places.append(len(self.body))
            if not calls(ins) or not (ins.guard or _through(self.function, ins)):
                self.body.append(ins)
                continue
            behind = self.name("behind")
            if ins.guard:
                guard = dataclasses.replace(ins.guard, negated=not ins.guard.negated)
                self.add(ins, "bra", guard=guard, targets=(behind,))
            if _through(self.function, ins):
                self.through(ins, behind)
            else:
                self.body.append(dataclasses.replace(ins, guard=None, decoded=None))
            self.labels[behind] = len(self.body)
        places.append(len(self.body))
        self.labels |= {name: places[at] for name, at in self.function.labels.items()}
        self.function.body[:] = self.body
        self.function.labels.clear()
        self.function.labels.update(self.labels)

    def through(self, ins: Instruction, behind: str) -> None:
        """Compare the pointer with the functions that it may hold, one after the other."""
        pointer, address, is_it = Reg(ins.targets[0]), self.register("b64"), self.register("pred")
        for callee in self.candidates(ins):
            other = self.name("other")
            self.add(ins, "mov", "b64", operands=(address, Symbol(callee.name)))
            self.add(ins, "setp", "ne", "b64", operands=(is_it, pointer, address))
            self.add(ins, "bra", guard=is_it, targets=(other,))
            given = [self.passed(ins, operand) for operand in ins.operands]
            results = [self.variable(self.function.variables[name]) for name in ins.results]
            self.add(
                ins, "call", operands=tuple(map(Symbol, given)), targets=(callee.name,),
                results=tuple(results),
            )  # fmt: skip
            for name, result in zip(ins.results, results, strict=True):
                self.copy(ins, result, name)
            self.add(ins, "bra", "uni", targets=(behind,))
            self.labels[other] = len(self.body)
        self.add(ins, "call", targets=(ASTRAY,))

    def candidates(self, ins: Instruction) -> Iterator[Function]:
        """The functions that a call through a pointer may call."""
        home = self.function.variables
        given = [home[o.name] for o in ins.operands if isinstance(o, Symbol) and o.name in home]
        results = [home[name] for name in ins.results if name in home]
        if len(given) != len(ins.operands) or len(results) != len(ins.results):
            raise not_yet(ins, "an indirect call with such parameters: use .param variables")
        for name in self.addressed:
            function = self.module.functions[name]
            if _alike(given, function.params) and _alike(results, function.results):
                yield function

    @functools.cached_property
    def addressed(self) -> list[str]:
        """The functions whose address something in the PTX takes."""
        return sorted(addressed(self.module))

    def passed(self, ins: Instruction, operand: Operand | None) -> str:
        """A parameter's copy, which stands for that of one callee."""
        assert isinstance(operand, Symbol)
        copy = self.variable(self.function.variables[operand.name])
        self.copy(ins, operand.name, copy)
        return copy

    def copy(self, ins: Instruction, source: str, target: str) -> None:
        """Copy one ``.param`` variable to another."""
        variable = self.function.variables[source]
        size = min(variable.align, 8) if variable.dims else variable.nbytes
        value = self.register(f"b{max(size, 2) * 8}")
        for at in range(0, variable.nbytes, size):
            kind = f"b{size * 8}"
            self.add(ins, "ld", "param", kind, operands=(value, Address(Symbol(source), at)))
            self.add(ins, "st", "param", kind, operands=(Address(Symbol(target), at), value))

    def add(
        self, at: Instruction, opcode: str, *modifiers: str, operands: tuple[Operand, ...] = (),
        guard: Reg | None = None, targets: tuple[str, ...] = (), results: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """An instruction at the place of another."""
        where = at.line, at.location
        self.body.append(Instruction(opcode, modifiers, operands, guard, *where, targets, results))

    def name(self, word: str) -> str:
        """A name that PTX cannot have."""
        return f"{word}#{len(self.body)}"

    def register(self, kind: str) -> Reg:
        """A new register."""
        name = f"%{kind}#{len(self.function.registers)}"
        self.function.registers[name] = kind
        return Reg(name)

    def variable(self, like: Variable) -> str:
        """A new ``.param`` variable."""
        name = f"{like.name}#{len(self.function.variables)}"
        self.function.variables[name] = dataclasses.replace(like, name=name)
        return name


def _alike(given: Iterable[Variable], params: Iterable[Param]) -> bool:
    return [shape(v) for v in given] == [shape(p) for p in params]


def addressed(module: Module) -> set[str]:
    """The functions whose address something in the PTX takes."""
    found = {value.name for v in module.variables.values() for value in v.init
             if isinstance(value, Symbol)}  # fmt: skip
    for function in module.functions.values():
        with contextlib.suppress(PtxError):  # of a function that nobody may ever call
            function.load()
        for ins in function.body:
            if not calls(ins):
                found |= {name for operand in ins.operands for name in _symbols(operand)}
    functions = (module.functions[name] for name in found if name in module.functions)
    return {function.name for function in functions if not function.is_entry}


def _symbols(operand: Operand | None) -> Iterator[str]:
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _symbols(item)
