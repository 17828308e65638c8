"""Instructions across a warp's lanes, in whole, partial and divided warps, against loops."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from kernels import Kernel

from .harness import EDGES, MACHINES, decode, kernel

Lanes = dict[int, int]
"""A value by lane, of the lanes that execute the instruction together under one mask."""


@dataclass(frozen=True)
class Case:
    """One instruction.

    Attributes:
        name: Its modifiers, for the test's name.
        code: Its statement: ``%r8`` and ``%p2`` get the results, ``%r4`` (``%rd4``) is the
            value, ``%r5`` and ``%r6`` are operands, ``%r7`` the member mask.
        model: Takes the group's values, one lane, and that lane's two operands; gives the
            results, ``None`` for what is not defined.
        values: What lanes' values are drawn from.
    """

    name: str
    code: str
    model: Callable[[Lanes, int, int, int], tuple[int | None, bool | None]]
    values: tuple[int, ...] = tuple(EDGES["u32"])

    def __str__(self) -> str:
        return self.name

    @property
    def opcodes(self) -> set[str]:
        return {self.code.split(".")[0]}


def shuffle(mode: str) -> Callable[[Lanes, int, int, int], tuple[int | None, bool]]:
    """The manual's formulas."""

    def model(lanes: Lanes, lane: int, b: int, c: int) -> tuple[int | None, bool]:
        segment, clamp, b = c >> 8 & 31, c & 31, b & 31
        last = lane & segment | clamp & ~segment & 31
        first = lane & segment
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b,
                  "idx": first | b & ~segment & 31}[mode]  # fmt: skip
        inside = source >= last if mode == "up" else source <= last
        return lanes.get(source if inside else lane), inside

    return model


def mask(lanes: Any) -> int:
    return sum(1 << lane for lane in lanes)


def vote(mode: str) -> Callable[..., tuple[int | None, bool | None]]:
    def model(lanes: Lanes, *_: int) -> tuple[int | None, bool | None]:
        true = [lane for lane, value in lanes.items() if value & 1]
        if mode == "ballot":
            return mask(true), None
        return None, {
            "all": len(true) == len(lanes),
            "any": bool(true),
            "uni": len(true) in (0, len(lanes)),
        }[mode]

    return model


def match_any(lanes: Lanes, lane: int, *_: int) -> tuple[int, None]:
    return mask(other for other, value in lanes.items() if value == lanes[lane]), None


def match_all(lanes: Lanes, *_: int) -> tuple[int, bool]:
    same = len(set(lanes.values())) == 1
    return mask(lanes) if same else 0, same


def reduction(name: str, kind: str) -> Callable[..., tuple[int, None]]:
    pick: dict[str, Callable[[list[int]], int]] = {
        "add": sum, "min": min, "max": max,
        "and": lambda v: functools.reduce(int.__and__, v),
        "or": lambda v: functools.reduce(int.__or__, v),
        "xor": lambda v: functools.reduce(int.__xor__, v),
    }  # fmt: skip

    def model(lanes: Lanes, *_: int) -> tuple[int, None]:
        return pick[name]([int(decode(kind, v)) for v in lanes.values()]) & 0xFFFFFFFF, None

    return model


MOSTLY, RARELY = (1,) * 60 + (0,), (0,) * 60 + (1,)
FEW = (5, 5, 5, 5, 0, 0x80000005)
CASES = [
    *(Case(f"shfl.{m}", f"shfl.sync.{m}.b32 %r8|%p2, %r4, %r5, %r6, %r7;", shuffle(m))
      for m in ("up", "down", "bfly", "idx")),
    Case("shfl without predicate", "shfl.sync.bfly.b32 %r8, %r4, %r5, %r6, %r7;",
         lambda *a: (shuffle("bfly")(*a)[0], None)),
    *(Case(f"vote.{m} {name}", f"vote.sync.{m}.pred %p2, %p3, %r7;", vote(m), values)
      for m in ("all", "any", "uni")
      for name, values in (("mixed", (0, 1)), ("mostly", MOSTLY), ("rarely", RARELY))),
    Case("vote.all !", "vote.sync.all.pred %p2, !%p3, %r7;",
         lambda lanes, *_: (None, not any(v & 1 for v in lanes.values())), RARELY),
    Case("vote.ballot", "vote.sync.ballot.b32 %r8, %p3, %r7;", vote("ballot"), (0, 1)),
    Case("match.any.b32", "match.any.sync.b32 %r8, %r4, %r7;", match_any, FEW),
    Case("match.any.b64", "match.any.sync.b64 %r8, %rd4, %r7;", match_any, FEW),
    Case("match.all.b32", "match.all.sync.b32 %r8|%p2, %r4, %r7;", match_all, (5,) * 40 + (0,)),
    Case("match.all.b64", "match.all.sync.b64 %r8|%p2, %rd4, %r7;", match_all, (5,) * 40 + (0,)),
    *(Case(f"redux.{m}.{t}", f"redux.sync.{m}.{t} %r8, %r4, %r7;", reduction(m, t))
      for m in ("add", "min", "max") for t in ("s32", "u32")),
    *(Case(f"redux.{m}", f"redux.sync.{m}.b32 %r8, %r4, %r7;", reduction(m, "b32"))
      for m in ("and", "or", "xor")),
    Case("elect", "elect.sync %r8|%p2, %r7;",
         lambda lanes, lane, *_: (min(lanes), lane == min(lanes))),
]  # fmt: skip
ACTIVE = Case("activemask", "activemask.b32 %r8;", lambda lanes, *_: (mask(lanes), None))

GROUPS: dict[str, Callable[[int], int]] = {
    "all": lambda lane: 1,
    "halves": lambda lane: 1 + lane // 16,
    "interleaved": lambda lane: 1 + lane % 3,
    "some": lambda lane: int(lane % 5 != 2),
    "one": lambda lane: int(lane == 3),
}
"""Which lanes name each other in their masks; 0: lanes that do not execute the instruction."""


@functools.cache
def build(case: Case, form: str) -> Kernel:
    """Loads operands, runs the instruction in the lanes that are on, stores both results."""
    lines = [
        ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;",
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
        "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd0, %r3, 4;",
    ]
    for i, name in enumerate(("%r4", "%r5", "%r6", "%r7", "%r10")):
        lines += [
            f"ld.param.u64 %rd1, [p{i}]; add.u64 %rd2, %rd1, %rd0;",
            f"ld.global.u32 {name}, [%rd2];",
        ]
    lines += [
        "cvt.u64.u32 %rd4, %r4; and.b32 %r9, %r4, 1; setp.ne.u32 %p3, %r9, 0;",
        "setp.ne.u32 %p1, %r10, 0; mov.u32 %r8, 77; setp.eq.u32 %p2, %r4, %r4;",
    ]
    if form == "guard":
        lines.append(f"@%p1 {case.code}")
    elif form == "branch":
        lines += ["@!%p1 bra DONE;", case.code, "DONE:"]
    else:  # one group after the other, each in a branch of its own
        lines += [
            "setp.eq.u32 %p4, %r10, 1; setp.eq.u32 %p5, %r10, 2; setp.gt.u32 %p6, %r10, 2;",
            "@%p4 bra ONE; @%p5 bra TWO; @%p6 bra THREE; bra DONE;",
            f"ONE: {case.code} bra DONE;",
            f"TWO: {case.code} bra DONE;",
            f"THREE: {case.code} bra DONE;",
            "DONE:",
        ]
    lines += [
        "ld.param.u64 %rd1, [p5]; add.u64 %rd2, %rd1, %rd0; st.global.u32 [%rd2], %r8;",
        "selp.u32 %r11, 1, 0, %p2;",
        "ld.param.u64 %rd1, [p6]; add.u64 %rd2, %rd1, %rd0; st.global.u32 [%rd2], %r11; ret;",
    ]
    return kernel(lines, 7)


def check(case: Case, form: str, groups: Callable[[int], int], block: int, values: Sequence[int],
          b: Sequence[int], c: Sequence[int]) -> None:  # fmt: skip
    """Launch, and compare each lane with the model of its group."""
    count = len(values)
    lane = [i % block % 32 for i in range(count)]
    warp = [i - i % block + i % block // 32 * 32 for i in range(count)]
    on = [groups(n) for n in lane]
    members: dict[tuple[int, int], Lanes] = {}
    for i in range(count):
        members.setdefault((warp[i], on[i]), {})[lane[i]] = values[i]
    masks = [mask(members[warp[i], on[i]]) for i in range(count)]
    inputs = [np.array(x, np.uint32) for x in (values, b, c, masks, on)]
    for machine in MACHINES:
        first, second = (np.zeros(count, np.uint32) for _ in range(2))
        result = machine.launch(build(case, form), count // block, block, [*inputs, first, second])
        if machine is simulator:
            assert result.hazards == []
        for i in range(count):
            wanted: tuple[int | None, bool | None] = (77, True)
            if on[i]:
                wanted = case.model(members[warp[i], on[i]], lane[i], b[i], c[i])
            found = (int(first[i]), bool(second[i]))
            for what, want, got in zip(("result", "predicate"), wanted, found, strict=True):
                if want is not None and want != got:
                    pytest.fail(
                        f"{what} of lane {lane[i]} of thread {i}: {got:#x}, not {want:#x}; "
                        f"operands {values[i]:#x} {b[i]:#x} {c[i]:#x} {masks[i]:#x}"
                    )


def operands(case: Case, count: int, seed: str) -> tuple[list[int], list[int], list[int]]:
    rng = random.Random(seed)
    values = [rng.choice(case.values) for _ in range(count)]
    b = [rng.choice((0, 1, 2, 7, 15, 16, 31, 32, 33, 0xFFFFFFFF)) for _ in range(count)]
    c = [rng.choice((0, 31, 0x1F, 0x101F, 0x181F, 0x1C1F, 0x1800, 0x1F1F, 0x180F, 0xFFFFFFFF))
         for _ in range(count)]  # fmt: skip
    return values, b, c


@pytest.mark.parametrize("block", [32, 45, 96])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_groups(case: Case, groups: str, block: int) -> None:
    form = "guard" if groups in ("some", "one") and block != 96 else "branch"
    check(case, form, GROUPS[groups], block, *operands(case, 3 * block, f"{case}{groups}{block}"))


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("case", [*CASES, ACTIVE], ids=str)
def test_groups_apart(case: Case, groups: str) -> None:
    check(case, "apart", GROUPS[groups], 70, *operands(case, 140, f"{case}{groups}"))


@pytest.mark.parametrize("form", ["guard", "branch"])
@pytest.mark.parametrize("groups", ["all", "some", "one"])
def test_active_mask(groups: str, form: str) -> None:
    check(ACTIVE, form, GROUPS[groups], 45, *operands(ACTIVE, 90, "active"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_uniform_operands(case: Case) -> None:
    """All lanes hold the same: the simulator computes on one number."""
    code = case.code.replace("%r7", "0xffffffff")
    lines = [
        ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;",
        "mov.u32 %r4, 6; mov.u64 %rd4, 6; mov.u32 %r5, 3; mov.u32 %r6, 0x101f; mov.u32 %r8, 77;",
        f"setp.eq.u32 %p2, 1, 1; setp.eq.u32 %p3, 1, 0; {code} selp.u32 %r11, 1, 0, %p2;",
        "mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4;",
        "ld.param.u64 %rd1, [p0]; add.u64 %rd2, %rd1, %rd0; st.global.u32 [%rd2], %r8;",
        "ld.param.u64 %rd1, [p1]; add.u64 %rd2, %rd1, %rd0; st.global.u32 [%rd2], %r11; ret;",
    ]
    for machine in MACHINES:
        found = [np.zeros(64, np.uint32) for _ in range(2)]
        machine.launch(kernel(lines, 2), 1, 64, found)
        for thread in range(64):
            wanted = case.model(dict.fromkeys(range(32), 6), thread % 32, 3, 0x101F)
            for want, got in zip(wanted, (f[thread] for f in found), strict=True):
                assert want is None or want == got


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(CASES),
    st.sampled_from([33, 64, 100]),
    st.lists(st.integers(0, 3), min_size=32, max_size=32),
    st.data(),
)
def test_drawn(case: Case, block: int, groups: list[int], data: st.DataObject) -> None:
    word = st.one_of(st.sampled_from(case.values), st.integers(0, 2**32 - 1))
    column = st.lists(word, min_size=block, max_size=block)
    values, b, c = (data.draw(column) for _ in range(3))
    check(case, "branch", groups.__getitem__, block, values, b, c)
