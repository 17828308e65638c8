"""What a PTX call passes: registers and constants, to variables and registers."""

import contextlib

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import PtxError
from tests.fuzz import ptxas

SCHEDULES = ("lockstep", "warps", "reverse", 5)
ADD = ".func (.reg .u32 r) f (.reg .u32 a, .reg .u32 b) { add.u32 r, a, b; ret; }"
ADD_PARAMS = """.func (.param .u32 r) f (.param .u32 a, .param .u32 b) { .reg .u32 x, y;
  ld.param.u32 x, [a]; ld.param.u32 y, [b]; add.u32 x, x, y; st.param.u32 [r], x; ret; }"""
FACTORIAL = """.func (.reg .u32 r) f (.reg .u32 a) { .reg .pred p; .reg .u32 b, c;
  setp.le.u32 p, a, 1; mov.u32 r, 1; @p ret; sub.u32 b, a, 1; call (c), f, (b);
  mul.lo.u32 r, c, a; ret; }"""
LOOP = """.func (.reg .u32 r) f (.reg .u32 a) { .reg .pred p;
L: add.u32 a, a, 3; setp.lt.u32 p, a, 9; @p bra L; mov.u32 r, a; }"""
HALF = ".func (.reg .u32 r) f (.reg .f32 a) { cvt.rzi.u32.f32 r, a; ret; }"
WIDE = ".func (.reg .u32 r) f (.reg .s64 a) { cvt.u32.s64 r, a; ret; }"
BYTES = """.func (.param .b32 r) f (.param .b8 a, .param .align 4 .b8 q[8]) { .reg .b32 x, y;
  .reg .b16 h; ld.param.u8 h, [a]; cvt.u32.u16 x, h; ld.param.b32 y, [q+4]; add.u32 x, x, y;
  st.param.b32 [r], x; ret; }"""
SYSTEM = ".extern .func (.param .b64 r) malloc (.param .b64 a);"
POINTER = """mov.u64 %rd2, f;
  P: .callprototype (.param .u32 _) _ (.param .u32 _, .param .u32 _);"""
TARGETS = "mov.u64 %rd2, f; P: .calltargets f;"
TABLE = """.func (.reg .u32 r) g (.reg .u32 a, .reg .u32 b) { sub.u32 r, b, a; ret; }
.global .u64 table[2] = {f, g};"""
NONE = ".func (.param .u32 r) f { .reg .u32 x; mov.u32 x, 77; st.param.u32 [r], x; ret; }"
T = np.arange(8)
PASSED: list[tuple[str, str, object]] = [
    (ADD, "call (%r2), f, (%r1, %r1);", 2 * T),
    (ADD, "call.uni (%r2), f, (0x10, -3);", 13),
    (ADD_PARAMS, "call (%r2), f, (%r1, 7);", T + 7),
    (ADD_PARAMS, "{ .param .b32 x; st.param.b32 [x], 5; call (%r2), f, (x, %r1); }", T + 5),
    (ADD_PARAMS, "{ .param .u32 z; call (z), f, (%r1, 1); ld.param.u32 %r2, [z]; }", T + 1),
    (ADD_PARAMS, "call (%r2), f, (%r1, 1); call (%r2), f, (%r2, %r2);", 2 * T + 2),
    (ADD_PARAMS, "mov.u32 %r2, 9; call (_), f, (%r1, 7);", 9),
    (ADD, "mov.u32 %r2, 9; @%p1 call (%r2), f, (%r1, WARP_SZ);", np.where(T < 5, T + 32, 9)),
    (FACTORIAL, "call (%r2), f, (%r1);", [1, 1, 2, 6, 24, 120, 720, 5040]),
    (LOOP, "call (%r2), f, (%r1);", [9, 10, 11, 9, 10, 11, 9, 10]),
    (HALF, "call (%r2), f, (8.5);", 8),
    (HALF, "call (%r2), f, (0d4020000000000000);", 8),
    (WIDE, "call (%r2), f, (0xfffffffffffffff0);", (1 << 32) - 16),
    (BYTES, "{ .param .align 4 .b8 q[8]; st.param.b32 [q+4], 6; call (%r2), f, (300, q); }", 50),
    (SYSTEM, "call (%rd2), malloc, (16); shr.u64 %rd2, %rd2, 63; cvt.u32.u64 %r2, %rd2;", 0),
    (ADD_PARAMS, f"{POINTER} call (%r2), %rd2, (%r1, 7), P;", T + 7),
    (ADD, f"{POINTER.replace('param', 'reg')} call (_), %rd2, (%r1, 7), P; mov.u32 %r2, 4;", 4),
    (
        ADD,
        f"mov.u32 %r2, 3; {POINTER} @!%p1 call (%r2), %rd2, (%r2, %r1), P;",
        np.where(T < 5, 3, T + 3),
    ),
    (ADD, f"{TARGETS} call (%r2), %rd2, (%r1, 7), P;", T + 7),
    (
        ADD_PARAMS,
        f"{TARGETS} mov.u32 %r2, %r1; @%p1 call (%r2), %rd2, (%r2, 9), P;",
        np.where(T < 5, T + 9, T),
    ),
    (f"{ADD} {TABLE}", "ld.global.u64 %rd2, [table+8]; call (%r2), %rd2, (%r1, 7), table;", 7 - T),
    (NONE, f"{TARGETS} call (%r2), %rd2, P;", 77),
    (
        NONE,
        f"{TARGETS.replace('targets f', 'prototype (.param .u32 _) _')} call (%r2), %rd2, P;",
        77,
    ),
    # What ptxas refuses.
    (ADD, f"{TARGETS} call (%r2), %rd2, (%r1), P;", "1 results and 2 parameters, not 1 and 1"),
    (ADD, f"{POINTER} call %rd2, (%r1, 7), P;", "1 results and 2 parameters, not 0 and 2"),
    (ADD, f"{POINTER} call (%r2), %rd2, (%r1, 7);", "ends with the label of a prototype before"),
    (ADD, f"mov.u64 %rd2, f; call (%r2), %rd2, (%r1, 7), P; {TARGETS}", "prototype before it"),
    (ADD, f"{TARGETS} call (%r2), %rd2, (%rd1, 7), P;", "a .b64 is passed where the function"),
    (NONE, f"{TARGETS.replace('f;', 'later;')} call (%r2), %rd2, P;", "'later' is named, and not"),
    (
        f"{ADD} {NONE.replace('f {', 'g {')}",
        f"{TARGETS.replace('ets f', 'ets f, g')} call (%r2), %rd2, (%r1, 7), P;",
        "other parameters or results than the first",
    ),
    (ADD, f"{POINTER} call (%r2), %rd2, (%rd1, 7), P;", "a .b64 is passed where"),
    (ADD, "call (%r2), f, (5);", "'f' has 2 parameters, not 1"),
    (ADD, "call f, (5, 6);", "'f' has 1 results, not 0"),
    (ADD, "call (%r2), f, (%rd1, 5);", r"a .b64 is passed where the function has a \(.u32\)"),
    (ADD, "call (%r2), f, (%f1, 5);", r"a .f32 is passed where the function has a \(.u32\)"),
    (ADD, "call (%rd2), f, (1, 5);", r"a .b64 is passed where the function has r \(.u32\)"),
    (HALF, "call (%r2), f, (8);", r"a whole number is passed where the function has a \(.f32\)"),
    (BYTES, "call (%r2), f, (3, %rd1);", r"a .b64 is passed where .* q \(.b8\[8\]\)"),
    (ADD, "call (%r2), f, (%tid.x, 1);", "a call passes .param variables, registers and const"),
    (ADD, "call (%r2), f, (_, 1);", "a call passes .param variables, registers and constants"),
    (ADD, "call (%r2), f, (1 2);", "expected ','"),
    ("", "call nothing;", "the function 'nothing' is called, and not declared before"),
    ("", "call (%rd2), malloc, (%rd1);", "'malloc' is called, and not declared before"),
    ("", "call (%r2), later, (%r1);", "'later' is called, and not declared before"),
    ("", "call k, (%rd1);", "'k' is a kernel"),
]
MODULE = """.version 9.0
.target sm_90
.address_size 64
FUNCTIONS
.visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<5>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;
  CALL
  mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], %r2; ret; }
.func (.reg .u32 r) later (.reg .u32 a) { mov.u32 r, a; ret; }
"""


@pytest.mark.parametrize(("functions", "call", "expected"), PASSED)
def test_what_a_call_passes(functions: str, call: str, expected: object) -> None:
    """Registers and constants on either side; ptxas is the judge."""
    text = MODULE.replace("FUNCTIONS", functions).replace("CALL", call)
    if ptxas.path():
        assert ptxas.accepts(text, "sm_90") != isinstance(expected, str)
    for schedule in SCHEDULES:
        out = np.zeros(8, np.uint32)
        if isinstance(expected, str):
            with pytest.raises(PtxError, match=expected):
                simulator.launch(Kernel.from_ptx(text, "k"), 1, 8, [out])
            return
        run = simulator.launch(Kernel.from_ptx(text, "k"), 1, 8, [out], schedule=schedule)
        assert not run.hazards
        np.testing.assert_array_equal(out, np.broadcast_to(np.asarray(expected), 8))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (".func (.param .b32 r) f(.param .b32 a)", ".func (.param .b32 q) f(.param .b32 c)", True),
        (".func f(.param .align 4 .b32 a)", ".func f(.param .b32 a)", True),
        (".func f", ".func f()", True),
        (".visible .func f(.param .u64 a)", ".func f(.param .u64 a)", True),
        (".entry f(.param .u64 .ptr .global .align 4 a)", ".entry f(.param .u64 b)", True),
        (".func (.param .b32 r) f", ".func (.param .u32 r) f", False),
        (".func f(.param .b32 a)", ".func (.param .b32 r) f(.param .b32 a)", False),
        (".func (.param .b32 a) f", ".func f(.param .b32 a)", False),
        (".func f(.param .align 4 .b8 a[8])", ".func f(.param .align 8 .b8 a[8])", False),
        (".func f(.param .align 8 .b8 a[8])", ".func f(.param .align 8 .b8 a[16])", False),
        (".func f(.reg .b32 a)", ".func f(.param .b32 a)", False),
        (".func f()", ".func f(.param .b32 a)", False),
        (".extern .func f(.param .u64 a)", ".func f(.param .u64 a)", False),
        (".entry f(.param .u64 a)", ".func f(.param .u64 a)", False),
        (".entry f(.param .u64 a)", ".entry f(.param .b64 a)", False),
    ],
)
def test_functions_that_are_declared_again(first: str, second: str, same: bool) -> None:
    """As ptxas has it: parameters may have other names, and a definition is the last."""
    head, tail = ".version 9.0\n.target sm_90\n", "\n.visible .entry k() { ret; }\n"
    before = f"{head}{first};\n{second} {{ ret; }}{tail}"
    after = f"{head}{second} {{ ret; }}\n{second};{tail}"
    if ptxas.path():
        assert ptxas.accepts(before, "sm_90") == same
        assert not ptxas.accepts(after, "sm_90")
    words = "PTX line 4: 'f' has other parameters, results or linkage in PTX line 3"
    with contextlib.nullcontext() if same else pytest.raises(PtxError, match=words):
        simulator.launch(Kernel.from_ptx(before, "k"), 1, 1, [])
    with pytest.raises(PtxError, match="'f' is declared after its definition"):
        simulator.launch(Kernel.from_ptx(after, "k"), 1, 1, [])
