"""Arithmetic that only later GPUs than Hopper have: against the manual, not seen on hardware."""

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from tests.simulator.isa.cases import EDGES, Batch, Case, batches
from tests.simulator.isa.floats import FORMATS
from tests.simulator.isa.harness import check, kernel
from tests.simulator.isa.test_floating import MODES, OPERATIONS, modelled

F32 = FORMATS["f32"]


def pairs() -> list[Case]:
    """Two numbers in 64 bits, each by itself."""
    cases = []
    edges = random.Random(3).sample([a | b << 32 for a in EDGES["f32"] for b in EDGES["f32"]], 60)
    for name, mode, ftz in itertools.product(("add", "sub", "mul", "fma"), MODES, ("", ".ftz")):
        one, arity = modelled(name, "f32", mode, ftz), OPERATIONS[name][0]

        def model(*words: int, one: Callable[..., int] = one) -> int:
            low, high = (one(*(w >> s & 0xFFFFFFFF for w in words)) for s in (0, 32))
            return low | high << 32

        places = tuple((i, tuple(edges)) for i in range(arity))
        cases.append(Case(f"{name}.{mode}{ftz}.f32x2", ("b64",), ("b64",) * arity, model,
                          edges=places, target=100))  # fmt: skip
    return cases


def mixed() -> list[Case]:
    """Operands of 16 bits, exact in f32, and a result that is rounded once."""
    cases = []
    for t, mode, sat in itertools.product(("f16", "bf16"), MODES, ("", ".sat")):
        for name in ("add", "sub", "fma"):
            one = modelled(name, "f32", mode, sat)

            def model(*given: int, one: Callable[..., int] = one, t: str = t) -> int:
                return one(*(FORMATS[t].convert(x, F32) for x in given[:-1]), given[-1])

            ins = (t,) * (OPERATIONS[name][0] - 1) + ("f32",)
            label = f"{name}.{mode}{sat}.f32.{t}"
            cases.append(Case(label, ("f32",), ins, model, target=100, most=1500))
    return cases


ARITHMETIC = pairs() + mixed()


@pytest.mark.slow_but("fma.rn.f32.f16-to-fma.rp.sat.f32.f16")
@pytest.mark.parametrize("batch", batches(ARITHMETIC), ids=str)
def test_arithmetic(batch: Batch) -> None:
    check(batch)


@dataclass(frozen=True)
class Reduction:
    """``redux`` on ``.f32``."""

    name: str

    @property
    def plain(self) -> str:
        """Its code, with registers of its own."""
        return f".reg .f32 %o, %v; .reg .b32 %members; {self.name} %o, %v, %members;"

    def model(self, values: list[int]) -> int:
        """What the lanes' values come to."""
        values = [F32.magnitude(v) if ".abs" in self.name else v for v in values]
        pick = functools.partial(F32.extreme, ".min" in self.name, propagate=".NaN" in self.name)
        return functools.reduce(pick, values[1:], pick(values[0], values[0]))


REDUCTIONS = [
    Reduction(f"redux.sync.{name}{magnitude}{nan}.f32")
    for name in ("min", "max") for magnitude in ("", ".abs") for nan in ("", ".NaN")
]  # fmt: skip
CASES = [*ARITHMETIC, *REDUCTIONS]


@pytest.mark.parametrize("case", REDUCTIONS, ids=lambda case: case.name)
def test_reductions(case: Reduction) -> None:
    """Of whole warps, and of two parts of each."""
    code = case.plain.replace("; redux", "; LOAD redux").replace(
        "LOAD",
        "mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %t, %b, 32, %t; "
        "mul.wide.u32 %at, %t, 4; ld.param.u64 %p, [p0]; add.u64 %p, %p, %at; "
        "ld.global.f32 %v, [%p]; ld.param.u64 %p, [p1]; add.u64 %p, %p, %at; "
        "ld.global.b32 %members, [%p];",
    )
    after = "ld.param.u64 %p, [p2]; add.u64 %p, %p, %at; st.global.f32 [%p], %o; ret;"
    lines = [".reg .b32 %t, %b; .reg .b64 %p, %at;", code, after]
    rng = random.Random(case.name)
    pools: list[Any] = [EDGES["f32"], [0, 1 << 31], [0x7FC00000, 0xFFC12345], EDGES["f32"][3:9]]
    rows = [[rng.choice(pools[i % 4]) for _ in range(32)] for i in range(24)]
    masks = [rng.getrandbits(32) if i % 3 else 0xFFFFFFFF for i in range(24)]
    groups = [[mask >> lane & 1 for lane in range(32)] for mask in masks]
    members = [[mask if on else ~mask & 0xFFFFFFFF for on in group]
               for mask, group in zip(masks, groups, strict=True)]  # fmt: skip
    wanted = [
        [case.model([v for v, g in zip(row, group, strict=True) if g == on]) for on in group]
        for row, group in zip(rows, groups, strict=True)
    ]
    out = np.zeros((24, 32), np.uint32)
    simulator.launch(kernel(lines, 3, target=100), 24, 32,
                     [np.array(rows, np.uint32), np.array(members, np.uint32), out])  # fmt: skip
    assert out.tolist() == wanted
