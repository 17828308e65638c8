"""Decoded instructions: the table row, and the roles of the operands.

``roles(ins)`` is computed once, when ``validity`` checks the operands, and stored with the
instruction.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from kernels.ptx.module import Address, Instruction, Operand, Pair, Reg, Special, Symbol, Vector

from .control.control_flow import SYSTEM
from .grammar import InstructionForm, Match, Misfit, find
from .table import TABLE, Flow, InstructionSpec, Unsupported, named_space

CARRY = "%CC"
"""The condition-code register of extended-precision arithmetic."""
OWN = "%own"
"""What stands in addresses of the block's own shared memory (``windows``): no register of PTX."""
STACK, STACK_END, STACK_POINTER = "%stack", "%end", "%SP"
"""A function's variable that it allocates from, where that ends, and the register that says how
much of it is taken."""
_UNSAID: dict[str, Operand] = {
    "CC": Reg(CARRY), "SP": Reg(STACK_POINTER), "stack": Symbol(STACK),
    "end": Symbol(STACK_END), "own": Special(OWN),
}  # fmt: skip
HALVES = (":low", ":high")
"""What follows the name of a register of 128 bits in those of its halves."""
Ways = list[tuple[int, Match]]
"""Forms that an instruction has, each with the number of its row among the opcode's."""


@dataclass(eq=False, slots=True)
class DecodedInstruction:
    """An instruction as its row has it.

    Attributes:
        row: The row; ``form``: which way of writing it.
        flow: Where lanes go after it (of a call: what the function is).
        results: What its meaning gives, in the order of ``Op.outputs``: the parts of ``d|p`` and
            ``{a, b}`` one by one, the condition code last; ``None`` for what is not wanted.
        sources: What its meaning takes, in the order of ``Op.inputs``; of an access, what is
            stored or combined: address and cache policy are not among them.
        reads: Names of the registers it reads: guard, address, condition code and the ``.param``
            variable of a load or a call among them; ``writes``: those it writes.
        addresses: The operands in brackets; ``address``: the first.
        parameter: The ``.param`` variable that a load or store names directly, or nothing.
    """

    row: InstructionSpec
    form: InstructionForm
    flow: Flow
    results: tuple[Operand | None, ...]
    sources: tuple[Operand | None, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    addresses: tuple[Address, ...]
    parameter: str
    _given: tuple[Operand | None, ...]

    def operand(self, word: str) -> Operand | None:
        """Return the source operand of a role: ``members``, ``bar``, ``threads`` ..."""
        named = zip(self.form.sources, self._given, strict=False)
        return next((operand for name, operand in named if name == word), None)

    @property
    def holds(self) -> bool:
        """Whether lanes wait there for others; those that pass ``bar.arrive`` do not."""
        return self.row.waits != "nobody"

    @property
    def address(self) -> Address | None:
        """The first of the addresses."""
        return self.addresses[0] if self.addresses else None

    @property
    def base(self) -> str:
        """The register that the first address is made of, or nothing."""
        base = self.address.base if self.address else None
        return base.name if isinstance(base, Reg) else ""

    @property
    def bases(self) -> tuple[str, ...]:
        """The registers that addresses are made of."""
        return tuple(a.base.name for a in self.addresses if isinstance(a.base, Reg))


def roles(ins: Instruction) -> DecodedInstruction:
    """Return an instruction's row, and what its operands are to it."""
    found = ins.decoded
    if isinstance(found, DecodedInstruction):
        return found
    matches = forms(ins.opcode, ins.modifiers, "")
    if not isinstance(matches, Misfit | str):
        for number, match in matches:
            if suits(match.form, ins.operands):
                return decode(ins, number, match)
    raise Unsupported("operands or types that do not fit: use the PTX ISA's")


def calls(ins: Instruction) -> bool:
    """Whether an instruction calls, even if nobody has looked at it yet."""
    return _goes(ins, Flow.CALL)


def returns(ins: Instruction) -> bool:
    """Whether it leaves a function, likewise."""
    return _goes(ins, Flow.RETURN)


def _goes(ins: Instruction, flow: Flow) -> bool:
    rows = TABLE.get(ins.opcode)
    return rows is not None and rows[0].flow is flow


def packs(ins: Instruction) -> bool:
    """Whether it makes a wide register of narrow ones."""
    return ins.opcode == "mov" and any(isinstance(one, Vector) for one in ins.operands[1:])


def adds(ins: Instruction) -> bool:
    """Whether its result is a sum of two operands."""
    return ins.opcode == "add"


def passes(ins: Instruction) -> bool:
    """Whether its result is one of its operands, perhaps of another type."""
    return ins.opcode in ("mov", "selp", "cvt")


_RUNNING = {
    "add": "sum", "sub": "sum", "fma": "sum", "mad": "sum", "dp4a": "sum", "mul": "product",
    "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip


def running(ins: Instruction) -> tuple[str, int]:
    """Return which running value an instruction continues, and the first operand that may hold it.

    ``("", 0)`` if none; of a multiply-add only the addend holds the sum so far.
    """
    kind = _RUNNING.get(ins.opcode, "")
    return kind, 2 if ins.opcode in ("fma", "mad", "dp4a") else 0


def combination(ins: Instruction) -> str:
    """Return what an instruction makes of two operands in any order, such as ``sum``, or ``""``."""
    return _RUNNING[ins.opcode] if ins.opcode in ("add", "mul", "max", "min") else ""


def moves(ins: Instruction) -> bool:
    """Whether the instruction copies its operand unchanged."""
    return ins.opcode == "mov"


def relaxed(ins: Instruction) -> bool:
    """Whether what it does at a barrier puts nothing in order: ``.relaxed``, or to count bytes.

    (PTX ISA, "mbarrier.expect_tx", "mbarrier.complete_tx": relaxed, said or not.)
    """
    return ins.has("relaxed") or roles(ins).row.phase in ("expect", "complete")


def callee(ins: Instruction) -> str:
    """Return the function of this PTX that an instruction calls by its name, or nothing."""
    if not calls(ins):
        return ""
    name = ins.targets[0]
    return "" if name in SYSTEM or name.startswith("%") else name


@functools.lru_cache(maxsize=4096)
def forms(opcode: str, modifiers: tuple[str, ...], target: str) -> Ways | Misfit | str:
    """Return the forms of an instruction, or why it has none, or the subject that is missing."""
    rows = TABLE[opcode]
    numbers = {text: number for number, row in enumerate(rows) for text in row.signatures}
    matches = find(list(numbers), modifiers, target)
    if not isinstance(matches, Misfit):
        return [(numbers[match.form.text], match) for match in matches]
    for form, about in (later for row in rows for later in row.unsupported_signatures):
        if not isinstance(find((form,), modifiers, target), Misfit):
            return about
    return matches


def suits(form: InstructionForm, operands: Sequence[Operand | None]) -> bool:
    """Whether operands are as many as a form has, with braces where it has them."""
    specs = [spec for spec in form.results + form.sources if spec != "label"]
    if len(specs) != len(operands):
        return not specs  # what a call has, the parser knows
    return not any(
        isinstance(operand, Vector) != (spec[0] in "{#")
        for spec, operand in zip(specs, operands, strict=True)
        if spec[0] != "v"
    )


def decode(ins: Instruction, number: int, match: Match) -> DecodedInstruction:
    """Find the roles of an instruction that has a form of a row, and keep them with it."""
    form, row = match.form, TABLE[ins.opcode][number]
    count = len(form.results)
    given = ins.operands[count:]
    flow, parameter = row.flow, ""
    addresses: list[Address] = []
    results: list[Operand | None] = []
    sources: list[Operand | None] = []
    writes: list[str] = []
    wide = match.types[-1:] == ("b128",)
    reads = [ins.guard.name] if ins.guard else []
    for word, operand in zip(form.results, ins.operands, strict=False):
        _add(halves(operand) if wide and word[0] != "{" else operand, results, writes)
        if word.endswith("+"):
            _add(operand, sources, reads)
    for word, operand in zip(form.sources, given, strict=False):
        if isinstance(operand, Address):
            addresses.append(operand)
            _add(operand.base, [], reads)
            _add(Vector(operand.at), sources, reads)
        else:
            split = wide and word[0] in "tv"
            _add(halves(operand) if split else operand, [] if word == "policy" else sources, reads)
    if flow is Flow.CALL:
        reads += [operand.name for operand in given if isinstance(operand, Symbol)]
        writes += ins.results
        flow = SYSTEM.get(ins.targets[0], flow)
    elif addresses and isinstance(addresses[0].base, Symbol) and named_space(ins) == "param":
        parameter = addresses[0].base.name
        (writes if row.memory == "store" else reads).append(parameter)
    for word in form.read:
        _add(_UNSAID[word], sources, reads)
    for word in form.written:
        _add(_UNSAID[word], results, writes)
    ins.decoded = made = DecodedInstruction(
        row, form, flow, tuple(results), tuple(sources), tuple(reads), tuple(writes),
        tuple(addresses), parameter, given,
    )  # fmt: skip
    return made


def halves(operand: Operand | None) -> Vector:
    """Return registers with those of 128 bits as two of 64, the lower bits first."""
    name = operand.name if isinstance(operand, Reg) else ""
    return Vector(tuple(Reg(f"{name}{end}") if name else None for end in HALVES))


def _add(operand: Operand | None, parts: list[Operand | None], names: list[str]) -> None:
    """Add the parts of an operand to others, and the names of its registers."""
    if isinstance(operand, Reg):
        parts.append(operand)
        names.append(operand.name)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _add(item, parts, names)
    elif isinstance(operand, Pair):
        _add(operand.first, parts, names)
        _add(operand.second, parts, names)
    else:
        parts.append(operand)
