"""Which instructions random PTX is made of: their spellings, and what operands they take.

A line is ``spellings : destinations : sources``. ``{a|b}`` is a choice. An operand is a letter:
``h`` ``r`` ``l`` a 16-, 32- or 64-bit register, ``f`` ``d`` a float or double, ``p`` a predicate;
small letters may be constants where they are sources, capitals are registers always; ``n`` is
an amount to shift by, ``5`` a number below 32, ``i`` an immediate byte, ``w`` any of h, r, l.
"""

import itertools
import re
from functools import cache
from typing import NamedTuple

INT_TESTS = "eq|ne|lt|le|gt|ge"
REAL_TESTS = f"{INT_TESTS}|equ|neu|ltu|leu|gtu|geu|num|nan"
R4 = "{.rn|.rz|.rm|.rp}"
RI = "{rni|rzi|rmi|rpi}"

LINES = f"""
{{add|sub}}.{{s16|u16}} : h : H h
{{add|sub}}.{{s32|u32}} : r : R r
{{add|sub}}.sat.s32 : r : R r
{{add|sub}}.{{s64|u64}} : l : L l
add.{{u16x2|s16x2}} : r : R R
{{min|max}}.{{s16|u16}} : h : H h
{{min|max}}.{{s32|u32}} : r : R r
{{min|max}}.{{s64|u64}} : l : L l
{{min|max}}.relu.s32 : r : R R
{{min|max}}.{{u16x2|s16x2}} : r : R R
{{min|max}}.relu.s16x2 : r : R R
mul.{{lo|hi}}.{{s16|u16}} : h : H h
mul.{{lo|hi}}.{{s32|u32}} : r : R r
mul.{{lo|hi}}.{{s64|u64}} : l : L l
mul.wide.{{s16|u16}} : r : H h
mul.wide.{{s32|u32}} : l : R r
mad.{{lo|hi}}.{{s16|u16}} : h : H h h
mad.{{lo|hi}}.{{s32|u32}} : r : R r r
mad.{{lo|hi}}.{{s64|u64}} : l : L l l
mad.wide.{{s16|u16}} : r : H h r
mad.wide.{{s32|u32}} : l : R r l
mad.hi.sat.s32 : r : R R R
mul24.{{lo|hi}}.{{s32|u32}} : r : R R
mad24.{{lo|hi}}.{{s32|u32}} : r : R R R
mad24.hi.sat.s32 : r : R R R
sad.{{s16|u16}} : h : H H H
sad.{{s32|u32}} : r : R R R
sad.{{s64|u64}} : l : L L L
{{div|rem}}.{{s16|u16}} : h : H h
{{div|rem}}.{{s32|u32}} : r : R r
{{div|rem}}.{{s64|u64}} : l : L l
{{abs|neg}}.s16 : h : H
{{abs|neg}}.s32 : r : R
{{abs|neg}}.s64 : l : L
dp4a.{{s32|u32}}.{{s32|u32}} : r : R R R
dp2a.{{lo|hi}}.{{s32|u32}}.{{s32|u32}} : r : R R R
{{and|or|xor}}.b16 : h : H h
{{and|or|xor}}.b32 : r : R r
{{and|or|xor}}.b64 : l : L l
{{and|or|xor}}.pred : p : P P
{{not|cnot}}.b16 : h : H
{{not|cnot}}.b32 : r : R
{{not|cnot}}.b64 : l : L
not.pred : p : P
lop3.b32 : r : R R R i
lop3.{{and|or}}.b32 : rp : R R R i P
shl.b16 : h : H n
shl.b32 : r : R n
shl.b64 : l : L n
shr.{{b16|s16|u16}} : h : H n
shr.{{b32|s32|u32}} : r : R n
shr.{{b64|s64|u64}} : l : L n
shf.{{l|r}}.{{clamp|wrap}}.b32 : r : R R n
popc.b32 : r : R
popc.b64 : r : L
clz.b32 : r : R
clz.b64 : r : L
brev.b32 : r : R
brev.b64 : l : L
bfind{{|.shiftamt}}.{{s32|u32}} : r : R
bfind{{|.shiftamt}}.{{s64|u64}} : r : L
bfe.{{s32|u32}} : r : R n n
bfe.{{s64|u64}} : l : L n n
bfi.b32 : r : R R n n
bfi.b64 : l : L L n n
bmsk.{{clamp|wrap}}.b32 : r : n n
szext.{{clamp|wrap}}.{{s32|u32}} : r : R n
fns.b32 : r : R 5 r
prmt.b32{{|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}} : r : R R r
{{add|sub|mul}}{R4}{{|.ftz}}{{|.sat}}.f32 : f : F f
fma{R4}{{|.ftz}}{{|.sat}}.f32 : f : F f F
mad{R4}{{|.ftz}}{{|.sat}}.f32 : f : F F F
{{add|sub|mul}}{R4}.f64 : d : D d
{{fma|mad}}{R4}.f64 : d : D d D
div{R4}{{|.ftz}}.f32 : f : F f
div{R4}.f64 : d : D d
{{rcp|sqrt}}{R4}{{|.ftz}}.f32 : f : F
{{rcp|sqrt}}{R4}.f64 : d : D
{{abs|neg}}{{|.ftz}}.f32 : f : F
{{abs|neg}}.f64 : d : D
{{min|max}}{{|.ftz}}{{|.NaN}}{{|.xorsign.abs}}.f32 : f : F F
{{min|max}}.f64 : d : D D
copysign.f32 : f : F F
copysign.f64 : d : D D
testp.{{finite|infinite|number|notanumber|normal|subnormal}}.f32 : p : F
testp.{{finite|infinite|number|notanumber|normal|subnormal}}.f64 : p : D
{{add|sub|mul}}.rn{{|.ftz}}{{|.sat}}.f16 : h : H H
{{add|sub|mul}}.rn{{|.ftz}}{{|.sat}}.f16x2 : r : R R
{{add|sub|mul}}.rn.bf16 : h : H H
{{add|sub|mul}}.rn.bf16x2 : r : R R
fma.rn{{|.ftz}}{{|.sat|.relu}}.f16 : h : H H H
fma.rn{{|.ftz}}{{|.sat|.relu}}.f16x2 : r : R R R
fma.rn{{|.relu}}.bf16 : h : H H H
fma.rn{{|.relu}}.bf16x2 : r : R R R
{{abs|neg}}{{|.ftz}}.f16 : h : H
{{abs|neg}}{{|.ftz}}.f16x2 : r : R
{{abs|neg}}.bf16 : h : H
{{abs|neg}}.bf16x2 : r : R
{{min|max}}{{|.ftz}}{{|.NaN}}{{|.xorsign.abs}}.f16 : h : H H
{{min|max}}{{|.ftz}}{{|.NaN}}{{|.xorsign.abs}}.f16x2 : r : R R
{{min|max}}{{|.NaN}}{{|.xorsign.abs}}.bf16 : h : H H
{{min|max}}{{|.NaN}}{{|.xorsign.abs}}.bf16x2 : r : R R
setp.{{{INT_TESTS}}}.{{s16|u16}} : p : H h
setp.{{{INT_TESTS}}}.{{s32|u32}} : p : R r
setp.{{{INT_TESTS}}}.{{s64|u64}} : p : L l
setp.{{{INT_TESTS}}}.{{s32|u32}} : pp : R r
setp.{{lo|ls|hi|hs}}.u16 : p : H h
setp.{{lo|ls|hi|hs}}.u32 : p : R r
setp.{{lo|ls|hi|hs}}.u64 : p : L l
setp.{{eq|ne}}.b16 : p : H h
setp.{{eq|ne}}.b32 : p : R r
setp.{{eq|ne}}.b64 : p : L l
setp.{{{INT_TESTS}}}.{{and|or|xor}}.{{s32|u32}} : p : R r q
setp.{{{INT_TESTS}}}.{{and|or|xor}}.{{s64|u64}} : pp : L l q
setp.{{{REAL_TESTS}}}{{|.ftz}}.f32 : p : F f
setp.{{{REAL_TESTS}}}.f64 : p : D d
setp.{{{REAL_TESTS}}}.{{and|or|xor}}{{|.ftz}}.f32 : pp : F F q
setp.{{{REAL_TESTS}}}{{|.ftz}}.f16 : p : H H
setp.{{{REAL_TESTS}}}{{|.ftz}}.f16x2 : pp : R R
setp.{{{REAL_TESTS}}}.bf16 : p : H H
setp.{{{REAL_TESTS}}}.bf16x2 : pp : R R
set.{{{INT_TESTS}}}.{{u32|s32}}.{{s16|u16}} : r : H h
set.{{{INT_TESTS}}}.{{u32|s32}}.{{s32|u32}} : r : R r
set.{{{INT_TESTS}}}.{{u32|s32}}.{{s64|u64}} : r : L l
set.{{{INT_TESTS}}}.f32.{{s32|u32}} : f : R r
set.{{{INT_TESTS}}}.{{and|or|xor}}.{{u32|s32}}.{{s32|u32}} : r : R r q
set.{{{REAL_TESTS}}}{{|.ftz}}.{{u32|s32}}.f32 : r : F f
set.{{{REAL_TESTS}}}{{|.ftz}}.f32.f32 : f : F f
set.{{{REAL_TESTS}}}.{{u32|s32}}.f64 : r : D d
set.{{{REAL_TESTS}}}.f32.f64 : f : D d
set.{{{REAL_TESTS}}}{{|.ftz}}.f16.f16 : h : H H
set.{{{REAL_TESTS}}}{{|.ftz}}.{{f16x2|u32|s32}}.f16x2 : r : R R
set.{{{REAL_TESTS}}}.bf16.bf16 : h : H H
set.{{{REAL_TESTS}}}.bf16x2.bf16x2 : r : R R
selp.{{b16|s16|u16}} : h : H h P
selp.{{b32|s32|u32}} : r : R r P
selp.{{b64|s64|u64}} : l : L l P
selp.f32 : f : F f P
selp.f64 : d : D d P
slct.{{b16|s16|u16}}.s32 : h : H H R
slct.{{b32|s32|u32}}.s32 : r : R R R
slct.{{b64|s64|u64}}.s32 : l : L L R
slct{{|.ftz}}.b32.f32 : r : R R F
slct{{|.ftz}}.f32.f32 : f : F F F
slct{{|.ftz}}.f64.f32 : d : D D F
mov.{{b16|s16|u16}} : h : h
mov.{{b32|s32|u32}} : r : r
mov.{{b64|s64|u64}} : l : l
mov.f32 : f : f
mov.f64 : d : d
mov.b32 : r : F
mov.b32 : f : R
mov.b64 : l : D
mov.b64 : d : L
mov.pred : p : P
cvt.{{s16|u16}}.{{s8|u8}} : h : W
cvt.{{s32|u32}}.{{s8|u8}} : r : W
cvt.{{s64|u64}}.{{s8|u8}} : l : W
cvt.{{s8|u8}}.{{s16|u16}} : w : H
cvt.{{s8|u8}}.{{s32|u32}} : w : R
cvt.{{s8|u8}}.{{s64|u64}} : w : L
cvt.sat.{{s8|u8}}.{{s16|u16}} : w : H
cvt.sat.{{s8|u8}}.{{s32|u32}} : w : R
cvt.sat.{{s8|u8}}.{{s64|u64}} : w : L
cvt.{{s32|u32}}.{{s16|u16}} : r : H
cvt.{{s64|u64}}.{{s16|u16}} : l : H
cvt.{{s64|u64}}.{{s32|u32}} : l : R
cvt{{|.sat}}.{{s16|u16}}.{{s32|u32}} : h : R
cvt{{|.sat}}.{{s16|u16}}.{{s64|u64}} : h : L
cvt{{|.sat}}.{{s32|u32}}.{{s64|u64}} : r : L
cvt.sat.u32.s32 : r : R
cvt.sat.s32.u32 : r : R
cvt.sat.u64.s64 : l : L
cvt{R4}{{|.sat}}.f32.{{s16|u16}} : f : H
cvt{R4}{{|.sat}}.f32.{{s32|u32}} : f : R
cvt{R4}{{|.sat}}.f32.{{s64|u64}} : f : L
cvt{R4}.f64.{{s16|u16}} : d : H
cvt{R4}.f64.{{s32|u32}} : d : R
cvt{R4}.f64.{{s64|u64}} : d : L
cvt{R4}.f32.{{s8|u8}} : f : W
cvt{R4}.f16.{{s32|u32}} : h : R
cvt{R4}.f16.{{s64|u64}} : h : L
cvt{R4}.f16.{{s16|u16}} : h : H
cvt{R4}.bf16.{{s32|u32}} : h : R
cvt{R4}.bf16.{{s64|u64}} : h : L
cvt.{RI}{{|.ftz}}.{{s16|u16}}.f32 : h : F
cvt.{RI}{{|.ftz}}.{{s32|u32}}.f32 : r : F
cvt.{RI}{{|.ftz}}.{{s64|u64}}.f32 : l : F
cvt.{RI}.{{s8|u8}}.f32 : w : F
cvt.{RI}.{{s16|u16}}.f64 : h : D
cvt.{RI}.{{s32|u32}}.f64 : r : D
cvt.{RI}.{{s64|u64}}.f64 : l : D
cvt.{RI}.{{s16|u16}}.f16 : h : H
cvt.{RI}.{{s32|u32}}.f16 : r : H
cvt.{RI}.{{s64|u64}}.f16 : l : H
cvt.{RI}.{{s32|u32}}.bf16 : r : H
cvt.{RI}{{|.ftz}}{{|.sat}}.f32.f32 : f : F
cvt.{RI}.f64.f64 : d : D
cvt.{RI}.f16.f16 : h : H
cvt{R4}{{|.ftz}}{{|.sat}}.f32.f64 : f : D
cvt{{|.ftz}}{{|.sat}}.f64.f32 : d : F
cvt{{|.ftz}}{{|.sat}}.f32.f16 : f : H
cvt.f64.f16 : d : H
cvt.f32.bf16 : f : H
cvt{R4}.f16.f32 : h : F
cvt{R4}.f16.f64 : h : D
cvt{{.rn|.rz}}{{|.relu}}.bf16.f32 : h : F
cvt{{.rn|.rz}}{{|.relu}}.f16.f32 : h : F
cvt{{.rn|.rz}}{{|.relu}}.f16x2.f32 : r : F F
cvt{{.rn|.rz}}{{|.relu}}.bf16x2.f32 : r : F F
cvt.{{rna|rn|rz|rn.relu|rz.relu}}.tf32.f32 : r : F
cvt.pack.sat.{{s16|u16}}.s32 : r : R R
cvt.pack.sat.{{s8|u8|s4|u4|s2|u2}}.s32.b32 : r : R R R
"""


class Form(NamedTuple):
    """One instruction: its full name, and its operands' letters."""

    name: str
    results: str
    sources: tuple[str, ...]


def spellings(pattern: str) -> list[str]:
    """All words that a pattern with choices stands for."""
    parts = re.split(r"\{([^{}]*)\}", pattern)
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(parts)]
    return ["".join(words) for words in itertools.product(*choices)]


@cache
def forms() -> dict[str, list[Form]]:
    """Every form by its opcode."""
    found: dict[str, list[Form]] = {}
    for line in LINES.strip().splitlines():
        pattern, results, sources = (part.strip() for part in line.split(" : "))
        for name in spellings(pattern):
            found.setdefault(name.split(".")[0], []).append(
                Form(name, results, tuple(sources.split()))
            )
    return found
