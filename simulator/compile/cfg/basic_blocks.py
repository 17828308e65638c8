"""Basic blocks of a program, and liveness."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernels.compiler.toolkit import is_toolkit
from kernels.errors import PtxError
from kernels.ptx.module import Function, Instruction, Module
from kernels.ptx.names import variable_name

from ...isa import Flow
from ...isa.decoded import callee, roles
from ...isa.validity import check, place
from .call_graph import strongly_connected_components
from .clone_per_call_site import clone_per_call_site
from .indirect_calls import lower_indirect_calls

_CALL_DEPTH = 100
EXIT = -1
"""The block number that stands for "this thread is done"."""


@dataclass
class Block:
    """Basic block: one entry, and at most one control-flow instruction at its end.

    Attributes:
        number: Index in the program; lanes at the lowest number run first.
        function: The containing function.
        body: Instructions before the terminator.
        end: The terminator, if the block ends with control flow or a barrier; else ``None``.
        follow: Number of the next block; ``EXIT``: none.
        targets: Numbers of the blocks that ``end`` may jump to.
        uses: Registers read before they are written.
        defs: Registers that are certainly written.
        live_out: Registers that some path from the end reads.
    """

    number: int
    function: Function
    body: list[Instruction] = field(default_factory=list)
    end: Instruction | None = None
    follow: int = EXIT
    targets: tuple[int, ...] = ()
    uses: set[str] = field(default_factory=set)
    defs: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    live_in: set[str] = field(default_factory=set)
    live_out: set[str] = field(default_factory=set)

    @property
    def instructions(self) -> list[Instruction]:
        """Return all instructions, including the terminator."""
        return [*self.body, self.end] if self.end else self.body


def reachable(module: Module, entry: str) -> list[Function]:
    """Return the entry and all its callees, callees first.

    Raises:
        PtxError: A called function has no body.
    """
    order: list[Function] = []
    state: set[str] = set()

    def visit(name: str, calls: tuple[Instruction, ...] = ()) -> None:
        if name in state:
            return
        function = module.functions.get(name)
        if function is None:
            runtime = name.startswith(_RUNTIME)
            what = _LAUNCHES if runtime else "it has no body in this PTX: add one"
            raise PtxError(
                f"the simulator does not execute a call of {variable_name(name)!r} yet "
                f"({what}): {_called(calls)}"
            )
        state.add(name)
        function.load()
        lower_indirect_calls(module, function)
        for ins in function.body:
            if called := callee(ins):
                if len(calls) == _CALL_DEPTH:
                    raise PtxError(f"calls nest deeper than {len(calls)}: {place(ins)}")
                visit(called, (ins, *calls))
        order.append(function)

    visit(entry)
    order = clone_per_call_site(module, order, strongly_connected_components(order))
    for function in order:  # now that its places tell the user's lines
        if not function.copy_of:
            check(function, module)
    return order


def _called(calls: Sequence[Instruction]) -> str:
    """Return the innermost call site with a user's line, for a message."""
    own = (c for c in calls if c.location is None or not is_toolkit(c.location.user.file))
    return place(next(own, calls[0])) if calls else "the entry"


_RUNTIME = ("__cudaCDP2", "cudaLaunchDevice", "cudaGetParameterBuffer", "cudaDeviceSynchronize")
"""How functions of the runtime on the device begin, by which kernels launch kernels."""
_LAUNCHES = "launches from a kernel: launch from the host, one after the other"


def split(function: Function, first: int) -> list[Block]:
    """Return the function's basic blocks, numbered from ``first``.

    A warp-synchronous instruction starts a block, so that the machine can block lanes before it.
    """
    labels: dict[int, list[str]] = {}
    for name, at in function.labels.items():
        labels.setdefault(at, []).append(name)
    blocks: list[Block] = []
    starts: dict[str, int] = {}
    current: Block | None = None
    for i, ins in enumerate(function.body):
        role = roles(ins)
        if current is None or i in labels or (role.row.gate and current.body):
            current = Block(first + len(blocks), function)
            blocks.append(current)
        for name in labels.get(i, ()):
            starts[name] = current.number
        if role.flow is not Flow.NEXT:
            current.end = ins
            current = None
        else:
            current.body.append(ins)
    after = first + len(blocks)
    for name in labels.get(len(function.body), ()):
        starts[name] = after
    if not blocks or any(n == after for n in starts.values()) or _falls_off(blocks[-1]):
        blocks.append(Block(after, function, end=_implicit_return(function)))
    for block in blocks:
        last = block.number - first == len(blocks) - 1
        block.follow = EXIT if last else block.number + 1
        if block.end and roles(block.end).flow.jumps:
            if not block.end.targets:
                raise PtxError(f"PTX line {block.end.line}: no .branchtargets before this")
            for name in block.end.targets:
                if name not in starts:
                    raise PtxError(
                        f"PTX line {block.end.line}: no label {name!r} in {function.name}"
                    )
            block.targets = tuple(starts[t] for t in block.end.targets)
    return blocks


def _falls_off(block: Block) -> bool:
    end = block.end
    return end is None or end.guard is not None or roles(end).flow.comes_back


def _implicit_return(function: Function) -> Instruction:
    line = function.body[-1].line if function.body else 0
    location = function.body[-1].location if function.body else None
    return Instruction("ret", (), (), None, line, location)


def successors(block: Block) -> list[int]:
    """Return the numbers of the successors in the same function."""
    end = block.end
    if end is None:
        return [block.follow]
    falls = end.guard is not None or roles(end).flow.comes_back
    return [*block.targets, *([block.follow] if falls else [])]


def compute_liveness(blocks: list[Block]) -> None:
    """Fill in ``uses``, ``defs``, ``written``, ``live_in`` and ``live_out`` of one function."""
    by_number = {block.number: block for block in blocks}
    for block in blocks:
        for ins in block.instructions:
            role = roles(ins)
            block.uses |= set(role.reads) - block.defs
            block.written |= set(role.writes)
            if ins.guard is None:
                block.defs |= set(role.writes)
            else:  # lanes that the guard turns off keep the old value
                block.uses |= set(role.writes) - block.defs
        block.live_in = set(block.uses)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            for number in successors(block):
                if number in by_number:
                    block.live_out |= by_number[number].live_in
            live_in = block.uses | (block.live_out - block.defs)
            if live_in != block.live_in:
                block.live_in = live_in
                changed = True
