"""Every operation on operands that took another way into their registers.

A register's value has the dtype of its carrier whatever wrote it: halves put side by side,
a shuffle, shared memory, an atomic, writes under a guard. (A pack once left unsigned numbers
in a register that all the rest took for signed ones: NumPy then computes in float64.)
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from simulator import launch
from simulator.compile.lower.values import expect
from simulator.isa import TABLE, Op
from tests.simulator.isa import (
    test_bits,
    test_compare,
    test_convert,
    test_floating,
    test_half,
    test_integer,
)
from tests.simulator.isa.cases import WIDTH, Batch, Case, batches, register
from tests.simulator.isa.harness import Runner, kernel

MODULES = (test_integer, test_bits, test_compare, test_convert, test_half, test_floating)
CASES = [c for m in MODULES for c in m.CASES if not c.code and not c.name.startswith("mov")]
_TURNS = 4
_PIECES = {64: ("b32", "b16"), 32: ("b16", "b8"), 16: ("b8",)}


def packed(width: int, piece: str) -> str:
    """Taken apart into pieces, and put together again."""
    names = ", ".join(f"%piece{i}" for i in range(width // WIDTH[piece]))
    return f".reg .{piece} {names}; mov.b{width} {{{names}}}, V; mov.b{width} W, {{{names}}};"


def ways(width: int) -> dict[str, str]:
    """Statements that give ``W`` the bits of ``V``."""
    b = f"b{width}"
    low = ".reg .pred %low; .reg .b32 %who; mov.u32 %who, %tid.x; setp.lt.u32 %low, %who, 7;"
    room = (
        ".reg .b32 %at; .shared .align 8 .b8 room[512]; mov.u32 %at, room; "
        ".reg .b32 %who; mov.u32 %who, %tid.x; mad.lo.u32 %at, %who, 8, %at;"
    )
    made = {f"pack {piece}": packed(width, piece) for piece in _PIECES[width]}
    made |= {
        "shared": f"{room} st.shared.{b} [%at], V; ld.shared.{b} W, [%at];",
        "guard": f"{low} @!%low mov.{b} W, V; @%low mov.{b} W, V;",
    }
    if width > 16:
        exchange = f"atom.shared.exch.{b} W, [%at]"
        made["atomic"] = f"{room} {exchange}, V; {exchange}, 0;"
        made["shuffle"] = ".reg .b32 %x; mov.b32 %x, V; SWAP %x, %x, 0, 31, -1; mov.b32 W, %x;"
    if width == 64:
        made["shuffle"] = (
            ".reg .b32 %x, %y; mov.b64 {%x, %y}, V; SWAP %x, %x, 0, 31, -1; "
            "SWAP %y, %y, 0, 31, -1; mov.b64 W, {%x, %y};"
        )
        made["guarded pack"] = (
            f"{low} .reg .b32 %x, %y; mov.b64 {{%x, %y}}, V; mov.b64 W, V; "
            "@%low mov.b64 W, {%x, %y};"
        )
    return {name: code.replace("SWAP", "shfl.sync.bfly.b32") for name, code in made.items()}


def routed(case: Case, way: str) -> Case:
    """The case with each operand sent through ``way`` first, if its width has it."""
    code, operands = "", {}
    for i, kind in enumerate(case.ins):
        statements = {} if kind == "pred" else ways(WIDTH[register(kind)])
        operands[f"v{i}"] = f"<v{i}>"
        if way in statements:
            text = statements[way].replace("V", f"<v{i}>").replace("W", f"%way{i}")
            code += f".reg .{register(kind)} %way{i}; {{ {text} }} "
            operands[f"v{i}"] = f"%way{i}"
    outs = {f"o{i}": f"<o{i}>" for i in range(len(case.out))}
    code = f"{{ {code} {case.statements.format(**outs, **operands)} }}"
    code = code.replace("{", "{{").replace("}", "}}").replace("<", "{").replace(">", "}")
    return dataclasses.replace(case, code=code, most=16, drawn=0)


def routes() -> Iterator[Case]:
    """A pack and another way for integers of 64 bits; of the other cases some, which take turns."""
    turn = 0
    for number, case in enumerate(CASES):
        widths = [WIDTH[register(k)] for k in case.ins if k != "pred"]
        if not widths:
            continue
        known = list(ways(max(widths)))
        if 64 in widths and not any(k.startswith("f") for k in (*case.ins, *case.out)):
            yield routed(case, known[0])
            yield routed(case, known[1 + number % (len(known) - 1)])
        elif (turn := turn + 1) % _TURNS == 0:
            yield routed(case, known[turn // _TURNS % len(known)])


@pytest.mark.slow_cases("cvt.rzi.s8.f16-to-cvt.f64.f16", "set.eq.and.u32.s32-to-setp.ge.and.s32")
@pytest.mark.parametrize("batch", batches(routes(), 32), ids=str)
def test_ways(batch: Batch) -> None:
    Runner(batch).check()


def test_a_slip_is_seen() -> None:
    """What the check is for: a value of the right width, of another dtype."""
    expect(np.int64(1), np.dtype(np.int64))
    for wrong in (np.uint64(1), np.float64(1), np.int32(1), np.zeros(3, np.int64), 1):
        with pytest.raises(AssertionError, match="a register of int64"):
            expect(wrong, np.dtype(np.int64))


def test_generated_code_checks_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row whose function gives another dtype than it says does not pass, in either form."""
    made = TABLE["add"]
    wrong = dataclasses.replace(made[0], build=lambda ins: Op(lambda a, b: (a + b).view(np.uint32),
                                                           ("s32", "s32"), ("s32",)))  # fmt: skip
    for form in ("", "setp.eq.u32 %p, %t, 3; @%p bra DONE;"):
        lines = [
            ".reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x;", form,
            "add.s32 %t, %t, 1;", "DONE: ret;",
        ]  # fmt: skip
        right = kernel(lines, 0)
        launch(right, 1, 32, [], checks="none")
        monkeypatch.setitem(TABLE, "add", (wrong, *made[1:]))
        with pytest.raises(AssertionError, match="a register of int32 got uint32"):
            launch(kernel([*lines, "// again"], 0), 1, 32, [], checks="none")
        monkeypatch.setitem(TABLE, "add", made)
