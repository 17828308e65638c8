"""Whether two accesses name one place, as far as the text of their function tells."""

from collections import Counter
from collections.abc import Mapping

from kernels.ptx.module import Address, Function, Instruction, Reg, Vector

from ..isa import Flow
from ..isa.roles import roles
from ..memory.site import Site


def same_place(functions: Mapping[str, Function], one: Site, other: Site) -> bool:
    """Whether both addresses are made in one way; of two functions' accesses: perhaps, so yes.

    Unoptimised code makes the address of ``a[i]`` anew each time it stands in the source.
    ``functions``: by name.
    """
    if one.function != other.function:
        return True
    values = _values(functions[one.function])
    return _value(one.operand, values) == _value(other.operand, values)


def _values(function: Function) -> dict[str, object]:
    """What is the same for registers that hold the same: a number for each operation on such.

    Those that several instructions write stand for themselves.
    """
    written = Counter(name for ins in function.body for name in roles(ins).writes)
    numbers: dict[object, int] = {}
    values: dict[str, object] = {}
    for ins in function.body:
        role = roles(ins)
        if not _repeats(ins) or written[role.parameter]:
            continue
        given = tuple(_value(item, values) for item in ins.operands[len(role.form.results) :])
        for place, name in enumerate(role.writes):
            if written[name] == 1:
                values[name] = numbers.setdefault((ins.name, place, given), len(numbers))
    return values


def _repeats(ins: Instruction) -> bool:
    """Whether the same operands give the same result: not those of a call, nor an atomic's."""
    row = roles(ins).row
    return row.flow is not Flow.CALL and row.memory in ("", "load") and ins.guard is None


def _value(operand: object, values: Mapping[str, object]) -> object:
    if isinstance(operand, Reg):
        return values.get(operand.name, operand)
    if isinstance(operand, Address):
        return _value(operand.base, values), operand.offset, operand.at
    if isinstance(operand, Vector):
        return tuple(_value(item, values) for item in operand.items)
    return operand
