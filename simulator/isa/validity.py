"""Validation before the launch: instructions that ptxas would reject are rejected, with the line.

Modifiers and operands are checked against the forms of their row, names against the declarations. A
message says either that the text is not PTX, or that the simulator does not support it yet.
"""

from kernels.compiler.toolkit import short_path
from kernels.errors import PtxError
from kernels.ptx.header import Param
from kernels.ptx.module import (
    Address,
    Function,
    Imm,
    Instruction,
    Module,
    Operand,
    Pair,
    Reg,
    Symbol,
    Variable,
    Vector,
)
from kernels.source.deprecated_names import hint_of

from . import operand_types
from .control.control_flow import ASTRAY, SIGNATURES, SYSTEM
from .decoded import Ways, decode, forms, suits
from .grammar import Match, Misfit
from .operand_types import NotYet, Wrong
from .registers import bits
from .table import TABLE, Flow, named_space


def check(function: Function, module: Module) -> None:
    """Refuse a function that is not PTX, or not yet executed.

    Raises:
        PtxError: The first thing wrong, with its PTX line and its source line.
    """
    if function.in_clusters:
        at = place(function.body[0]) if function.body else function.name
        raise PtxError(
            f"the simulator does not execute '.blocksareclusters' yet (a grid counted in clusters: "
            f"count blocks, and leave the directive out): {at}"
        )
    for ins in function.body:
        if error := _instruction(ins, function, module):
            raise error


def place(ins: Instruction) -> str:
    """Return an instruction's location, the user's own line first."""
    if ins.location is None:
        return f"PTX line {ins.line}"
    line = ins.location.user
    return f"{short_path(line.file)}:{line.line}, PTX line {ins.line}"


def invalid(ins: Instruction, why: str) -> PtxError:
    """Return the error for a form that is not PTX."""
    hint = hint_of(ins)
    why = f"{why} ({hint})" if hint else why
    return PtxError(f"{ins.name!r} is not PTX: {why}: {place(ins)}")


def not_yet(ins: Instruction, about: str) -> PtxError:
    """Return the error for a form the table lacks; ``about``: its subject and alternatives."""
    return PtxError(f"the simulator does not execute {ins.name!r} yet ({about}): {place(ins)}")


def _instruction(ins: Instruction, function: Function, module: Module) -> PtxError | None:
    rows = TABLE.get(ins.opcode)
    if rows is None:
        return PtxError(f"{ins.name!r} is no instruction of PTX: {place(ins)}")
    if not rows[0].signatures:
        return not_yet(ins, rows[0].section)
    matches = forms(ins.opcode, ins.modifiers, module.target)
    if isinstance(matches, str):
        return not_yet(ins, matches)
    if isinstance(matches, Misfit):
        return invalid(ins, matches.why)
    flow = rows[0].flow
    try:
        if ins.guard and function.registers.get(ins.guard.name) != "pred":
            raise Wrong(f"the guard {ins.guard.name!r} is no predicate")
        if flow is Flow.CALL and ins.targets[0] != ASTRAY:
            _call(ins, function, module)
        if flow is Flow.SWITCH and ins.operands:
            operand_types.index(ins, function.registers.get)
        places = flow is Flow.CALL or flow.jumps
        fitting = matches[0] if places else _fitting(ins, matches, function)
        for operand in ins.operands:
            if not isinstance(operand, Address):
                _names(ins, operand, function, module)
        addresses = [operand for operand in ins.operands if isinstance(operand, Address)]
        for number, operand in enumerate(addresses):
            _address(ins, operand, named_space(ins, number), function, module)
    except NotYet as error:
        return not_yet(ins, str(error))
    except Wrong as error:
        return invalid(ins, str(error))
    decode(ins, *fitting)
    return None


def _call(ins: Instruction, function: Function, module: Module) -> None:
    """Check that a call's results and arguments fit the called function."""
    name = ins.targets[0]
    if name.startswith("%"):
        raise Wrong(f"{name!r} is not declared")
    callee = module.functions.get(name)
    if callee and name in SYSTEM:
        raise NotYet("the system has a function of that name: give yours another")
    if callee and callee.is_entry:
        raise Wrong(f"{name!r} is a kernel: a function can be called")
    given = [operand.name if isinstance(operand, Symbol) else "" for operand in ins.operands]
    for names, what, number in ((ins.results, "result", 0), (given, "parameter", 1)):
        if callee:
            wanted = [shape(param) for param in (callee.results, callee.params)[number]]
        else:
            wanted = [(nbytes, nbytes, False) for nbytes in SIGNATURES[name][number]]
        if not callee and not number and not names:
            continue  # nobody looks at what it gives
        if len(names) != len(wanted):
            raise Wrong(f"{name!r} has {len(wanted)} {what}s, not {len(names)}")
        for passed, param in zip(names, wanted, strict=True):
            variable, said = function.variables.get(passed), passed.split("#")[0]
            if variable is None or variable.space != "param":
                raise Wrong(f"{said!r} is no .param variable of the caller's")
            if shape(variable) != param or (not callee and variable.type[0] == "f"):
                raise Wrong(f"{said!r} is not what {name!r} has as its {what}")


def shape(passed: Param | Variable) -> tuple[int, int, bool]:
    """Return bytes, alignment, and whether it is an array, of a passed variable.

    All of them agree on both sides of a call (PTX ISA, "call").
    """
    array = passed.count > 1 if isinstance(passed, Param) else bool(passed.dims)
    return passed.nbytes, passed.align, array and passed.nbytes > 1


def _fitting(ins: Instruction, matches: Ways, function: Function) -> tuple[int, Match]:
    """Return the form that takes the operands.

    Raises:
        Wrong: There is none.
    """
    said: Wrong | None = None
    nearest = 0
    for number, match in matches:
        try:
            operand_types.check(ins, match, function.registers.get)
        except Wrong as error:
            many = len(match.form.results + match.form.sources) == len(ins.operands)
            near = many + suits(match.form, ins.operands)
            if said is None or near >= max(nearest, 1):
                said, nearest = error, near
        else:
            return number, match
    assert said
    raise said


def _names(ins: Instruction, operand: Operand | None, function: Function, module: Module) -> None:
    """Variables are declared, and in the state space that the instruction names."""
    if isinstance(operand, Vector):
        for item in operand.items:
            _names(ins, item, function, module)
    elif isinstance(operand, Pair):
        _names(ins, operand.first, function, module)
        _names(ins, operand.second, function, module)
    elif isinstance(operand, Symbol) and ins.opcode != "call":
        space = _space(operand.name, function, module)
        if space is None:
            raise Wrong(f"{operand.name!r} is not declared")
        if space == "texture":
            raise NotYet("references to textures and surfaces: give the kernel an object")
        if space == "param" and operand.name in function.variables:
            raise Wrong(f"{operand.name.split('#')[0]!r} is a call's parameter: it has no address")
        given = () if function.is_entry else (*function.params, *function.results)
        if any(p.name == operand.name and not p.is_struct for p in given):
            raise NotYet("the address of a function's parameter: use that of a .local copy")
        narrow = ins.opcode == "mov" and ins.types[-1] in ("b32", "u32", "s32")
        if space == "global" and narrow and not operand.offset:
            raise Wrong(f"{operand.name!r} has an address of 64 bits")
        address = ins.opcode in ("cvta", "getctarank", "mapa") and not ins.has("to")
        if address and space not in ("label", "function"):
            other = "" if ins.opcode == "cvta" else "shared"
            _in_space(operand.name, space, named_space(ins) or other)


def _address(
    ins: Instruction, operand: Address, named: str, function: Function, module: Module
) -> None:
    """Check that an operand is an address in the state space that the instruction names."""
    base = operand.base
    if isinstance(base, Reg):
        found = function.registers.get(base.name)
        if found is None:
            raise Wrong(f"the register {base.name!r} is not declared")
        if found[0] not in "bus":
            raise Wrong(f"the register {base.name!r} is .{found} and holds no address")
        size = bits(found)
        if size < 64 and named in ("", "global"):
            raise Wrong(f"{base.name!r} has {size} bits, a .{named or 'generic'} address has 64")
        if size not in (32, 64):
            raise NotYet(f"an address in a register of {size} bits: use one of 32 or 64")
    elif isinstance(base, Imm):
        if named != "local":
            raise Wrong("a constant is an address in .local only")
    elif isinstance(base, Symbol):
        space = _space(base.name, function, module)
        if space is None:
            raise Wrong(f"{base.name!r} is not declared")
        if space == "label":
            raise Wrong(f"the label {base.name!r} is no variable")
        if space == "texture":
            raise NotYet("references to textures and surfaces: give the kernel an object")
        if TABLE[ins.opcode][0].picture:
            raise Wrong(f"{base.name!r} is no texture or surface")
        if ins.opcode == "st" and any(p.name == base.name for p in function.params):
            what = "kernel" if function.is_entry else "function"
            raise Wrong(f"{base.name!r} is a parameter of the {what}")
        if ins.opcode == "ld" and any(p.name == base.name for p in function.results):
            raise Wrong(f"{base.name!r} is the function's result")
        passed = space == "param" and base.name in function.variables
        if passed and (ins.guard or ins.opcode == "prefetch"):
            what = "takes no guard" if ins.guard else "has no address"
            raise Wrong(f"{base.name.split('#')[0]!r} is a call's parameter, which {what}")
        if space in ("const", "param") and not named:
            raise Wrong(f"{base.name!r} is in .{space}, which has no generic addresses here")
        if ins.opcode == "prefetchu" and space != "global":
            raise Wrong(f"{base.name!r} is in .{space}")
        _in_space(base.name, space, named or ("shared" if ins.opcode == "mbarrier" else ""))


def _in_space(name: str, space: str, named: str) -> None:
    if named and named != space:
        raise Wrong(f"{name.split('#')[0]!r} is in .{space}, not in .{named}")


def _space(name: str, function: Function, module: Module) -> str | None:
    """Return the state space of a declared name; ``function`` and ``label`` for those."""
    variable = function.variables.get(name) or module.variables.get(name)
    if variable:
        return variable.space
    if any(p.name == name for p in (*function.params, *function.results)):
        return "param"
    if name in function.labels:
        return "label"
    return "function" if name in module.functions else None
