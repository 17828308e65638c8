"""What is done together in generated code finds, tells and counts what it would one by one.

Loads of one base, and chains of fused multiply-adds.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import simulator
from simulator.compile import compiler, program
from tests.support.launches import SCHEDULES, entry

HEAD = """\
.shared .align 4 .u32 s[64];
ld.param.u64 %d0, [out]; ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;
mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, 64, %r0; mad.wide.u32 %d2, %r2, 4, %d0;
mov.u64 %d3, s; add.u64 %d4, %d3, %d1; add.u32 %r3, %r0, 100;
setp.lt.u32 %p, %r0, %r1;
"""
FILL = "st.shared.u32 [%d4], %r3; bar.sync 0;\n"
SUM = """
add.u32 %r4, %r4, %r5; mad.lo.u32 %r4, %r6, 3, %r4; mad.lo.u32 %r4, %r7, 5, %r4;
st.global.u32 [%d2], %r4;
"""


def four(base: str, offsets: tuple[int, ...] = (0, 4, 8, 12), between: str = "") -> str:
    """Four loads into ``%r4`` ... ``%r7``."""
    return between.join(
        f"ld.shared.u32 %r{4 + i}, [{base}+{at}];\n" for i, at in enumerate(offsets)
    )


CASES = {
    "in a row": FILL + four("%d3", (0, 128, 8, 12)) + SUM,
    "another place each": FILL + four("%d4", (0, -4, 4, 8)) + SUM,
    "one outside": FILL + four("%d3", (0, 4, 256, 8)) + SUM,
    "one misaligned": FILL + four("%d3", (0, 4, 6, 8)) + SUM,
    "nothing wrote one": "@%p st.shared.u32 [%d4], %r3; bar.sync 0;\n" + four("%d3") + SUM,
    "no barrier": "st.shared.u32 [%d4], %r3;\n" + four("%d3", (0, 4, 128, 132)) + SUM,
    "some lanes": FILL + f"@!%p bra E;\n{four('%d3')}{SUM}E:",
    "by turns": FILL
    + "".join(
        f"ld.shared.u32 %r{to}, [%d{base}+{at}];\n"
        for to, base, at in ((4, 3, 0), (5, 4, 0), (6, 3, 4), (7, 4, 4), (8, 3, 8), (9, 4, 8))
    )
    + "mad.lo.u32 %r4, %r8, 7, %r4; mad.lo.u32 %r4, %r9, 11, %r4;"
    + SUM,
    "guarded": FILL  # what a lane that is off would access is not there
    + "mov.u32 %r4, 1; mov.u32 %r5, 2; mov.u32 %r6, 3; mov.u32 %r7, 4;\n"
    + "add.u64 %d5, %d3, 4096; selp.b64 %d5, %d3, %d5, %p;\n"
    + four("%d5").replace("ld.", "@%p ld.")
    + SUM,
    "a store between": FILL + four("%d3", between="st.shared.u32 [%d3+8], %r0;\n") + SUM,
    "another base between": FILL + four("%d3", between="add.u64 %d3, %d3, 4;\n") + SUM,
    "the base is loaded": FILL
    + "ld.shared.u32 %r8, [%d3]; sub.u32 %r8, %r8, 100; and.b32 %r8, %r8, 12;\n"
    + four("%r8")
    + "ld.shared.u32 %r8, [%r8+4]; add.u32 %r4, %r4, %r8;\n"
    + SUM,
    "in a loop": FILL
    + f"mov.u32 %r9, 0; mov.u32 %r10, 0;\nL:\n{four('%d3')}"
    + "mad.lo.u32 %r10, %r4, 3, %r10; mad.lo.u32 %r10, %r7, %r9, %r10; add.u32 %r9, %r9, 1;\n"
    + f"setp.lt.u32 %q, %r9, 5; @%q bra L;\n{four('%d4', (0, 0, 0, 0))}"
    + "add.u32 %r4, %r4, %r10;"
    + SUM,
    "to and fro": FILL  # a base that is inside, one that is not, and each of them again
    + "mov.u32 %r9, 0; mov.u32 %r10, 0; mov.u64 %d5, s; add.u64 %d6, %d5, 252;\n"
    + f"L: and.b32 %r8, %r9, 1; setp.eq.u32 %q, %r8, 0; selp.b64 %d7, %d5, %d6, %q;\n{four('%d7')}"
    + "mad.lo.u32 %r10, %r4, 3, %r10; add.u32 %r9, %r9, 1;\n"
    + "setp.lt.u32 %q, %r9, 6; @%q bra L;\nadd.u32 %r4, %r4, %r10;\n"
    + SUM,
    "ever fewer lanes": FILL  # few are picked out, and go on alone
    + "mov.u32 %r9, 0; mov.u32 %r10, 0; and.b32 %r11, %r0, 63; mul.lo.u32 %r11, %r11, %r11;\n"
    + f"L:\n{four('%d3')}mad.lo.u32 %r10, %r7, %r9, %r10; add.u32 %r9, %r9, 1;\n"
    + "setp.lt.u32 %q, %r9, %r11; @%q bra L;\nmov.u32 %r4, %r10;\n"
    + SUM,
}


def adds(sums: str, sources: str = "%f1, %f2") -> str:
    """A chain: ``to from, to from`` are the registers of its sums."""
    steps = [pair.split() for pair in sums.split(",")]
    return "".join(f"fma.rn.f32 %f{to}, {sources}, %f{base};\n" for to, base in steps)


FLOATS = """
.reg .f32 %f<16>;
cvt.rn.f32.u32 %f1, %r3; rcp.approx.f32 %f2, %f1; cvt.rn.f32.u32 %f3, %r0; mov.f32 %f9, %f1;
"""
STORE = "mov.b32 %r4, %f4; mov.b32 %r5, %f5; xor.b32 %r4, %r4, %r5; st.global.u32 [%d2], %r4;\n"
CHAINS = {
    "a chain": adds("5 3, 6 5, 4 6"),
    "onto itself": adds("3 3, 3 3, 3 3") + "mov.f32 %f4, %f3; mov.f32 %f5, %f1;",
    "a sum is read after": adds("5 3, 6 5, 4 6") + "add.f32 %f5, %f5, %f6;",
    "a sum is a factor": adds("5 3, 6 5") + "fma.rn.f32 %f4, %f6, %f6, %f6;",
    "a sum is written again": adds("5 3, 4 5") + "mov.f32 %f5, %f1;" + adds("4 4, 4 4"),
    "two by turns": adds("4 3, 5 9, 4 4, 5 5, 4 4, 5 5"),
    "a guard": adds("5 3, 6 5") + "@%p " + adds("6 6") + adds("4 6, 4 4"),
    "a guarded sum is read": "mov.f32 %f6, %f1;\n" + adds("5 3") + "@%p " + adds("6 5")
    + adds("4 6"),
    "a factor is the chain's": adds("5 3, 6 5, 4 6", "%f3, %f2"),
    "another rounding": adds("5 3, 6 5").replace(".rn", ".rz", 1) + adds("4 6"),
    "after a loop": "mov.u32 %r9, 0;\nL:\n" + adds("5 3, 6 5, 3 6") + "add.u32 %r9, %r9, 1;\n"
    + "setp.lt.u32 %q, %r9, 3; @%q bra L;\n" + adds("7 3, 8 7, 4 8"),
    "ever fewer": "mov.u32 %r9, 0; and.b32 %r11, %r0, 63; mul.lo.u32 %r11, %r11, %r11;\nL:\n"
    + adds("5 3, 6 5, 3 6") + "add.u32 %r9, %r9, 1;\nsetp.lt.u32 %q, %r9, %r11; @%q bra L;\n"
    + adds("5 3, 4 5"),
    "not a number": "mul.f32 %f3, %f3, 0f7F800000;\n" + adds("5 3, 6 5, 4 6"),
}  # fmt: skip
CASES |= {name: FLOATS + "mov.f32 %f5, %f1;\n" + body + STORE for name, body in CHAINS.items()}


def facts(run: simulator.Run, out: np.ndarray[Any, Any]) -> dict[str, object]:
    """What a launch told, and what it left."""
    return run.to_dict() | {"out": out.tolist(), "seconds": 0}


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """From its call on nothing is done together."""

    def apart() -> None:
        for name in ("together", "chained"):
            monkeypatch.setattr(program, name, lambda steps, *_: steps)
        compiler._compiled.cache_clear()

    yield apart
    compiler._compiled.cache_clear()


DEAR = ("a store between", "no barrier", "ever fewer lanes")
"""Of these a large batch takes seconds: each of its races is told, or its lanes go on alone."""
RUNS = [(case, (1, 64), schedule) for case in CASES for schedule in SCHEDULES]
RUNS += [(case, (3, 40), "lockstep") for case in CASES]
RUNS += [(case, (90 if case in DEAR else 700, 64), "lockstep") for case in CASES]


@pytest.mark.slow_cases(
    "...90, 64)-lockstep", "ever fewer lanes...", "ever fewer-(1, 64)-1",
    "ever fewer-(1, 64)-lockstep", "ever fewer-(1, 64)-reverse", "ever fewer-(1, 64)-warps",
    "ever fewer-(3, 40)-lockstep", "ever fewer-(700, 64)-lockstep",
)  # fmt: skip
@pytest.mark.parametrize(("case", "shape", "schedule"), RUNS, ids=str)
def test_the_same_as_one_by_one(
    case: str, shape: tuple[int, int], schedule: str | int, one_by_one: Callable[[], None]
) -> None:
    blocks, threads = shape
    found = []
    for _ in range(2):
        out = np.zeros(64 * blocks, np.uint32)
        kernel = entry(HEAD + CASES[case])
        run = simulator.launch(kernel, blocks, threads, [out, 20], schedule=schedule)
        found.append(facts(run, out))
        one_by_one()
    assert found[0] == found[1]
