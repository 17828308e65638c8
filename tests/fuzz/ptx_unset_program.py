"""What random PTX about uninitialised memory looks like: registers, memory, arguments."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import unset
from tests.fuzz.compare import Launch
from tests.fuzz.ptx_program import INPUTS
from tests.fuzz.tree import Statement

OWN = 32
"""Bytes that a thread has in each space; results: 4 words of 64 bits."""
KINDS = {"h": ("b16", 4), "r": ("b32", 6), "l": ("b64", 5), "d": ("f64", 2), "p": ("pred", 3)}
BITS = {"h": 16, "r": 32, "l": 64, "d": 64}
SPACES = {"local": "%a1", "shared": "%a2", "global": "%a3"}
WORDS = {8: "h", 16: "h", 32: "r", 64: "l"}
HEAD = """\
.version 8.6
.target sm_90
.address_size 64
.func (.param .b64 out) pass(.param .align 8 .b8 given[16])
{
.reg .b64 %x; .reg .b32 %y, %z;
ld.param.b64 %x, [given]; ld.param.b32 %y, [given+8]; mov.b64 {%z, _}, %x;
add.u32 %y, %y, %z; mov.b64 %x, {%z, %y}; st.param.b64 [out], %x; ret;
}
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 part)
{
REGISTERS
.reg .b32 %t<8>; .reg .b64 %a<8>; .reg .pred %q<3>;
.shared .align 16 .b8 s[SHARED];
.local .align 16 .b8 own[32];
ld.param.u64 %a0, [out]; ld.param.u64 %a4, [in]; ld.param.u64 %a3, [part];
mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mad.lo.u32 %t2, %t1, THREADS, %t0;
mov.u64 %a2, s; mad.wide.u32 %a2, %t0, 32, %a2; mov.u64 %a1, own;
mad.wide.u32 %a0, %t2, 32, %a0; mad.wide.u32 %a3, %t2, 32, %a3;
"""


@dataclass
class Program:
    """Statements, stores of results, and which words of the array ``part`` the host leaves."""

    seed: int
    body: list[Statement]
    results: list[Statement]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: Any
    host: list[bool]

    def trees(self) -> list[list[Statement]]:
        return [self.body, self.results]

    def ptx(self) -> str:
        (threads,), counter, lines = self.block, itertools.count(), []
        for c, (kind, n) in KINDS.items():
            lines.append(f".reg .{kind} %{c}<{n}>;")
        head = HEAD.replace("REGISTERS", "\n".join(lines)).replace("SHARED", str(OWN * threads))
        lines = [head.replace("THREADS", str(threads))]
        for c, (kind, n) in KINDS.items():
            for i in range(n):
                lines.append(f"mad.lo.u32 %t3, %t2, {2 * i + 1}, {9 * i + ord(c)};")
                lines.append(f"and.b32 %t3, %t3, {INPUTS - 1}; mad.wide.u32 %a5, %t3, 8, %a4;")
                if c == "p":
                    lines.append(f"ld.global.u8 %t3, [%a5]; setp.lt.u32 %p{i}, %t3, 100;")
                else:
                    lines.append(f"ld.global.{kind} %{c}{i}, [%a5];")
        for statement in (*self.body, *self.results):
            lines.append(statement.render(counter))
        return "\n".join([*lines, "ret;", "}"])

    def launch(self) -> Launch:
        total = self.grid[0] * self.block[0]
        part = unset(total * OWN // 8, np.uint64)
        at = np.flatnonzero(np.tile(self.host, total))
        part[at] = at
        out = np.zeros(total * OWN // 8, np.uint64)
        return Launch(self.ptx(), "k", self.grid, self.block, [out, self.inputs.copy(), part])
