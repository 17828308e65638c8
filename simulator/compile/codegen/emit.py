"""Code generation: Python statements for NumPy from a block's IR.

Names: ``r5`` is register 5, ``v2`` a temporary, ``p16_u64`` the parameter at byte 16, ``t_s32`` a
dtype, ``load_4`` the access at site 4, ``M`` the mask. In block 7, ``k7_3`` is a constant, ``s7_3``
a special register's name, and ``f7_3_fma`` the function of an ``fma``.
"""

from collections.abc import Iterator

import numpy as np

from kernels.ptx.module import Instruction

from ...isa import DTYPES
from ...isa.decoded import roles
from ...isa.scalar.compare import choose
from ...isa.scalar.fma_chain import Products
from ..ir import (
    AsyncGroupOp,
    BarrierOp,
    Bulk,
    Compute,
    CountLanes,
    FenceOp,
    IrOp,
    MemoryOp,
    Move,
    Phase,
    SavePredicate,
    SyscallOp,
    Terminator,
    TraceProbe,
    WarpCompute,
    WgmmaRegisterEvent,
)
from ..ir_values import Constant, Parameter, Register, ResultValue, SourceValue, Temporary
from ..lower.casts import cast, extended, same_type
from ..lower.values import both, expect, low, merge, parameter_name
from ..passes.fuse_fma_chains import Product
from ..passes.group_loads import LoadGroup, LoadGroupResult
from .body import Body, Exchange
from .liveness import ALL

VOCABULARY: dict[str, object] = {
    "merge": merge, "both": both, "choose": choose, "low": low, "expect": expect,
    "products": Products, "plus": np.add, "ALL": ALL,
    **{f"t_{name}": dtype for name, dtype in DTYPES.items()},
}  # fmt: skip
"""What every block's code may refer to, besides what a launch brings and ``Body.names``."""


class Emitter:
    """Generates a block's statements.

    ``numbers``: for names of temporaries. ``checked``: each write is checked against its register's
    dtype (``compiler.CHECKED``). ``met``: the instruction behind the block's gate.
    """

    def __init__(
        self, number: int, numbers: Iterator[int], checked: bool, met: Instruction | None = None
    ) -> None:
        self.number, self.numbers, self.checked, self.met = number, numbers, checked, met
        self.body = Body()
        self.constants: dict[int, str] = {}
        self.known: set[int] = set()

    def statements(self, steps: list[IrOp], end: Terminator | None) -> Body:
        """Return the complete body."""
        for step in [*steps, end] if end else steps:
            first = len(self.body.lines)
            self.statement(step)
            if len(self.body.lines) > first:
                self.body.lines[-1] += f"  # {step.place}"
        return self.body

    def statement(self, step: IrOp) -> None:
        """Generate one operation."""
        match step:
            case Compute():
                self.compute(step)
            case MemoryOp():
                self.access(step)
            case Move():
                self.move(step)
            case Terminator():
                self.end(step)
            case LoadGroup(sites=sites, base=base, found=found):
                self.emit(
                    f"v{found.number} = loads({self.name('g', sites)}, {self.source(base)}, M)"
                )
            case LoadGroupResult(targets=(ResultValue() as target,), found=found, number=number):
                self.assign(target, f"v{found.number}[{number}]")
            case Product(chain=chain, sources=sources):
                self.product(f"v{chain.number}", [*map(self.source, sources)], step.targets)
            case SavePredicate(temporary=temporary, predicate=kept):
                self.emit(f"{self.read(temporary)} = {self.source(kept)}")
            case Bulk(guard=guard, into=into):
                operands = ", ".join([self.mask(guard), *map(self.source, step.sources)])
                names, rest = self.receive(step.targets)
                call = f"bulk_{into.number}({operands})"
                self.emit(f"{names} = {call}" if names else call)
                for target, name in rest:
                    self.assign(target, name)
            case FenceOp(guard=guard, proxy=True):
                self.emit(f"proxy_fence({self.mask(guard)})")
            case FenceOp(guard=guard, reach=reach):
                self.emit(f"fence({self.mask(guard)}, {reach})")
            case AsyncGroupOp(guard=guard, pending=left):
                queue = roles(step.instruction).row.queue
                reads = step.instruction.has("read")
                wait = self.name("w", step.instruction)
                self.emit(f"copies({self.mask(guard)}, {left}, {queue!r}, {reads}, {wait})")
            case Phase(guard=guard, offset=offset, arrives=True, sources=(at,)):
                self.emit(f"copies_arrive({self.mask(guard)}, {self.source(at)}, {offset})")
            case Phase(offset=offset, sources=(at, seen)):
                wait = self.name("w", step.instruction)
                self.emit(f"phase({self.mask(seen)}, {self.source(at)}, {offset}, {wait})")
            case CountLanes(guard=guard, number=number):
                self.emit(f"tally({number}, {self.mask(guard)})")
            case WgmmaRegisterEvent(guard=guard, number=number):
                self.emit(f"registers({number}, {self.mask(guard)})")
            case TraceProbe(guard=guard, number=number, base=base):
                values = [self.source(base) if base else "None", *map(self.source, step.sources)]
                self.emit(f"trace({number}, {self.mask(guard)}, {', '.join(values)})")

    def emit(self, line: str) -> None:
        """Append a statement."""
        self.body.lines.append(line)

    def name(self, letter: str, value: object, opcode: str = "") -> str:
        """Return the free name of an object that a statement uses."""
        names = self.body.names
        name = f"{letter}{self.number}_{len(names)}{opcode}"
        names[name] = value
        return name

    def constant(self, value: np.generic) -> str:
        """Return the name of a constant."""
        found = self.constants.get(id(value))
        if found is None:
            found = self.constants[id(value)] = self.name("k", value)
        return found

    def fresh(self) -> str:
        """Return a new local name."""
        return f"v{next(self.numbers)}"

    # -- values -----------------------------------------------------------------

    def read(self, register: Register | Temporary) -> str:
        """Return the local name of a register's value."""
        if isinstance(register, Temporary):
            return f"v{register.number}"
        name = f"r{register.number}"
        if register.number not in self.known:
            self.known.add(register.number)
            self.emit(f"{name} = R[{register.number}]")
            self.expect(name, register.carrier)
        return name

    def source(self, source: SourceValue) -> str:
        """Return the expression of a value."""
        value = source.value
        if isinstance(value, Register | Temporary):
            name = self.read(value)
            if source.negated:
                return f"(~{name})"
        elif isinstance(value, Constant):
            return self.constant(value.value)
        elif isinstance(value, Parameter):
            name = parameter_name(value.offset, value.carrier)
        else:
            name = f"S[{self.name('s', value.name)}]"
        return name if value.carrier == source.type else cast(name, value.carrier, source.type)

    def mask(self, guard: SourceValue | None) -> str:
        """Return the expression of the lanes under a guard."""
        return f"both(M, {self.source(guard)})" if guard else "M"

    def assign(self, target: ResultValue, expression: str) -> None:
        """Generate the write of a result."""
        register, type = target.register, target.type
        if self.checked:
            result = self.fresh()
            self.emit(f"{result} = {expression}")
            self.expect(result, type)
            expression = result
        expression = extended(expression, type, register.carrier)
        if target.under:
            under = self.source(target.under)
            expression = f"choose({under}, {expression}, {self.read(register)})"
        name = self.written(register)
        self.emit(f"{name} = {expression}")
        self.expect(name, register.carrier)

    def written(self, register: Register | Temporary) -> str:
        """Return the local name of a register that is assigned."""
        if isinstance(register, Register):
            self.known.add(register.number)
        return self.read(register)

    def receive(
        self, targets: tuple[ResultValue | None, ...]
    ) -> tuple[str, list[tuple[ResultValue, str]]]:
        """Return local names for several results, and those that remain to be assigned."""
        names: list[str] = []
        rest: list[tuple[ResultValue, str]] = []
        for target in targets:
            if target is None:
                names.append("_")
            elif not self.checked and not target.under and same_type(target.type, target.register):
                names.append(self.written(target.register))
            else:
                names.append(self.fresh())
                rest.append((target, names[-1]))
        return ", ".join(names), rest

    def expect(self, name: str, type: str) -> None:
        """Generate the check of a value's dtype, if checks are enabled."""
        if self.checked:
            self.emit(f"expect({name}, t_{type})")

    # -- steps ------------------------------------------------------------------

    def move(self, step: Move) -> None:
        """Generate a copy."""
        for target, source in zip(step.targets, step.sources, strict=True):
            if target:
                self.assign(target, self.source(source))

    def compute(self, step: Compute) -> None:
        """Generate a call of the instruction's function."""
        arguments = [self.source(source) for source in step.sources]
        if isinstance(step, WarpCompute):
            arguments.insert(0, f"W({self.mask(step.guard)})")
        function = "plus"  # of addresses, which a launch remembers
        if step.op.fn is not np.add or step.op.inputs != ("s64", "s64"):
            function = self.name("f", step.op.fn, f"_{roles(step.instruction).row.opcode}")
            self.body.functions[function] = step
        call = f"{function}({', '.join(arguments)})"
        if step.instruction is self.met and isinstance(step, WarpCompute):
            reads = tuple(s.value.number for s in step.sources if isinstance(s.value, Register))
            name, asked = self.fresh(), ", ".join([function, *arguments[1:]])
            self.body.exchanges.append(Exchange(len(self.body.lines), name, asked, reads))
            self.emit(f"{name} = {call}")
            call = name
        if len(step.targets) > 1:
            names, rest = self.receive(step.targets)
            self.emit(f"{names} = {call}")
            for target, name in rest:
                self.assign(target, name)
        elif step.targets[0]:
            self.assign(step.targets[0], call)

    def product(
        self, chain: str, sources: list[str], targets: tuple[ResultValue | None, ...]
    ) -> None:
        """Generate one product of a chain of sums."""
        given = ", ".join(sources)
        if len(sources) == 3:
            self.emit(f"{chain} = products({given})")
        elif not targets:
            self.emit(f"{chain}.add({given})")
        elif targets[0]:
            self.assign(targets[0], f"{chain}.last({given})")

    def access(self, step: MemoryOp) -> None:
        """Generate a call of the site."""
        site, guard, mask = step.site, "", "M"
        base = self.source(step.base)
        values = "".join(f", {self.source(source)}" for source in step.sources)
        if step.guard:
            guard, mask = self.source(step.guard), self.fresh()
            self.emit(f"{mask} = both(M, {guard}) if {guard}.ndim else M")
        statement = f"{site.access}_{site.number}({base}, {mask}{values})"
        names, rest = self.receive(step.targets)
        if names:
            statement = f"{names}{',' if site.access == 'load' else ''} = {statement}"
        if guard:  # a uniform false guard must not touch memory
            if names:
                zero = self.constant(DTYPES[site.type].type(0))
                self.emit(f"{names} = {', '.join([zero] * len(step.targets))}")
            statement = f"if {guard}.ndim or {guard}: {statement}"
        self.emit(statement)
        for target, name in rest:
            self.assign(target, name)

    def end(self, step: Terminator) -> None:
        """Generate the return value."""
        sources = [self.source(source) for source in step.sources]
        guard = self.source(step.guard) if step.guard else "None"
        if isinstance(step, BarrierOp):
            sources += ["None"] * (3 - len(sources))
            self.body.returns = f"({guard}, {', '.join(sources)})"
        elif isinstance(step, SyscallOp):
            self.body.returns = f"({', '.join([guard, *sources])},)"
        else:
            self.body.returns = sources[0] if step.how == "switch" else guard
