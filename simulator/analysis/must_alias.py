"""Must-alias analysis: whether two accesses have the same address expression."""

import functools
from collections import Counter
from collections.abc import Mapping

from kernels.ptx.module import Address, Function, Imm, Instruction, Operand, Reg, Vector

from ..isa import Flow
from ..isa.decoded import adds, callee, moves, roles
from ..memory.site import Site
from .taint import call_edges

_At = tuple[str, Operand | None]
"""An address, and the name of the function that has it."""


class SamePlace:
    """Must-alias queries for a program.

    Args:
        functions: Functions of the program, by name.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self._texts: dict[str, _Text] = {}

    def __call__(self, one: Site, other: Site) -> bool:
        """Whether both addresses are computed in the same way; true if that is unknown.

        Unoptimised code recomputes the address of ``a[i]`` at each use and calls functions such as
        ``atomicAdd``; addresses that are parameters are traced to the callers.
        """
        if one.function == other.function:
            text = self._text(one.function)
            return text.value(one.operand) == text.value(other.operand)
        ways, others = self._ways(one), self._ways(other)
        several = len({function for function, _ in ways | others}) > 1
        return several or not ways.isdisjoint(others)

    def _ways(self, site: Site) -> set[tuple[str, object]]:
        """Return the address expressions of a site, in the functions that compute them."""
        found: set[tuple[str, object]] = set()
        todo: list[_At] = [(site.function, site.operand)]
        visited: set[_At] = set()
        while todo:
            name, operand = todo.pop()
            text = self._text(name)
            if isinstance(operand, Address):
                operand = text.shortest(operand)
            if (name, operand) not in visited:
                visited.add((name, operand))
                given = self._given(name, operand)
                todo += given
                if not given:
                    found.add((name, text.value(operand)))
        return found

    def _given(self, name: str, operand: Operand | None) -> list[_At]:
        """Return the addresses that callers pass, for a parameter."""
        if not isinstance(operand, Address) or not isinstance(operand.base, Reg):
            return []
        parameter = self._text(name).loaded(operand.base)
        return [
            (caller, Address(register, operand.offset, operand.at))
            for caller, ins in (self._calls.get(name, ()) if parameter else ())
            for (_, given), (_, into) in call_edges(
                self.functions[caller], self.functions[name], ins
            )
            if into == parameter and (register := self._text(caller).stored(given))
        ]

    @functools.cached_property
    def _calls(self) -> dict[str, list[tuple[str, Instruction]]]:
        """Return the call sites of each function.

        Cached, as thousands of pairs of accesses need them.
        """
        found: dict[str, list[tuple[str, Instruction]]] = {}
        for caller, function in self.functions.items():
            for ins in function.body:
                if called := callee(ins):
                    found.setdefault(called, []).append((caller, ins))
        return found

    def _text(self, name: str) -> "_Text":
        if name not in self._texts:
            self._texts[name] = _Text(self.functions[name])
        return self._texts[name]


class _Text:
    """Value numbering of a function's registers.

    Each operation on equal values has one number. Registers with several definitions have their
    own.
    """

    def __init__(self, function: Function) -> None:
        writes = [(name, ins) for ins in function.body for name in roles(ins).writes]
        written = Counter(name for name, _ in writes)
        self._once = {name: ins for name, ins in writes if written[name] == 1}
        numbers: dict[object, int] = {}
        self._values: dict[str, object] = {}
        for ins in function.body:
            role = roles(ins)
            if not _repeats(ins) or written[role.parameter]:
                continue
            given = tuple(self.value(item) for item in ins.operands[len(role.form.results) :])
            moved = moves(ins) and len(given) == 1 and not isinstance(given[0], Reg)
            for place, name in enumerate(role.writes):
                if name in self._once and moved:
                    self._values[name] = given[0]
                elif name in self._once:
                    self._values[name] = numbers.setdefault((ins.name, place, given), len(numbers))

    def value(self, operand: object) -> object:
        """Return the value number of an operand."""
        if isinstance(operand, Reg):
            return self._values.get(operand.name, operand)
        if isinstance(operand, Address):
            short = self.shortest(operand)
            return self.value(short.base), short.offset, short.at
        if isinstance(operand, Vector):
            return tuple(self.value(item) for item in operand.items)
        return operand

    def shortest(self, address: Address) -> Address:
        """Return the same address with all constants moved to its offset."""
        short, passed = address, set[str]()
        while isinstance(short.base, Reg) and short.base.name not in passed:
            passed.add(short.base.name)
            ins = self._once.get(short.base.name)
            if ins is None or ins.guard is not None or not adds(ins):
                return short
            match ins.operands:
                case (_, Reg() as base, Imm() as more):
                    short = Address(base, short.offset + more.value, short.at)
                case _:
                    return short
        return address if isinstance(short.base, Reg) else short  # one that is made of itself

    def loaded(self, register: Reg) -> str:
        """Return the parameter that a register holds, or ``""``."""
        ins = self._once.get(register.name)
        return _parameter(ins) if ins and roles(ins).row.memory == "load" else ""

    def stored(self, parameter: str) -> Reg | None:
        """Return the register passed as an argument, if it is one."""
        ins = self._once.get(parameter)
        source = ins.operands[-1] if ins and _parameter(ins) else None
        return source if isinstance(source, Reg) else None


def _parameter(ins: Instruction) -> str:
    """Return the parameter at which a load or store begins, or ``""``."""
    role = roles(ins)
    return role.parameter if role.address and not role.address.offset else ""


def _repeats(ins: Instruction) -> bool:
    """Whether equal operands imply equal results, unlike for calls and atomics."""
    row = roles(ins).row
    return row.flow is not Flow.CALL and row.memory in ("", "load") and ins.guard is None
