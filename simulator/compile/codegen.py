"""One basic block's instructions as Python statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.ptx.module import Address, Imm, Instruction, Operand, Pair, Reg, Symbol, Vector

from ..isa import DTYPES, Op, Unsupported
from ..isa.roles import CARRY, INTRINSIC_CALLS, is_warp_barrier, param_name, row_of
from ..isa.validity import invalid, not_yet
from ..isa.windows import WINDOWS
from ..memory.site import Site, make_site
from .operands import Operands
from .program import Arithmetic, CompiledBlock, Watched
from .values import immediate

RETURN = "%return"
"""The register that holds the block a function returns to."""


_MALFORMED = (IndexError, KeyError, TypeError, ValueError, OverflowError, StopIteration)
"""What a builder stumbles over when an instruction's operands or types are not as PTX has them."""


class BlockCompiler(Operands):
    """Compiles one block."""

    def compile(self) -> CompiledBlock:
        """Generate the block's statements and say how it ends."""
        gate = None
        for i, ins in enumerate(self.block.body):
            try:
                if i == 0 and (row_of(ins).kind == "warp-sync" or is_warp_barrier(ins)):
                    gate = self.gate(ins)
                self.instruction(ins)
            except Unsupported as error:
                raise not_yet(ins, str(error)) from None
            except _MALFORMED:
                raise not_yet(ins, "operands or types that do not fit") from None
        kind, returns, extra = self.end()
        function = self.function
        private = function.registers
        writes = []
        checked: dict[int, str] = {}
        for index, name in self.written.items():
            if name not in private or name in self.block.live_out:
                writes.append((index, self.locals[index]))
                if self.owner.checked:
                    checked[index] = self.owner.carriers[index]
        first = self.block.body[0] if self.block.body else None
        warp_barrier = first is not None and is_warp_barrier(first)
        return CompiledBlock(
            self.block, kind, self.lines, writes, returns, gate, warp_barrier, checked, **extra
        )

    # -- instructions ---------------------------------------------------------

    def instruction(self, ins: Instruction) -> None:
        """Generate one instruction."""
        kind = row_of(ins).kind
        if ins.opcode in ("membar", "fence") and not any("proxy" in m for m in ins.modifiers):
            narrow = ins.has("cta") or ins.has("cluster")
            self.emit(f"fence({self.mask(ins)}, {not narrow})")
        if kind == "nothing" or is_warp_barrier(ins):
            return
        if kind in ("load", "store", "atomic"):
            self.memory(ins, kind)
        elif ins.opcode == "mov" and any(isinstance(o, Vector) for o in ins.operands):
            self.vector_move(ins)
        else:
            self.value(ins)

    def value(self, ins: Instruction) -> None:
        """An instruction that computes values by its row's function."""
        op = self.op(ins)
        guard = self.predicate(ins.guard) if ins.guard else ""
        destinations, sources = self.destinations(ins, op)
        # The first of two destinations may be the guard itself.
        if guard and (not guard.isidentifier() or len(destinations) > 1):
            name = self.fresh()
            self.emit(f"{name} = {guard}")
            guard = name
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
        self.watch_values(ins, destinations, sources, guard)

    def watch(
        self,
        ins: Instruction,
        kind: str,
        call: str,
        guard: str = "",
        outputs: Sequence[Operand | None] = (),
        inputs: Sequence[Operand | None] = (),
        site: Site | None = None,
    ) -> None:
        """Where a trace is wanted, tell it of this execution; ``call`` holds the arguments."""
        watched = self.owner.result.watched
        if watched is None or (site is not None and not site.counted):
            return
        into = tuple(self.number(o) if isinstance(o, Reg) else -1 for o in outputs)
        read = tuple(self.number(o) if isinstance(o, Reg) else operand_text(o) for o in inputs)
        condition = f"if {guard}.ndim or {guard}: " if guard else ""
        self.emit(f"{condition}trace({len(watched)}, {call})")
        watched.append(Watched(ins, self.block.number, kind, into, read, site))

    def watch_values(
        self,
        ins: Instruction,
        outputs: Sequence[Operand | None],
        inputs: Sequence[Operand | None],
        guard: str,
    ) -> None:
        """Trace an instruction that computes something from loaded data."""
        data = self.owner.result.data
        kept = [o for o in outputs if isinstance(o, Reg) and self.number(o) in data]
        if kept and self.owner.result.watched is not None:
            mask = f"both(M, {guard})" if guard else "M"
            names = ", ".join(self.read(o.name)[0] for o in kept)
            self.watch(ins, "value", f"{mask}, None, {names}", guard, kept, inputs)

    def number(self, reg: Reg) -> int:
        """A register's place among the program's."""
        return self.owner.register(self.function, reg.name)[0]

    def count(self, ins: Instruction, op: Op, guard: str) -> None:
        """Note a floating-point instruction to be counted."""
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
        """The row's operation for this instruction."""
        build = row_of(ins).build
        if build is None:
            raise Unsupported("no meaning")
        return build(ins)

    def destinations(
        self, ins: Instruction, op: Op
    ) -> tuple[list[Operand | None], list[Operand | None]]:
        """Destination and source operands, in the order of the operation's outputs and inputs."""
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
        """Packing and unpacking: ``mov.b64 {a, b}, d``."""
        target, source = ins.operands
        guard = self.predicate(ins.guard) if ins.guard else ""
        whole = next(t for t in ins.types)
        size = DTYPES[whole].itemsize
        if isinstance(source, Vector) and not isinstance(target, Vector):
            each = f"b{size * 8 // len(source.items)}"
            parts = [self.source(item, each) for item in source.items]
            while len(parts) > 1:
                merged = f"b{DTYPES[each].itemsize * 16}"
                parts = [
                    f"pack({a}, {b}, t_{merged})"
                    for a, b in zip(parts[::2], parts[1::2], strict=True)
                ]
                each = merged
            self.write(target, parts[0], f"b{size * 8}" if size > 1 else whole, guard)
            self.watch_values(ins, [target], source.items, guard)
        elif isinstance(target, Vector) and not isinstance(source, Vector):
            each = f"b{size * 8 // len(target.items)}"
            name = self.fresh()
            self.emit(f"{name} = {self.source(source, f'b{size * 8}')}")
            for i, item in enumerate(target.items):
                self.write(item, f"upper({name}, {i}, t_{each})", each, guard)
            self.watch_values(ins, target.items, [source], guard)
        else:
            raise Unsupported("a move between two vectors")

    # -- memory ---------------------------------------------------------------

    def memory(self, ins: Instruction, kind: str) -> None:
        """A load, store or atomic: a call of its site."""
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
            told = f"{mask}, {base}, {', '.join(names)}"
            self.watch(ins, kind, told, guard, items, (), site)
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
            told = f"{mask}, {base}, {', '.join(values)}"
            self.watch(ins, kind, told, guard, [None] * len(values), items, site)
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
            told = ", ".join([mask, base, *([name] if position else []), *values])
            into = [*ins.operands[:position], *([None] * len(values))]
            self.watch(ins, kind, told, guard, into, ins.operands[position + 1 :], site)
            if position:
                self.write(ins.operands[0], name, site.type, guard)
        assert outer is self.lines

    def base(self, address: Address, site: Site) -> str:
        """The address's variable part; its constant part goes into the site."""
        if abs(address.offset) >= 1 << 62:
            raise Unsupported(f"an offset of {address.offset}")
        site.offset = address.offset
        if isinstance(address.base, Reg):
            name, carrier = self.read(address.base.name)
            if carrier == "s64":
                return name
            if carrier == "s32":
                return f"{name}.astype(t_s64)"  # with its sign: ``s[-1]`` stays in front of ``s``
            raise Unsupported("an address in a register of another type")
        if isinstance(address.base, Symbol):
            start = self.symbol(address.base.name)
            if site.space == "generic":  # ptxas makes a generic address of the variable's
                names = self.function.variables | self.owner.module.variables
                home = names.get(address.base.name)
                start += WINDOWS.get(home.space, 0) if home else 0
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
        _, carrier = self.owner.register(self.function, name)
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
        """A kernel parameter: constants of the launch."""
        kind = ins.types[-1]
        guard = self.predicate(ins.guard) if ins.guard else ""
        items = list(value.items) if isinstance(value, Vector) else [value]
        for i, item in enumerate(items):
            at = offset + i * DTYPES[kind].itemsize
            last = self.function.params[-1]
            if not 0 <= at <= last.offset + last.nbytes - DTYPES[kind].itemsize:
                raise invalid(ins, "an address outside the kernel's parameters")
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
        """How the block ends: kind, what its function returns, further fields."""
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
            raise not_yet(end, str(error)) from None
        except _MALFORMED:
            raise not_yet(end, "operands or types that do not fit") from None
        if kind == "trap":
            return "trap", guard, {}
        if self.function.is_entry:
            gone = "M" if guard == "None" else f"both(M, {guard})"
            self.watch(end, "exit", f"{gone}, None")
        if end.opcode == "ret" and not self.function.is_entry:
            index, _ = self.owner.register(self.function, RETURN)
            return "return", guard, {"return_register": index}
        return "exit", guard, {}

    def branch(self, end: Instruction, guard: str) -> tuple[str, str, dict[str, Any]]:
        """``bra`` and ``brx.idx``."""
        if end.opcode == "brx":
            if end.guard:
                raise Unsupported("a guard")
            return "switch", self.source(end.operands[0], "b32"), {}
        return ("branch" if end.guard else "goto"), guard, {}

    def call(self, end: Instruction, guard: str) -> tuple[str, str, dict[str, Any]]:
        """A call of a function with a body, or of a system function."""
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
        """A block barrier: its operands are what the block's function returns."""
        operands = list(end.operands)
        extra: dict[str, Any] = {}
        predicate = "None"
        if end.has("red"):
            target, source = operands.pop(0), operands.pop()
            operation = next((m for m in end.modifiers if m in ("popc", "and", "or")), None)
            if operation is None or not isinstance(target, Reg):
                raise Unsupported("no operation")
            index, carrier = self.owner.register(self.function, target.name)
            if carrier != ("s32" if operation == "popc" else "pred"):
                raise Unsupported(f"a result in a register of type {carrier}")
            extra["reduction"] = (operation, index)
            predicate = self.source(source, "pred")
        come = "M" if guard == "None" else f"both(M, {guard})"
        self.watch(end, "barrier", f"{come}, None")
        zero = self.owner.constant(np.int32(0))
        number = self.source(operands[0], "b32") if operands else zero
        count = self.source(operands[1], "b32") if len(operands) > 1 else zero
        return "barrier", f"({guard}, {number}, {count}, {predicate})", extra


def operand_text(operand: Operand | None) -> str:
    """An operand that is not a register, for reading."""
    if isinstance(operand, Imm):
        if operand.kind == "int":
            return str(operand.value)
        size = 4 if operand.kind == "f32" else 8
        bits = np.dtype(f"u{size}").type(operand.value)
        return str(bits.view(f"f{size}").item())
    return getattr(operand, "name", "")
