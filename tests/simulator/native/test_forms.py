"""Each native form of an instruction, bit for bit against its NumPy row.

The forms are all spellings that the nets know (``tests.fuzz.rows``); operands are special values of
their types in all combinations, and random ones.
"""

import ctypes
import itertools

import numpy as np
import pytest

from kernels.ptx.types import DTYPES
from simulator.compile.compiler import Compiler
from simulator.compile.ir import Compute
from simulator.isa import parse
from simulator.native import jit, library
from simulator.native.forms.catalog import native_form
from simulator.native.forms.table import Operand
from simulator.native.lines import Lines, bits_of
from tests.fuzz.rows import Form, forms, spellings
from tests.simulator.isa.cases import EDGES

pytestmark = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())

REGISTERS = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64", "p": "pred", "q": "pred",
             "n": "b32", "5": "b32", "w": "b32"}  # fmt: skip
OPCODES = {
    "abs", "add", "addc", "and", "bfe", "bfi", "brev", "clz", "cos", "cvt", "div", "ex2", "fma",
    "lg2", "lop3", "mad", "madc", "max", "min", "rsqrt", "sin", "subc", "tanh",
    "mov", "mul", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "selp", "setp", "shf", "shl",
    "shr", "sqrt", "sub", "xor",
}  # fmt: skip
"""The opcodes that have native forms, but for ``cvta``."""
EXTRA = [Form("cvta.to.global.u64", "l", ("L",)), Form("cvta.shared.u64", "l", ("L",)),
         Form("cvta.to.shared.u64", "l", ("L",)), Form("cvta.local.u64", "l", ("L",)),
         Form("cvta.to.local.u64", "l", ("L",))]  # fmt: skip
UNSPELLED = """
{ex2|lg2|sin|cos|rcp|rsqrt|sqrt}.approx{|.ftz}.f32 : f : F
tanh.approx.f32 : f : F
rcp.approx.ftz.f64 : d : D
div.{approx|full}{|.ftz}.f32 : f : F F
{add.cc|sub.cc|addc|subc|addc.cc|subc.cc}.{u32|s32} : r : R R
{add.cc|sub.cc|addc|subc|addc.cc|subc.cc}.{u64|s64} : l : L L
{mad.lo.cc|mad.hi.cc|madc.lo|madc.hi|madc.lo.cc|madc.hi.cc}.{u32|s32} : r : R R R
{mad.lo.cc|mad.hi.cc|madc.lo|madc.hi|madc.lo.cc|madc.hi.cc}.{u64|s64} : l : L L L
"""
for line in UNSPELLED.strip().splitlines():
    pattern, result, sources = line.split(" : ")
    EXTRA += [Form(name, result, tuple(sources.split())) for name in spellings(pattern)]
RANDOM = 3000
SPECIAL = {
    1: [0, 1], 8: [0, 1, 0x7F, 0x80, 0xFF],
    16: [0, 1, 15, 16, 17, 0x7FFF, 0x8000, 0xFFFF, 0x8001],
    32: [0, 1, 2, 31, 32, 33, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678],
    64: [0, 1, 63, 64, 65, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 53) + 1],
}  # fmt: skip


def steps() -> list[Compute]:
    """The computing steps of one kernel that has each form once, of all that exist natively."""
    lines = [".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>;",
             ".reg .f32 %f<9>; .reg .f64 %d<9>;"]  # fmt: skip
    for form in [f for some in forms().values() for f in some] + EXTRA:
        if form.name.split(".")[0] not in OPCODES | {"cvta"}:
            continue
        names = [f"%{_letter(letter)}{8 - i}" for i, letter in enumerate(form.results)]
        operands = [_operand(letter, i) for i, letter in enumerate(form.sources)]
        target = "|".join(names)
        lines.append(f"{form.name} {target}, {', '.join(operands)};")
    lines += ["mov.b64 {%r1, %r2}, %l1;", "mov.b64 %l1, {%r1, %r2};", "mov.b32 %r1, {%h1, %h2};"]
    body = "\n".join(lines)
    text = (
        f".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n{body}\nret;\n}}"
    )
    program = Compiler(parse(text), "k").program()
    found = [s for b in program.blocks for s in b.steps if isinstance(s, Compute)]
    return [s for s in found if native_form(s.instruction, s.op) is not None]


def _letter(letter: str) -> str:
    letter = letter.lower()
    return {"q": "p", "n": "r", "5": "r", "w": "r"}.get(letter, letter)


def _operand(letter: str, place: int) -> str:
    return "0x5C" if letter == "i" else f"%{_letter(letter)}{place + 1}"


def values(type: str, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """Special and random bit patterns of a type."""
    bits = bits_of(type)
    special = EDGES.get(type, SPECIAL[bits])
    drawn = random.integers(0, 1 << min(bits, 63), RANDOM, dtype=np.uint64)
    drawn ^= random.integers(0, 2, RANDOM, dtype=np.uint64) << np.uint64(bits - 1)
    small = random.integers(0, 80, RANDOM, dtype=np.uint64) & np.uint64((1 << bits) - 1)
    chosen = np.where(random.random(RANDOM) < 0.3, small, drawn)
    if type in ("f32", "f64") and bits == 32:
        reals = (random.standard_normal(RANDOM) * 100).astype(np.float32).view(np.uint32)
        chosen = np.where(random.random(RANDOM) < 0.5, reals, chosen)
    elif type == "f64":
        reals = (random.standard_normal(RANDOM) * 1e6).view(np.uint64)
        chosen = np.where(random.random(RANDOM) < 0.5, reals, chosen)
    return special, chosen.tolist()


def operands(types: tuple[str, ...], seed: int) -> list[np.ndarray]:
    """Arrays of operands, of the dtypes that carry the types."""
    random = np.random.default_rng(seed)
    each = [values(type, random) for type in types]
    short = [special if len(types) < 3 else special[:: max(1, len(special) // 12)]
             for special, _ in each]  # fmt: skip
    rows = list(itertools.product(*short)) + list(zip(*(drawn for _, drawn in each), strict=True))
    made = []
    for place, type in enumerate(types):
        dtype = DTYPES[type]
        raw = np.array([row[place] for row in rows], np.uint64)
        if type == "pred":
            made.append(raw.astype(bool))
        else:
            made.append(raw.astype(f"u{dtype.itemsize}").view(dtype))
    return made


def loop(number: int, step: Compute, inputs: tuple[str, ...]) -> Lines:
    """A function that applies a form to arrays."""
    x, outputs = Lines(), step.op.outputs[: len(step.targets)]
    count = len(inputs) + len(outputs)
    given = ", ".join([*(f"ptr %p{i}" for i in range(count)), "i64 %n"])
    x.lines.append(f"define void @form{number}({given}) {{")
    x.begin("entry")
    x.emit("br label %head")
    x.begin("head")
    x.emit("%i = phi i64 [ 0, %entry ], [ %j, %head ]")
    taken = []
    for place, type in enumerate(inputs):
        bits = bits_of(type)
        at = x.value(f"getelementptr i{max(bits, 8)}, ptr %p{place}, i64 %i")
        value = x.value(f"load i{max(bits, 8)}, ptr {at}")
        taken.append(Operand(x.value(f"trunc i8 {value} to i1") if bits == 1 else value, type))
    emit = native_form(step.instruction, step.op)
    assert emit is not None
    results = emit(x, taken)
    for place, (type, value) in enumerate(zip(outputs, results, strict=False), len(inputs)):
        bits = bits_of(type)
        at = x.value(f"getelementptr i{max(bits, 8)}, ptr %p{place}, i64 %i")
        if bits == 1:
            value = x.value(f"zext i1 {value} to i8")
        x.emit(f"store i{max(bits, 8)} {value}, ptr {at}")
    x.emit("%j = add i64 %i, 1")
    x.emit("%done = icmp eq i64 %j, %n")
    x.emit("br i1 %done, label %end, label %head")
    x.begin("end")
    x.emit("ret void")
    x.lines.append("}")
    return x


@pytest.mark.parametrize("level", [0, 1, 2])
def test_forms_give_the_bits_of_their_rows(level: int) -> None:
    found = steps()
    assert {step.instruction.opcode for step in found} == OPCODES | {"cvta"}
    types = [tuple(source.type for source in step.sources) for step in found]
    loops = [loop(i, step, types[i]) for i, step in enumerate(found)]
    declared = sorted(set().union(*(x.declared for x in loops)))
    text = "\n".join([*declared, *("\n".join(x.lines) for x in loops)]) + "\n"
    library.entry()
    loaded = jit.load(text, level)
    wrong = []
    for number, step in enumerate(found):
        given = operands(types[number], number)
        if step.instruction.opcode == "cvta" and len(given) > 1:
            given[1] = np.zeros_like(given[1])  # the block's number in a cluster, of which are none
        with np.errstate(all="ignore"):
            result = step.op.fn(*given)
        wanted = result if isinstance(result, tuple) else (result,)
        outputs = step.op.outputs[: len(step.targets)]
        got = [np.zeros(len(given[0]), DTYPES[type]) for type in outputs]
        arrays = [np.ascontiguousarray(a) for a in given] + got
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays), ctypes.c_int64)
        function = signature(loaded.address(f"form{number}"))
        function(*(a.ctypes.data for a in arrays), len(given[0]))
        for mine, want in zip(got, wanted, strict=False):
            width = f"u{mine.dtype.itemsize}"
            want = np.broadcast_to(np.asarray(want), mine.shape).astype(mine.dtype, copy=False)
            bad = np.flatnonzero(mine.view(width) != np.ascontiguousarray(want).view(width))
            if bad.size:
                i = bad[0]
                wrong.append(f"{step.instruction.name}: {[a[i] for a in given]} {mine[i]} {want[i]}"
                             f" ({bad.size})")  # fmt: skip
    print(len(found), "forms", *wrong, sep="\n")
    assert wrong == []
