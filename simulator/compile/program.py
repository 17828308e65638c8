"""A compiled kernel: blocks of generated Python, and what they refer to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.ptx.module import Function, Instruction, Module

from ..memory.layout import Layout
from ..memory.site import Site
from .blocks import EXIT, Block


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
        checked: Carrier types of the registers whose merged values are held to them.
    """

    block: Block
    kind: str
    body: list[str]
    writes: list[tuple[int, str]]
    returns: str
    gate: str | None = None
    warp_barrier: bool = False
    checked: Mapping[int, str] = field(default_factory=dict)
    call_entry: int = EXIT
    return_register: int = -1
    reduction: tuple[str, int] | None = None

    @property
    def number(self) -> int:
        """The block's number."""
        return self.block.number

    def source(self, merge: bool) -> str:
        """Python source of one of the two forms."""
        # Nothing of the PTX's text stands in here, names least of all: they may be anything.
        first = self.block.instructions[0].line if self.block.instructions else 0
        lines = [f"def block(R, M):  # block {self.number}, PTX line {first}"]
        lines += [f"    {line}" for line in self.body]
        for index, name in self.writes:
            value = f"merge(M, {name}, R[{index}])" if merge else name
            lines.append(f"    R[{index}] = {value}")
            if index in self.checked:
                lines.append(f"    expect(R[{index}], t_{self.checked[index]})")
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


@dataclass(frozen=True)
class Watched:
    """An instruction whose executions a trace records.

    Attributes:
        instruction: The instruction; ``block``: the basic block it stands in.
        kind: ``load``, ``store``, ``atomic``, ``value``, ``barrier`` or ``exit``.
        outputs: Register numbers of the recorded values; -1 where there is none.
        inputs: Of the operands that are read: a register number, or the operand's text.
        site: Of an access.
    """

    instruction: Instruction
    block: int
    kind: str
    outputs: tuple[int, ...] = ()
    inputs: tuple[int | str, ...] = ()
    site: Site | None = None


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
        watched: What a trace records; ``None`` if compiled without (``trace.compile_traced``).
        facts: What was worked out about it, by the class that did.
        data: Registers that hold what was loaded, or was computed from it; for a trace.
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
    watched: list[Watched] | None = None
    data: frozenset[int] = frozenset()
    memos: dict[Any, dict[Any, Any]] = field(default_factory=dict)
    facts: dict[Any, Any] = field(default_factory=dict)

    def memo(self, *key: Any) -> dict[Any, Any]:
        """A place to remember what holds for every launch of a kind; it stays bounded."""
        if len(self.memos) > 64:
            self.memos.clear()
        found = self.memos.setdefault(key, {})
        if len(found.get("steps", found)) > 20_000:
            found.clear()
        return found

    def fact(self, kind: Callable[[Program], Any]) -> Any:
        """``kind(self)``, made once."""
        if kind not in self.facts:
            self.facts[kind] = kind(self)
        return self.facts[kind]

    @functools.cached_property
    def _code(self) -> dict[tuple[int, bool], Any]:
        return {}

    def function(self, number: int, merge: bool, names: dict[str, Any]) -> Callable[..., Any]:
        """The block's Python function, its free names taken from ``names``."""
        key = (number, merge)
        if key not in self._code:
            source = self.blocks[number].source(merge)
            where = f"<block {number}{' diverged' if merge else ''}>"
            folder = os.environ.get("TILESCOPE_DUMP")
            if folder:
                form = "d" if merge else ""
                entry = list(self.module.functions).index(self.entry.name)
                path = Path(folder) / f"{self.module.digest}.{entry}.{number}{form}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(source)
                where = str(path)
            self._code[key] = compile(source, where, "exec")
        space: dict[str, Any] = {}
        exec(self._code[key], names, space)
        made: Callable[..., Any] = space["block"]
        return made
