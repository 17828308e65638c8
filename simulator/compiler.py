"""PTX to Python: each basic block becomes one generated function.

A block's function comes in two forms. ``converged`` runs when every thread that is
alive stands at this block: results simply replace registers. ``diverged`` runs when
some wait elsewhere: results that outlive the block are merged under the mask.

Set ``TILESCOPE_DUMP`` to a folder to read what was generated.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import (
    CARRY,
    EXIT,
    INTRINSIC_CALLS,
    Block,
    find_live,
    is_warp_barrier,
    param_name,
    reachable,
    row_of,
    split,
    unsupported,
)
from .errors import PtxError
from .instructions import DTYPES, Op, Unsupported, carry_op
from .instructions.compare import choose
from .layout import Layout, lay_out
from .module import (
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
)
from .parser import parse
from .site import Site, make_site

_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%gridid")
_REGISTER_CARRIERS = {
    "pred": "pred", "f32": "f32", "f64": "f64",
    **{f"{sign}{bits}": f"s{bits}" for sign in "bsu" for bits in (8, 16, 32, 64)},
    "f16": "s16", "bf16": "s16", "f16x2": "s32", "bf16x2": "s32",
}  # fmt: skip


@dataclass
class CompiledBlock:
    """A basic block ready to run.

    Attributes:
        kind: What its end does: ``goto``, ``branch``, ``switch``, ``exit``, ``return``,
            ``call``, ``barrier`` or ``trap``.
        gate: Source of the member mask that a warp-synchronous first instruction waits
            for; ``None`` if there is no such instruction.
        body: Generated statements, shared by both forms.
        writes: ``(register index, local name)`` of results that outlive the block.
        returns: Expression the function returns: a branch's predicate, a barrier's
            operands.
    """

    block: Block
    kind: str
    body: list[str]
    writes: list[tuple[int, str]]
    returns: str
    gate: str | None = None
    warp_barrier: bool = False
    call_entry: int = EXIT
    return_register: int = -1
    reduction: tuple[str, int] | None = None

    @property
    def number(self) -> int:
        """The block's number."""
        return self.block.number

    def source(self, merge: bool) -> str:
        """Python source of one of the two forms."""
        lines = [f"def block(R, M):  # block {self.number} of {self.block.function.name}"]
        lines += [f"    {line}" for line in self.body]
        for index, name in self.writes:
            value = f"merge(M, {name}, R[{index}])" if merge else name
            lines.append(f"    R[{index}] = {value}")
        lines.append(f"    return {self.returns}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Arithmetic:
    """A floating-point instruction that counts.

    Attributes:
        count: The counter it adds to, if any; ``flops``: operations a thread.
        block: The block it stands in; its threads are the block's unless it is guarded.
        tally: Number of its own thread count, for a guarded instruction.
    """

    instruction: Instruction
    count: str | None
    flops: int
    block: int
    tally: int | None


@dataclass
class Program:
    """A compiled kernel, independent of any launch.

    Attributes:
        blocks: By number; the callees' blocks come before the entry's.
        start: Number of the entry's first block.
        registers: Initial value of every register.
        sites: Every memory access, in the order of their numbers.
        constants: What generated code refers to by name.
        layout: Where module and function variables stand.
    """

    entry: Function
    module: Module
    layout: Layout
    blocks: list[CompiledBlock] = field(default_factory=list)
    start: int = 0
    registers: list[Any] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    params: list[tuple[str, str, int]] = field(default_factory=list)
    arithmetic: list[Arithmetic] = field(default_factory=list)
    approximate: bool = False
    memos: dict[Any, dict[Any, Any]] = field(default_factory=dict)

    def memo(self, *key: Any) -> dict[Any, Any]:
        """A place to remember what holds for every launch of a kind; it stays bounded."""
        if len(self.memos) > 64:
            self.memos.clear()
        found = self.memos.setdefault(key, {})
        if len(found.get("steps", found)) > 20_000:
            found.clear()
        return found

    @functools.cached_property
    def _code(self) -> dict[tuple[int, bool], Any]:
        return {}

    def function(self, number: int, merge: bool, names: dict[str, Any]) -> Callable[..., Any]:
        """The block's Python function, its free names taken from ``names``."""
        key = (number, merge)
        if key not in self._code:
            source = self.blocks[number].source(merge)
            where = f"<{self.entry.name} block {number}{' diverged' if merge else ''}>"
            folder = os.environ.get("TILESCOPE_DUMP")
            if folder:
                path = Path(folder) / f"{self.entry.name}.{number}{'d' if merge else ''}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(source)
                where = str(path)
            self._code[key] = compile(source, where, "exec")
        space: dict[str, Any] = {}
        exec(self._code[key], names, space)
        made: Callable[..., Any] = space["block"]
        return made


def merge(mask: Any, new: Any, old: Any) -> Any:
    """``new`` under the mask, ``old`` elsewhere."""
    if new is old:
        return old
    return np.where(mask, new, old)


def both(mask: Any, more: Any) -> Any:
    """The lanes that are in both masks; ``None`` is every lane."""
    if mask is None:
        return more
    return mask & more


def low(value: Any, dtype: Any) -> Any:
    """The low bits of an integer, as a narrower type."""
    return value.astype(f"u{dtype.itemsize}").view(dtype)


def pack(low_half: Any, high_half: Any, dtype: Any) -> Any:
    """Two values of half the width side by side."""
    half = low_half.dtype.itemsize * 8
    word = np.dtype(f"u{dtype.itemsize}")
    a = low_half.view(f"u{low_half.dtype.itemsize}").astype(word)
    b = high_half.view(f"u{high_half.dtype.itemsize}").astype(word)
    return (a | (b << word.type(half))).view(dtype)


def upper(value: Any, part: int, dtype: Any) -> Any:
    """The ``part``-th piece of a value that is a vector of narrower ones."""
    word = value.view(f"u{value.dtype.itemsize}")
    return (
        (word >> word.dtype.type(part * dtype.itemsize * 8))
        .astype(f"u{dtype.itemsize}")
        .view(dtype)
    )


@functools.lru_cache(maxsize=32)
def compile_ptx(text: str, entry: str) -> Program:
    """Parse and compile one entry of a PTX text.

    Raises:
        PtxError: The text cannot be parsed, or has an instruction without a row.
    """
    return _Compiler(parse(text), entry).program()


class _Compiler:
    def __init__(self, module: Module, entry: str) -> None:
        if entry not in module.functions:
            raise PtxError(f"no body for the entry {entry!r} in this PTX")
        self.module = module
        self.functions = reachable(module, entry)
        self.layout = lay_out(module, self.functions)
        self.result = Program(module.functions[entry], module, self.layout)
        self.result.constants |= {
            "np": np, "merge": merge, "both": both, "choose": choose, "low": low,
            "pack": pack, "upper": upper,
            **{f"t_{name}": dtype for name, dtype in DTYPES.items()},
        }  # fmt: skip
        self.index: dict[tuple[str, str], int] = {}
        self.carriers: list[str] = []
        self.entries: dict[str, int] = {}
        self.aliases: dict[str, dict[str, tuple[str, str]]] = {}
        self.constant_names: dict[tuple[str, int], str] = {}

    def program(self) -> Program:
        first = 0
        split_blocks: list[list[Block]] = []
        for function in self.functions:
            blocks = split(function, first)
            find_live(blocks)
            self.entries[function.name] = first
            first += len(blocks)
            split_blocks.append(blocks)
            self.aliases[function.name] = self.call_aliases(function)
        for blocks in split_blocks:
            for block in blocks:
                self.result.blocks.append(_BlockCompiler(self, block).compile())
        self.result.start = self.entries[self.result.entry.name]
        self.result.registers = [DTYPES[c].type(0) for c in self.carriers]
        return self.result

    def call_aliases(self, function: Function) -> dict[str, tuple[str, str]]:
        """A call's ``.param`` variables stand for the callee's parameters themselves."""
        found: dict[str, tuple[str, str]] = {}
        for ins in function.body:
            if ins.opcode != "call" or ins.targets[0] in INTRINSIC_CALLS:
                continue
            callee = self.module.functions[ins.targets[0]]
            given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
            if len(given) != len(callee.params) or len(ins.results) != len(callee.results):
                raise PtxError(f"PTX line {ins.line}: call of {callee.name} with other parameters")
            formals = [*callee.params, *callee.results]
            for name, param in zip([*given, *ins.results], formals, strict=True):
                target = (callee.name, param.name)
                if found.setdefault(name, target) != target:
                    raise PtxError(f"PTX line {ins.line}: {name!r} serves two different calls")
        return found

    def register(self, function: Function, name: str) -> tuple[int, str]:
        """Index and carrier type of a register (or scalar parameter)."""
        owner, name = self.aliases[function.name].get(name, (function.name, name))
        key = (owner, name)
        if key not in self.index:
            home = self.module.functions[owner]
            kind = home.registers.get(name)
            if kind is None:
                params = {p.name: p.type for p in (*home.params, *home.results)}
                kind = (
                    "pred" if name == CARRY else params.get(name, "u32" if name == RETURN else "")
                )
            if not kind:
                variable = home.variables.get(name)
                kind = variable.type if variable and variable.space == "param" else ""
            if not kind:
                raise PtxError(f"the register {name!r} is not declared in {owner}")
            self.index[key] = len(self.carriers)
            self.carriers.append(_REGISTER_CARRIERS[kind])
        index = self.index[key]
        return index, self.carriers[index]

    def constant(self, value: Any) -> str:
        """A name for a constant."""
        key = (str(value.dtype), int(np.asarray(value).view(f"u{value.dtype.itemsize}")))
        if key not in self.constant_names:
            name = f"k{len(self.constant_names)}"
            self.constant_names[key] = name
            self.result.constants[name] = value
        return self.constant_names[key]

    def callable(self, fn: Callable[..., Any]) -> str:
        """A name for a function."""
        name = f"f{len(self.result.constants)}"
        self.result.constants[name] = fn
        return name


RETURN = "%return"
"""The register that holds the block a function returns to."""


class _BlockCompiler:
    def __init__(self, owner: _Compiler, block: Block) -> None:
        self.owner = owner
        self.block = block
        self.function = block.function
        self.lines: list[str] = []
        self.locals: dict[int, str] = {}
        self.written: dict[int, str] = {}
        self.temporary = 0

    def compile(self) -> CompiledBlock:
        gate = None
        for i, ins in enumerate(self.block.body):
            try:
                if i == 0 and (row_of(ins).kind == "warp-sync" or is_warp_barrier(ins)):
                    gate = self.gate(ins)
                self.instruction(ins)
            except Unsupported as error:
                raise unsupported(ins, str(error)) from None
        kind, returns, extra = self.end()
        function = self.function
        private = function.registers
        writes = []
        for index, name in self.written.items():
            if name not in private or name in self.block.live_out:
                writes.append((index, self.locals[index]))
        first = self.block.body[0] if self.block.body else None
        warp_barrier = first is not None and is_warp_barrier(first)
        return CompiledBlock(
            self.block, kind, self.lines, writes, returns, gate, warp_barrier, **extra
        )

    # -- values ---------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def read(self, name: str) -> tuple[str, str]:
        """Python name and carrier type of a register's value."""
        index, carrier = self.owner.register(self.function, name)
        if index not in self.locals:
            self.locals[index] = f"r{index}"
            self.emit(f"r{index} = R[{index}]")
        return self.locals[index], carrier

    def predicate(self, reg: Reg) -> str:
        name, _ = self.read(reg.name)
        return f"~{name}" if reg.negated else name

    def source(self, operand: Operand | None, kind: str) -> str:
        """An expression for a source operand as a value of a PTX type."""
        want = DTYPES[kind]
        if isinstance(operand, Reg):
            name, carrier = self.read(operand.name)
            if operand.negated:
                name = f"(~{name})"
            return self.cast(name, carrier, kind)
        if isinstance(operand, Imm):
            return self.owner.constant(immediate(operand, kind))
        if isinstance(operand, Special):
            carrier = "s64" if operand.name in _WIDE_SPECIALS else "s32"
            return self.cast(f'S["{operand.name}"]', carrier, kind)
        if isinstance(operand, Symbol):
            address = self.symbol(operand.name) + operand.offset
            if want.itemsize < 4:
                raise Unsupported("an address in a narrow register")
            value = np.int64(address).astype(f"i{want.itemsize}").view(want)
            return self.owner.constant(value)
        raise Unsupported("operand of an unexpected form")

    def cast(self, name: str, carrier: str, kind: str) -> str:
        have, want = DTYPES[carrier], DTYPES[kind]
        if have == want:
            return name
        if have == np.bool_ or want == np.bool_:
            raise Unsupported("a predicate for a number")
        if have.itemsize == want.itemsize:
            return f"{name}.view(t_{kind})"
        if have.itemsize > want.itemsize:
            integer = name if have.kind in "iu" else f"{name}.view(t_s{have.itemsize * 8})"
            return f"low({integer}, t_{kind})"
        raise Unsupported(f"a register narrower than .{kind}")

    def write(self, operand: Operand | None, expression: str, kind: str, guard: str = "") -> None:
        """Assign to a destination, extended to its register's width."""
        if operand is None:
            return
        if not isinstance(operand, Reg):
            raise Unsupported("a destination that is not a register")
        index, carrier = self.owner.register(self.function, operand.name)
        have, want = DTYPES[kind], DTYPES[carrier]
        if (have == np.bool_) != (want == np.bool_):
            raise Unsupported("a predicate for a number")
        if have != want:
            if have.itemsize == want.itemsize:
                expression = f"{expression}.view(t_{carrier})"
            elif have.itemsize < want.itemsize:
                # Loads and conversions extend: signed types by sign, all others by zeros.
                if not kind.startswith("s"):
                    expression = f"{expression}.view(t_u{have.itemsize * 8})"
                expression = f"{expression}.astype(t_s{want.itemsize * 8})"
                if want.kind == "f":
                    expression += f".view(t_{carrier})"
            else:
                raise Unsupported(f"a register narrower than .{kind}")
        if guard:
            old, _ = self.read(operand.name)
            expression = f"choose({guard}, {expression}, {old})"
        self.locals[index] = f"r{index}"
        self.written[index] = operand.name
        self.emit(f"r{index} = {expression}")

    def fresh(self) -> str:
        self.temporary += 1
        return f"v{self.temporary}"

    # -- instructions ---------------------------------------------------------

    def instruction(self, ins: Instruction) -> None:
        kind = row_of(ins).kind
        if ins.opcode in ("membar", "fence") and not ins.has("cta"):
            self.emit(f"fence({self.mask(ins)})")
        if kind == "nothing" or is_warp_barrier(ins):
            return
        if kind in ("load", "store", "atomic"):
            self.memory(ins, kind)
        elif kind == "address":
            self.address_conversion(ins)
        elif ins.opcode == "mov" and any(isinstance(o, Vector) for o in ins.operands):
            self.vector_move(ins)
        else:
            self.value(ins)

    def value(self, ins: Instruction) -> None:
        op = self.op(ins)
        guard = self.predicate(ins.guard) if ins.guard else ""
        if guard and not guard.isidentifier():
            name = self.fresh()
            self.emit(f"{name} = {guard}")
            guard = name
        destinations, sources = self.destinations(ins, op)
        if len(sources) < len(op.inputs) and op.inputs[len(sources) :] == ("pred",):
            sources = [*sources, Reg(CARRY)]
        if len(sources) != len(op.inputs):
            raise Unsupported(f"{len(sources)} source operands, not {len(op.inputs)}")
        arguments = [self.source(o, k) for o, k in zip(sources, op.inputs, strict=True)]
        if op.warp:
            mask = f"both(M, {guard})" if guard else "M"
            arguments.insert(0, f"W({mask})")
        if ins.opcode == "mov":
            expression = arguments[0]
        else:
            expression = f"{self.owner.callable(op.fn)}({', '.join(arguments)})"
        self.owner.result.approximate |= op.approximate
        if op.flops:
            self.count(ins, op, guard)
        if len(destinations) > 1:
            names = [self.fresh() for _ in destinations]
            self.emit(f"{', '.join(names)} = {expression}")
            for destination, name, kind in zip(destinations, names, op.outputs, strict=True):
                self.write(destination, name, kind, guard)
        else:
            self.write(destinations[0], expression, op.outputs[0], guard)

    def count(self, ins: Instruction, op: Op, guard: str) -> None:
        counted = self.owner.result.arithmetic
        tally = None
        if guard:
            tally = len(counted)
            self.emit(f"tally({tally}, both(M, {guard}))")
        counted.append(Arithmetic(ins, op.count, op.flops, self.block.number, tally))

    def mask(self, ins: Instruction) -> str:
        """Expression of the lanes that execute an instruction."""
        return f"both(M, {self.predicate(ins.guard)})" if ins.guard else "M"

    def op(self, ins: Instruction) -> Op:
        if ins.has("cc") or ins.opcode in ("addc", "subc", "madc"):
            return carry_op(ins)
        build = row_of(ins).build
        if build is None:
            raise Unsupported("no meaning")
        return build(ins)

    def destinations(
        self, ins: Instruction, op: Op
    ) -> tuple[list[Operand | None], list[Operand | None]]:
        if not ins.operands:
            raise Unsupported("no operands")
        first, sources = ins.operands[0], list(ins.operands[1:])
        if isinstance(first, Pair):
            return [first.first, first.second], sources
        if ins.has("cc"):
            return [first, Reg(CARRY)], sources
        if len(op.outputs) > 1:
            return [first, *([None] * (len(op.outputs) - 1))], sources
        return [first], sources

    def vector_move(self, ins: Instruction) -> None:
        target, source = ins.operands
        guard = self.predicate(ins.guard) if ins.guard else ""
        whole = next(t for t in ins.types)
        size = DTYPES[whole].itemsize
        if isinstance(source, Vector) and not isinstance(target, Vector):
            each = f"b{size * 8 // len(source.items)}"
            parts = [self.source(item, each) for item in source.items]
            while len(parts) > 1:
                merged = f"u{DTYPES[each].itemsize * 16}"
                parts = [
                    f"pack({a}, {b}, t_{merged})"
                    for a, b in zip(parts[::2], parts[1::2], strict=True)
                ]
                each = merged
            self.write(target, parts[0], f"b{size * 8}" if size > 1 else whole, guard)
        elif isinstance(target, Vector) and not isinstance(source, Vector):
            each = f"b{size * 8 // len(target.items)}"
            name = self.fresh()
            self.emit(f"{name} = {self.source(source, f'b{size * 8}')}")
            for i, item in enumerate(target.items):
                self.write(item, f"upper({name}, {i}, t_{each})", each, guard)
        else:
            raise Unsupported("a move between two vectors")

    def address_conversion(self, ins: Instruction) -> None:
        guard = self.predicate(ins.guard) if ins.guard else ""
        space = next((m.split("::")[0] for m in ins.modifiers if m.split("::")[0] in WINDOWS), None)
        if space is None:
            raise Unsupported("no state space")
        if ins.opcode == "isspacep":
            fn = self.owner.callable(functools.partial(in_window, space))
            self.write(
                ins.operands[0], f"{fn}({self.source(ins.operands[1], 'b64')})", "pred", guard
            )
            return
        kind = ins.types[-1].replace("u", "b")
        value = self.source(ins.operands[1], kind)
        start = WINDOWS[space]
        if start and kind == "b32":
            raise Unsupported("32-bit generic addresses")
        if start:
            value = (
                f"{value} {'-' if ins.has('to') else '+'} {self.owner.constant(np.int64(start))}"
            )
        self.write(ins.operands[0], f"({value})", kind, guard)

    # -- memory ---------------------------------------------------------------

    def memory(self, ins: Instruction, kind: str) -> None:
        if ins.has("param") and self.parameter(ins):
            return
        site = make_site(ins, len(self.owner.result.sites), kind, self.function, self.block.number)
        self.owner.result.sites.append(site)
        position = 0 if kind == "store" or ins.opcode == "red" else 1
        address = ins.operands[position]
        if not isinstance(address, Address):
            raise Unsupported("no address operand")
        base = self.base(address, site)
        guard, mask = "", "M"
        outer = self.lines
        if ins.guard:
            guard = self.fresh()
            self.emit(f"{guard} = {self.predicate(ins.guard)}")
            mask = self.fresh()
            self.emit(f"{mask} = both(M, {guard}) if {guard}.ndim else M")
        call = f"x{site.number}({base}, {mask}"
        if kind == "load":
            target = ins.operands[0]
            items = list(target.items) if isinstance(target, Vector) else [target]
            if len(items) != site.count:
                raise Unsupported("a vector of another length than its destination")
            names = [self.fresh() for _ in items]
            if guard:  # a uniform false guard must not touch memory
                zero = self.owner.constant(DTYPES[site.type].type(0))
                self.emit(f"{', '.join(names)} = {', '.join([zero] * len(names))}")
            expression = f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call})"
            self.emit(f"if {guard}.ndim or {guard}: {expression}" if guard else expression)
            for item, name in zip(items, names, strict=True):
                self.write(item, name, site.type, guard)
        elif kind == "store":
            value = ins.operands[1]
            items = list(value.items) if isinstance(value, Vector) else [value]
            values = [self.source(item, site.type) for item in items]
            if len(values) != site.count:
                raise Unsupported("a vector of another length than its source")
            statement = f"{call}, {', '.join(values)})"
            self.emit(f"if {guard}.ndim or {guard}: {statement}" if guard else statement)
        else:
            values = [self.source(item, site.type) for item in ins.operands[position + 1 :]]
            statement = f"{call}, {', '.join(values)})"
            if position:
                name = self.fresh()
                if guard:
                    zero = self.owner.constant(DTYPES[site.type].type(0))
                    self.emit(f"{name} = {zero}")
                statement = f"{name} = {statement}"
            self.emit(f"if {guard}.ndim or {guard}: {statement}" if guard else statement)
            if position:
                self.write(ins.operands[0], name, site.type, guard)
        assert outer is self.lines

    def symbol(self, name: str) -> int:
        """A variable's address; a call's parameters stand for the callee's."""
        owner, name = self.owner.aliases[self.function.name].get(name, (self.function.name, name))
        return self.owner.layout.address(self.owner.module.functions[owner], name)

    def base(self, address: Address, site: Site) -> str:
        """The address's variable part; its constant part goes into the site."""
        site.offset = address.offset
        if isinstance(address.base, Reg):
            name, carrier = self.read(address.base.name)
            if carrier == "s64":
                return name
            if carrier == "s32":
                return f"{name}.view(t_u32).astype(t_s64)"
            raise Unsupported("an address in a register of another type")
        if isinstance(address.base, Symbol):
            start = self.symbol(address.base.name)
            site.variable = address.base.name
            return self.owner.constant(np.int64(start))
        return self.owner.constant(np.int64(address.base.value))

    def parameter(self, ins: Instruction) -> bool:
        """``ld.param``/``st.param`` of a scalar parameter: a register, or a launch constant."""
        name = param_name(ins)
        if name is None:
            return False
        load = ins.opcode == "ld"
        address = ins.operands[1 if load else 0]
        assert isinstance(address, Address)
        value = ins.operands[0 if load else 1]
        entry_params = {p.name: p for p in self.function.params} if self.function.is_entry else {}
        if name in entry_params:
            if not load:
                raise Unsupported("a store to a kernel parameter")
            self.load_parameter(ins, value, entry_params[name].offset + address.offset)
            return True
        owner, formal = self.owner.aliases[self.function.name].get(name, (self.function.name, name))
        home = self.owner.module.functions[owner]
        param = next((p for p in (*home.params, *home.results) if p.name == formal), None)
        if param is None and owner == self.function.name and formal in home.variables:
            return self.unpassed_parameter(ins)
        if param is None:
            raise Unsupported(f"the parameter {name!r} is not declared")
        if param.is_struct:
            return False
        index, carrier = self.owner.register(self.function, name)
        kind = ins.types[-1]
        if isinstance(value, Vector) or address.offset:
            raise Unsupported("part of a scalar parameter")
        guard = self.predicate(ins.guard) if ins.guard else ""
        if load:
            self.write(value, self.cast(self.read(name)[0], carrier, kind), kind, guard)
        else:
            self.write(Reg(name), self.source(value, kind), kind, guard)
        return True

    def unpassed_parameter(self, ins: Instruction) -> bool:
        """Parameters of a system function (``__assertfail``): their values are not needed."""
        if ins.opcode == "ld":
            self.write(
                ins.operands[0], self.owner.constant(DTYPES[ins.types[-1]].type(0)), ins.types[-1]
            )
        return True

    def load_parameter(self, ins: Instruction, value: Operand | None, offset: int) -> None:
        kind = ins.types[-1]
        guard = self.predicate(ins.guard) if ins.guard else ""
        items = list(value.items) if isinstance(value, Vector) else [value]
        for i, item in enumerate(items):
            at = offset + i * DTYPES[kind].itemsize
            key = (f"p{at}_{kind}", kind, at)
            if key not in self.owner.result.params:
                self.owner.result.params.append(key)
            self.write(item, key[0], kind, guard)

    # -- the end of a block -----------------------------------------------------

    def gate(self, ins: Instruction) -> str:
        """Source of the member mask, as an expression of ``R`` alone."""
        if ins.opcode in ("bar", "barrier"):
            operand = ins.operands[0] if ins.operands else Imm("int", -1)
        elif not ins.has("sync"):
            return "ALL"
        else:
            operand = ins.operands[-1]
        if isinstance(operand, Reg):
            index, carrier = self.owner.register(self.function, operand.name)
            return f"R[{index}].view(t_u32)" if carrier == "s32" else f"R[{index}].astype(t_u32)"
        if not isinstance(operand, Imm):
            raise Unsupported("a member mask of an unexpected form")
        return self.owner.constant(immediate(operand, "u32"))

    def end(self) -> tuple[str, str, dict[str, Any]]:
        end = self.block.end
        if end is None:
            return "goto", "None", {}
        guard = self.predicate(end.guard) if end.guard else "None"
        kind = row_of(end).kind
        try:
            if kind == "branch":
                return self.branch(end, guard)
            if kind == "call":
                return self.call(end, guard)
            if kind == "barrier":
                return self.barrier(end, guard)
        except Unsupported as error:
            raise unsupported(end, str(error)) from None
        if kind == "trap":
            return "trap", guard, {}
        if end.opcode == "ret" and not self.function.is_entry:
            index, _ = self.owner.register(self.function, RETURN)
            return "return", guard, {"return_register": index}
        return "exit", guard, {}

    def branch(self, end: Instruction, guard: str) -> tuple[str, str, dict[str, Any]]:
        if end.opcode == "brx":
            if end.guard:
                raise Unsupported("a guard")
            return "switch", self.source(end.operands[0], "b32"), {}
        return ("branch" if end.guard else "goto"), guard, {}

    def call(self, end: Instruction, guard: str) -> tuple[str, str, dict[str, Any]]:
        callee = end.targets[0]
        if callee in INTRINSIC_CALLS:
            if callee == "__assertfail":
                return "assert", guard, {}
            return "goto", "None", {}
        if end.guard:
            raise Unsupported("a guarded call")
        function = self.owner.module.functions[callee]
        index, _ = self.owner.register(function, RETURN)
        extra = {"call_entry": self.owner.entries[callee], "return_register": index}
        return "call", "None", extra

    def barrier(self, end: Instruction, guard: str) -> tuple[str, str, dict[str, Any]]:
        operands = list(end.operands)
        extra: dict[str, Any] = {}
        predicate = "None"
        if end.has("red"):
            target, source = operands.pop(0), operands.pop()
            operation = next((m for m in end.modifiers if m in ("popc", "and", "or")), None)
            if operation is None or not isinstance(target, Reg):
                raise Unsupported("no operation")
            index, _ = self.owner.register(self.function, target.name)
            extra["reduction"] = (operation, index)
            predicate = self.source(source, "pred")
        zero = self.owner.constant(np.int32(0))
        number = self.source(operands[0], "b32") if operands else zero
        count = self.source(operands[1], "b32") if len(operands) > 1 else zero
        return "barrier", f"({guard}, {number}, {count}, {predicate})", extra


def immediate(imm: Imm, kind: str) -> Any:
    """A constant as a NumPy scalar of a PTX type."""
    dtype = DTYPES[kind]
    if dtype == np.bool_:
        return np.bool_(imm.value != 0)
    if imm.kind == "int":
        if dtype.kind == "f":
            return dtype.type(imm.value)
        bits = dtype.itemsize * 8
        return np.dtype(f"u{dtype.itemsize}").type(imm.value & ((1 << bits) - 1)).view(dtype)
    size = 4 if imm.kind == "f32" else 8
    value = np.dtype(f"u{size}").type(imm.value)
    if dtype.itemsize == size:
        return value.view(dtype)
    if dtype.kind == "f":
        return value.view(f"f{size}").astype(dtype)
    raise Unsupported(f"a floating constant for .{kind}")


WINDOWS = {"global": 0, "const": 0, "param": 0, "shared": 1 << 60, "local": 1 << 61}
"""Where each state space begins among generic addresses."""


def in_window(space: str, address: Any) -> Any:
    """``isspacep``: whether a generic address lies in a state space."""
    top = address >> np.int64(60)
    if space == "shared":
        return top == 1
    if space == "local":
        return (top == 2) | (top == 3)
    return top == 0
