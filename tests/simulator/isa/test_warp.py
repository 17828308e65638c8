"""Instructions across a warp's lanes, in whole, partial and divided warps, against loops."""

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.cases import EDGES, decode
from tests.simulator.isa.harness import MACHINES, kernel

Lanes = dict[int, int]
"""A value by lane, of the lanes that execute the instruction together under one mask."""


@dataclass(frozen=True)
class Case:
    """One instruction.

    Attributes:
        name: Its modifiers, for messages.
        code: Its statement: ``{o}`` and ``{p}`` get the results, ``%r4`` is the value,
            ``%p3`` its lowest bit, ``%r5`` and ``%r6`` are operands, ``%r7`` the member mask;
            ``%rd4`` is the value below the lowest bit of ``%r5``.
        model: Takes the group's values, one lane, and that lane's two operands; gives the
            results, ``None`` for what is not defined.
        values: What lanes' values are drawn from.
    """

    name: str
    code: str
    model: Callable[[Lanes, int, int, int], tuple[int | None, bool | None]]
    values: tuple[int, ...] = tuple(EDGES["u32"])

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        declared = ".reg .pred %p, %p3; .reg .b32 %o, %r<8>; .reg .b64 %rd4;"
        return f"{declared} {self.code.format(o='%o', p='%p')}"


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


def shuffles() -> list[Case]:
    cases = [
        Case(f"shfl.{m}", f"shfl.sync.{m}.b32 {{o}}|{{p}}, %r4, %r5, %r6, %r7;", shuffle(m))
        for m in ("up", "down", "bfly", "idx")
    ]
    cases.append(Case("shfl without predicate", "shfl.sync.bfly.b32 {o}, %r4, %r5, %r6, %r7;",
                      lambda *a: (shuffle("bfly")(*a)[0], None)))  # fmt: skip
    segments = [(m, width, 0 if m == "up" else 31) for width in (32, 16, 8, 4, 2, 1)
                for m in ("up", "down", "bfly", "idx")]  # fmt: skip
    segments += [(m, 32, clamp) for m in ("down", "bfly", "idx") for clamp in (0, 7, 20)]
    segments += [("up", width, clamp) for width in (32, 8) for clamp in (1, 3)]
    for mode, width, clamp in segments:
        c = (32 - width) << 8 | clamp
        by = shuffle(mode)
        model = lambda lanes, lane, b, _, f=by, c=c: f(lanes, lane, b, c)  # noqa: E731
        code = f"shfl.sync.{mode}.b32 {{o}}|{{p}}, %r4, %r5, {c}, %r7;"
        cases.append(Case(f"shfl.{mode} {c:#x}", code, model))
    return cases


MOSTLY, RARELY = (1,) * 60 + (0,), (0,) * 60 + (1,)
FEW = (5, 5, 5, 5, 0, 0x80000005)
ACTIVE = Case("activemask", "activemask.b32 {o};", lambda lanes, *_: (mask(lanes), None))
CASES = [
    ACTIVE,
    *shuffles(),
    *(Case(f"vote.{m} {name}", f"vote.sync.{m}.pred {{p}}, %p3, %r7;", vote(m), values)
      for m in ("all", "any", "uni")
      for name, values in (("mixed", (0, 1)), ("mostly", MOSTLY), ("rarely", RARELY))),
    Case("vote.all !", "vote.sync.all.pred {p}, !%p3, %r7;",
         lambda lanes, *_: (None, not any(v & 1 for v in lanes.values())), RARELY),
    Case("vote.any !", "vote.sync.any.pred {p}, !%p3, %r7;",
         lambda lanes, *_: (None, not all(v & 1 for v in lanes.values())), MOSTLY),
    Case("vote.ballot", "vote.sync.ballot.b32 {o}, %p3, %r7;", vote("ballot"), (0, 1)),
    Case("match.any.b32", "match.any.sync.b32 {o}, %r4, %r7;", match_any, FEW),
    Case("match.any.b64", "match.any.sync.b64 {o}, %rd4, %r7;", match_any, FEW),
    Case("match.all.b32", "match.all.sync.b32 {o}|{p}, %r4, %r7;", match_all, (5,) * 40 + (0,)),
    Case("match.all.b64", "match.all.sync.b64 {o}|{p}, %rd4, %r7;", match_all, (5,) * 40 + (0,)),
    *(Case(f"redux.{m}.{t}", f"redux.sync.{m}.{t} {{o}}, %r4, %r7;", reduction(m, t))
      for m in ("add", "min", "max") for t in ("s32", "u32")),
    *(Case(f"redux.{m}", f"redux.sync.{m}.b32 {{o}}, %r4, %r7;", reduction(m, "b32"))
      for m in ("and", "or", "xor")),
    Case("elect", "elect.sync {o}|{p}, %r7;",
         lambda lanes, lane, *_: (min(lanes), lane == min(lanes))),
    Case("elect who", "elect.sync _|{p}, %r7;",
         lambda lanes, lane, *_: (None, lane == min(lanes))),
]  # fmt: skip

GROUPS: dict[str, Callable[[int], int]] = {
    "all": lambda lane: 1,
    "halves": lambda lane: 1 + lane // 16,
    "interleaved": lambda lane: 1 + lane % 3,
    "some": lambda lane: int(lane % 5 != 2),
    "one": lambda lane: int(lane == 3),
    **{f"drawn {n}": random.Random(n).choices(range(4), k=32).__getitem__ for n in range(2)},
}
"""Which lanes name each other in their masks; 0: lanes that do not execute the instruction."""


def results(number: int) -> dict[str, str]:
    return {"o": f"%o{number}", "p": f"%q{number}"}


@functools.cache
def build(cases: tuple[Case, ...], form: str, count: int) -> Kernel:
    """Loads operands, runs the cases in the lanes that are on, stores both results of each.

    Each case has its own values; what it gives goes into two words a thread.
    """
    slot = 4 * count
    lines = [
        f".reg .pred %p<8>, %q<{len(cases)}>; .reg .b32 %r<16>, %o<{len(cases)}>;",
        ".reg .b64 %rd<16>; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
        "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd0, %r3, 4;",
    ]
    for i, name in enumerate(("%r5", "%r6", "%r7", "%r10")):
        lines += [
            f"ld.param.u64 %rd1, [p{i}]; add.u64 %rd2, %rd1, %rd0;",
            f"ld.global.u32 {name}, [%rd2];",
        ]
    lines += [
        "ld.param.u64 %rd1, [p4]; add.u64 %rd2, %rd1, %rd0;",
        "setp.ne.u32 %p1, %r10, 0; and.b32 %r12, %r5, 1;",
        *("mov.u32 {o}, 77; setp.eq.u32 {p}, %r0, %r0;".format(**results(n))
          for n in range(len(cases))),
    ]  # fmt: skip
    guard = "@%p1 " if form == "guard" else ""
    code = "\n".join(
        f"ld.global.u32 %r4, [%rd2+{slot * n}]; mov.b64 %rd4, {{%r4, %r12}};\n"
        f"and.b32 %r9, %r4, 1; setp.ne.u32 %p3, %r9, 0; {guard}{case.code.format(**results(n))}"
        for n, case in enumerate(cases)
    )
    if form == "guard":
        lines.append(code)
    elif form == "branch":
        lines += ["@!%p1 bra DONE;", code, "DONE:"]
    else:  # one group after the other, each in a branch of its own
        lines += [
            "setp.eq.u32 %p4, %r10, 1; setp.eq.u32 %p5, %r10, 2; setp.gt.u32 %p6, %r10, 2;",
            "@%p4 bra ONE; @%p5 bra TWO; @%p6 bra THREE; bra DONE;",
            f"ONE: {code} bra DONE;\nTWO: {code} bra DONE;\nTHREE: {code}\nDONE:",
        ]
    lines.append("ld.param.u64 %rd1, [p5]; add.u64 %rd2, %rd1, %rd0;")
    for n in range(len(cases)):
        word, flag = results(n).values()
        lines += [
            f"selp.u32 %r11, 1, 0, {flag}; st.global.u32 [%rd2+{2 * slot * n}], {word};",
            f"st.global.u32 [%rd2+{2 * slot * n + slot}], %r11;",
        ]
    return kernel([*lines, "ret;"], 6)


def check(cases: tuple[Case, ...], form: str, groups: str, block: int, grid: int = 3) -> None:
    """Launch, and compare each lane with the model of its group."""
    count = grid * block
    rng = random.Random(f"{form}{groups}{block}")
    b = rng.choices((0, 1, 2, 7, 15, 16, 31, 32, 33, 0xFFFFFFFF), k=count)
    c = rng.choices((0, 31, 0x1F, 0x101F, 0x181F, 0x1C1F, 0x1800, 0x1F1F, 0x180F, 0xFFFFFFFF),
                    k=count)  # fmt: skip
    values = [rng.choices(case.values, k=count) for case in cases]
    lane = [i % block % 32 for i in range(count)]
    warp = [i - i % block + i % block // 32 * 32 for i in range(count)]
    on = [GROUPS[groups](n) for n in lane]
    members: dict[tuple[int, int], list[int]] = {}
    for i in range(count):
        members.setdefault((warp[i], on[i]), []).append(i)
    masks = [mask(lane[j] for j in members[warp[i], on[i]]) for i in range(count)]
    inputs = [np.array(x, np.uint32) for x in (b, c, masks, on, values)]
    for machine in MACHINES:
        out, undefined = np.zeros((len(cases), 2, count), np.uint32), 0
        result = machine.launch(build(cases, form, count), grid, block, [*inputs, out])
        for number, case in enumerate(cases):
            wide = 1 << 32 if "%rd4" in case.code else 0
            for (_, group), threads in members.items():
                seen = {lane[i]: values[number][i] | (b[i] & 1) * wide for i in threads}
                for i in threads:
                    wanted: tuple[int | None, bool | None] = (77, True)
                    if group:
                        wanted = case.model(seen, lane[i], b[i], c[i])
                        undefined += wanted[0] is None and "{o}" in case.code
                    for want, got in zip(wanted, out[number, :, i].tolist(), strict=True):
                        assert want is None or want == got, (
                            case.name, machine.__name__, i, lane[i], seen, b[i], c[i],
                        )  # fmt: skip
        if machine is simulator:
            assert sum(h.count for h in result.hazards) == undefined


APART = tuple(CASES)
TOGETHER = APART[1:]  # where groups meet, activemask may name lanes of several


@pytest.mark.slow_but("drawn 0-7")
@pytest.mark.parametrize(
    ("groups", "block"),
    [(g, b) for g in GROUPS for b in (7, 45, 96) + (1, 32, 64) * (g in ("all", "drawn 0"))],
)
def test_groups(groups: str, block: int) -> None:
    form = "guard" if groups in ("some", "one") and block != 96 else "branch"
    check(APART if groups in ("all", "some", "one") else TOGETHER, form, groups, block)


@pytest.mark.slow_but("one")
@pytest.mark.parametrize("groups", GROUPS)
def test_groups_apart(groups: str) -> None:
    check(APART, "apart", groups, 70)


@pytest.mark.parametrize("form", ["guard", "branch"])
@pytest.mark.parametrize("groups", ["all", "some", "one"])
def test_active_mask(groups: str, form: str) -> None:
    check((ACTIVE,), form, groups, 45)


def test_uniform_operands() -> None:
    """All lanes hold the same: the simulator computes on one number."""
    lines = [
        f".reg .pred %p<8>, %q<{len(CASES)}>; .reg .b32 %r<16>, %o<{len(CASES)}>;",
        ".reg .b64 %rd<16>; mov.u32 %r4, 6; mov.u64 %rd4, 6; mov.u32 %r5, 3; mov.u32 %r6, 0x101f;",
        "setp.eq.u32 %p3, 1, 0; mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p0];",
        "mad.wide.u32 %rd1, %r0, 4, %rd1;",
    ]
    for n, case in enumerate(CASES):
        word, flag = results(n).values()
        code = case.code.replace("%r7", "0xffffffff").format(**results(n))
        lines += [
            f"mov.u32 {word}, 77; setp.eq.u32 {flag}, 1, 1; {code} selp.u32 %r11, 1, 0, {flag};",
            f"st.global.u32 [%rd1+{512 * n}], {word}; st.global.u32 [%rd1+{512 * n + 256}], %r11;",
        ]
    for machine in MACHINES:
        out = np.zeros((len(CASES), 2, 64), np.uint32)
        machine.launch(kernel([*lines, "ret;"], 1), 1, 64, [out])
        for n, case in enumerate(CASES):
            for thread in range(64):
                wanted = case.model(dict.fromkeys(range(32), 6), thread % 32, 3, 0x101F)
                for want, got in zip(wanted, out[n, :, thread].tolist(), strict=True):
                    assert want is None or want == got, (case.name, thread, machine.__name__)
