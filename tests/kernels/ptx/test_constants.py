"""Constant expressions of PTX: ptxas works them out, too, and writes them into its program."""

import random

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import PtxError
from kernels.ptx.constants import ConstantParser
from kernels.ptx.lexer import Cursor
from kernels.ptx.parser import parse
from tests.fuzz import ptxas

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
OPERATORS = ("||", "&&", "==", "!=", "<=", ">=", "<", ">", "%", *"|^&/", *("<<", ">>", *"+-*") * 2)
NUMBERS = (0, 1, 2, 3, 7, 31, 32, 63, 64, 1 << 63, (1 << 63) - 1, (1 << 64) - 1)
needs_ptxas = pytest.mark.skipif(ptxas.path() is None, reason="needs the wheel nvidia-cuda-nvcc")


def expression(rng: random.Random, depth: int) -> str:
    """Any expression of whole numbers."""
    if depth == 0 or rng.random() < 0.15:
        number = rng.choice([*NUMBERS, rng.getrandbits(rng.randrange(1, 65))])
        return rng.choice([f"{number}", f"{number}U", hex(number), f"0{number:o}", "WARP_SZ"])

    def part() -> str:
        return expression(rng, depth - 1)

    way, space = rng.random(), rng.choice(["", " "])
    if way < 0.2:
        return rng.choice("-+~!") + space + part()
    if way < 0.3:
        return f"({rng.choice(['.s64', '.u64'])}){part()}"
    if way < 0.5:
        return f"({part()})"
    if way < 0.58:
        return f"{part()} ? {part()} : {part()}"
    name = rng.choice(OPERATORS)
    space = " " if name == "%" else space  # %32 is a name
    return part() + space + name + space + part()


def value(text: str) -> int:
    cursor = Cursor(text + ",")
    found = ConstantParser(cursor).constant().value & ((1 << 64) - 1)
    assert cursor.peek == ","
    return found


def asked(texts: list[str], kind: str = "u64") -> list[int] | None:
    """What ptxas makes of expressions, as bits."""
    text = f"{HEAD}.visible .global .align 8 .{kind} x[{len(texts)}] = {{{', '.join(texts)}}};\n"
    found = ptxas.initialised(text, "sm_90")
    return found and np.frombuffer(found, np.uint64).tolist()


@needs_ptxas
@pytest.mark.parametrize("seed", range(8))
def test_as_ptxas(seed: int) -> None:
    rng = random.Random(seed)
    texts, values = list[str](), list[int]()
    while len(texts) < 150:
        text = expression(rng, rng.randrange(1, 5))
        try:
            values.append(value(text))
        except PtxError:  # divided by zero
            continue
        texts.append(text)
    found = asked(texts)
    assert found is not None
    for text, mine, theirs in zip(texts, values, found, strict=True):
        assert mine == theirs, text


@needs_ptxas
def test_real_ones_as_ptxas() -> None:
    texts = ["1.5+1.0", "1.5*2.0-1.0", "-(1.5)", "1.0/3.0", "0d3FF8000000000000+1.0", "- -2.5e3"]
    assert [value(text) for text in texts] == asked(texts, "f64")
    assert [value("1.5<2.0"), value("2.5 != 2.5")] == asked(["1.5<2.0", "2.5 != 2.5"])


@needs_ptxas
@pytest.mark.parametrize(
    "text",
    ["5/0", "5 % 0", "1||1/0", "1.5+1", "~1.5", "1.5&&1", "(.u32)5", "1 < < 3", "(1", "1+", "1?2",
     "7 %3", "1?1.5:2.5", "*3", "0f3FC00000+1.0", "1 2", "()", "!1.5", "1.5%1.0"],
)  # fmt: skip
def test_what_ptxas_refuses(text: str) -> None:
    assert asked([text]) is None
    with pytest.raises(PtxError, match="PTX line 4: "):
        parse(f"{HEAD}.visible .global .u64 x[1] = {{{text}}};\n")


def test_too_deep() -> None:
    for text in ("(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "1?" * 5000 + "1" + ":1" * 5000):
        with pytest.raises(PtxError, match="deep"):
            value(text)


@pytest.mark.parametrize("build", ["device", "source"])
def test_wherever_a_constant_may_stand(build: str) -> None:
    source = """
    __device__ int n[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    __global__ void k(int* o) {
        int t = threadIdx.x, a, b, c; float d;
        asm volatile("mov.u32 %0, ~5;" : "=r"(a));
        asm volatile("and.b32 %0, %1, (1<<4)-1;" : "=r"(b) : "r"(t));
        asm volatile("ld.global.s32 %0, [%1 + 4*8 - (WARP_SZ / 2)];" : "=r"(c) : "l"(n));
        asm volatile("mov.f32 %0, 1.0/4.0 + 0.5;" : "=f"(d));
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 3 > 2 ? -3 : 8; @!p bra E; bar.sync 1+1;"
                     " E: }" :: "r"(-3));
        o[t] = a + 1000 * b + 100000 * c + (int)(d * 4) * 10000000;
    }"""
    out = np.zeros(32, np.int32)
    simulator.launch(Kernel.from_cuda(source, "k", build=build), 1, 32, [out])
    t = np.arange(32)
    assert (out == -6 + 1000 * (t & 15) + 400000 + 3 * 10000000).all()


def test_what_to_write_instead() -> None:
    text = f"{HEAD}.global .b32 n[8];\n.visible .entry k() {{ .reg .b32 %r<2>;\n"
    with pytest.raises(PtxError, match=r"as in \[n\+8\]"):
        simulator.launch(Kernel.from_ptx(text + "ld.global.u32 %r1, n[2]; ret; }", "k"), 1, 1, [])
