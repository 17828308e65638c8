"""Calls under a guard, through a pointer, or with registers, spelt out as plain calls.

A pointer is compared with the address of each function that it may hold: those of the PTX whose
address something takes, and whose parameters are as large as the call's. Registers and constants
that are passed, and registers that a function has as its parameters, go through variables (PTX
ISA, "call" and ".func"). What the rest of the simulator sees are ordinary instructions, at the
call's lines.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence

from kernels.errors import PtxError
from kernels.ptx.header import Param
from kernels.ptx.module import (
    Address,
    Function,
    Imm,
    Instruction,
    Module,
    Operand,
    Reg,
    Symbol,
    Variable,
    Vector,
)
from kernels.ptx.types import TYPE_SIZES

from ...isa.control.control_flow import ASTRAY, SIGNATURES
from ...isa.decoded import calls, returns
from ...isa.validity import invalid, not_yet, shape


def lower_indirect_calls(module: Module, function: Function) -> None:
    """Replace such calls of a function; one that has none stays as it is.

    Raises:
        PtxError: A call that passes what it cannot pass through a pointer; names its lines.
    """
    formal = any(param.register for param in (*function.params, *function.results))
    if formal or any(calls(ins) and not _plain(function, ins) for ins in function.body):
        Dispatch(module, function).rewrite()


def _plain(function: Function, ins: Instruction) -> bool:
    """Whether a call is one that nothing has to be done about."""
    passed = {*ins.results, *(o.name if isinstance(o, Symbol) else "" for o in ins.operands)}
    return not ins.guard and not _through(function, ins) and passed <= function.variables.keys()


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
        function = self.function
        for param in function.params if function.body else ():
            if param.register:
                self.load(function.body[0], param, Reg(param.register), Symbol(param.name))
        for ins in function.body:
            places.append(len(self.body))
            if returns(ins):
                self.give(ins)
            if not calls(ins) or _plain(function, ins):
                self.body.append(ins)
                continue
            behind = self.name("behind")
            if ins.guard:
                guard = dataclasses.replace(ins.guard, negated=not ins.guard.negated)
                self.add(ins, "bra", guard=guard, targets=(behind,))
            self.call(ins)
            self.labels[behind] = len(self.body)
        places.append(len(self.body))
        if function.body:
            self.give(function.body[-1])
        self.labels |= {name: places[at] for name, at in self.function.labels.items()}
        self.function.body[:] = self.body
        self.function.labels.clear()
        self.function.labels.update(self.labels)

    def formal(self, ins: Instruction) -> Sequence[Sequence[Param]]:
        """Return the results and the parameters of what is called, as far as they are known."""
        name = ins.targets[0]
        if _through(self.function, ins):
            return self.function.prototypes.get(ins.targets[-1], ((), ()))
        if callee := self.module.functions.get(name):
            return callee.results, callee.params
        return [
            [Param("", f"b{8 * nbytes}", 1, nbytes, 0) for nbytes in sizes]
            for sizes in SIGNATURES.get(name, ((), ()))
        ]

    def call(self, ins: Instruction) -> None:
        """Call a function, with what is not in variables put into some."""
        formal = self.formal(ins)
        passed, results = [*ins.operands], [*ins.results]
        if _through(self.function, ins):
            counts = tuple(map(len, formal))
            if counts != (len(results), len(passed)):
                why = f"the prototype has {counts[0]} results and {counts[1]} parameters, not "
                raise invalid(ins, f"{why}{len(results)} and {len(passed)}")
        for at, (operand, param) in enumerate(zip(passed, formal[1], strict=False)):
            if isinstance(operand, Reg | Imm):
                passed[at] = variable = self.fitting(ins, operand, param)
                self.store(ins, param, variable, _constant(operand, param))
        given = []
        for at, (result, param) in enumerate(zip(results, formal[0], strict=False)):
            saved = Reg(result)
            if result == "_" or result in self.function.registers:
                variable = self.fitting(ins, None if result == "_" else saved, param)
                results[at] = variable.name
                given += [(param, saved, variable)] if result != "_" else []
        plain = dataclasses.replace(
            ins, guard=None, decoded=None, operands=tuple(passed), results=tuple(results)
        )
        if _through(self.function, ins):
            returned = self.name("returned")
            self.through(plain, returned)
            self.labels[returned] = len(self.body)
        else:
            self.body.append(plain)
        for param, saved, variable in given:
            self.load(ins, param, saved, variable)

    def give(self, ins: Instruction) -> None:
        """Return from the function, with the results where the caller expects them."""
        for result in self.function.results:
            if result.register:
                self.store(ins, result, Symbol(result.name), Reg(result.register))

    def fitting(self, ins: Instruction, operand: Operand | None, param: Param) -> Symbol:
        """Return a variable like a function's parameter, for what a call has in its place.

        Raises:
            PtxError: That cannot be passed there.
        """
        kind, wrong = "", param.is_struct
        if isinstance(operand, Reg):
            kind = self.function.registers.get(operand.name, "pred")
            float_and_not = {kind[0], param.type[0]} in ({"f", "u"}, {"f", "s"})
            wrong |= TYPE_SIZES.get(kind) != TYPE_SIZES[param.type] or float_and_not
        elif isinstance(operand, Imm):
            kind = operand.kind
            bits = param.type[0] == "b" and TYPE_SIZES.get(kind) == param.nbytes
            wrong |= (kind == "int") == (param.type[0] == "f") and not bits
        if wrong:
            what = "a whole number" if kind == "int" else f"a .{kind}"
            wanted = str(dataclasses.replace(param, name=param.register or param.name))
            raise invalid(ins, f"{what} is passed where the function has {wanted}")
        like = Variable("passed", "param", param.type, (), param.align)
        return Symbol(self.variable(like))

    def load(self, ins: Instruction, param: Param, register: Reg, variable: Symbol) -> None:
        """Read what was passed."""
        self.add(ins, "ld", "param", param.type, operands=(register, Address(variable)))

    def store(self, ins: Instruction, param: Param, variable: Symbol, value: Operand) -> None:
        """Write what is passed."""
        self.add(ins, "st", "param", param.type, operands=(Address(variable), value))

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
        """Yield the functions that a call through a pointer may call."""
        home = self.function.variables
        given = [home[o.name] for o in ins.operands if isinstance(o, Symbol) and o.name in home]
        results = [home[name] for name in ins.results if name in home]
        if len(given) != len(ins.operands) or len(results) != len(ins.results):
            raise not_yet(ins, "an indirect call with such parameters: use .param variables")
        for name in self.addressed:
            function = self.module.functions[name]
            if _same_signature(given, function.params) and _same_signature(
                results, function.results
            ):
                yield function

    @functools.cached_property
    def addressed(self) -> list[str]:
        """The functions whose address something in the PTX takes."""
        return sorted(addressed(self.module))

    def passed(self, ins: Instruction, operand: Operand | None) -> str:
        """Return a parameter's copy, which stands for that of one callee."""
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
        """Add an instruction at the source position of another."""
        where = at.line, at.location
        made = Instruction(opcode, modifiers, operands, guard, *where, targets, results)
        made.at = at.at
        self.body.append(made)

    def name(self, word: str) -> str:
        """Return a name that PTX cannot have."""
        return f"{word}#{len(self.body)}"

    def register(self, kind: str) -> Reg:
        """Return a new register."""
        name = f"%{kind}#{len(self.function.registers)}"
        self.function.registers[name] = kind
        return Reg(name)

    def variable(self, like: Variable) -> str:
        """Return a new ``.param`` variable."""
        name = f"{like.name}#{len(self.function.variables)}"
        self.function.variables[name] = dataclasses.replace(like, name=name)
        return name


def _constant(operand: Operand, param: Param) -> Operand:
    """Return an argument as passed: constants are cut to the parameter's bits."""
    if isinstance(operand, Imm) and param.type[0] != "f":
        return Imm("int", operand.value & ((1 << 8 * param.nbytes) - 1))
    return operand


def _same_signature(given: Iterable[Variable], params: Iterable[Param]) -> bool:
    return [shape(v) for v in given] == [shape(p) for p in params]


def addressed(module: Module) -> set[str]:
    """Return the functions whose address something in the PTX takes."""
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
