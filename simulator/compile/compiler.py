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
from typing import Any

import numpy as np

from kernels.errors import PtxError
from kernels.ptx.module import Function, Module, Symbol

from ..isa import DTYPES
from ..isa.compare import choose
from ..isa.moves import pack, upper
from ..isa.reading import parse
from ..isa.roles import CARRY, INTRINSIC_CALLS
from ..memory.layout import lay_out
from .blocks import Block, find_live, reachable, split
from .codegen import RETURN, BlockCompiler
from .flow import in_run_order
from .program import Program
from .values import both, expect, low, merge

_REGISTER_CARRIERS = {
    "pred": "pred", "f32": "f32", "f64": "f64",
    **{f"{sign}{bits}": f"s{bits}" for sign in "bsu" for bits in (8, 16, 32, 64)},
    "f16": "s16", "bf16": "s16", "f16x2": "s32", "bf16x2": "s32",
}  # fmt: skip


CHECKED = "TILESCOPE_CHECK_WRITES"
"""Set in the environment to have generated code check the dtype of every register it writes."""


def compile_ptx(text: str, entry: str) -> Program:
    """Parse and compile one entry of a PTX text.

    Raises:
        PtxError: The text cannot be parsed, or has an instruction without a row.
    """
    return _compiled(text, entry, bool(os.environ.get(CHECKED)))


@functools.lru_cache(maxsize=32)
def _compiled(text: str, entry: str, checked: bool) -> Program:
    return Compiler(parse(text), entry, checked).program()


class Compiler:
    """Compiles the functions that an entry reaches.

    Args:
        module: The PTX.
        entry: Name of the entry.
        checked: Whether generated code checks what it writes (see ``CHECKED``).
    """

    def __init__(self, module: Module, entry: str, checked: bool = False) -> None:
        if entry not in module.functions:
            raise PtxError(f"no body for the entry {entry!r} in this PTX")
        self.module = module
        self.checked = checked
        self.functions = reachable(module, entry)
        self.layout = lay_out(module, self.functions)
        self.result = Program(module.functions[entry], module, self.layout)
        self.result.constants |= {
            "np": np, "merge": merge, "both": both, "choose": choose, "low": low,
            "pack": pack, "upper": upper, "expect": expect,
            **{f"t_{name}": dtype for name, dtype in DTYPES.items()},
        }  # fmt: skip
        self.index: dict[tuple[str, str], int] = {}
        self.carriers: list[str] = []
        self.entries: dict[str, int] = {}
        self.aliases: dict[str, dict[str, tuple[str, str]]] = {}
        self.constant_names: dict[tuple[str, int], str] = {}
        self.special_names: dict[str, str] = {}

    def program(self) -> Program:
        """The finished program."""
        first = 0
        split_blocks: list[list[Block]] = []
        for function in self.functions:
            blocks = in_run_order(split(function, first))
            find_live(blocks)
            self.entries[function.name] = first
            first += len(blocks)
            split_blocks.append(blocks)
            self.aliases[function.name] = self.call_aliases(function)
        for blocks in split_blocks:
            for block in blocks:
                self.result.blocks.append(BlockCompiler(self, block).compile())
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

    def special(self, name: str) -> str:
        """A name for the name of a special register: none of the PTX's is generated."""
        if name not in self.special_names:
            self.special_names[name] = f"s{len(self.special_names)}"
            self.result.constants[self.special_names[name]] = name
        return self.special_names[name]

    def callable(self, fn: Callable[..., Any]) -> str:
        """A name for a function."""
        name = f"f{len(self.result.constants)}"
        self.result.constants[name] = fn
        return name
