"""Instructions across a warp: full and partial warps, divided by a branch, on Python lists."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from .lanes import HEADER, launch, mask, opcodes, to_signed

FULL = mask(32)


@dataclass(frozen=True)
class Warp:
    """What an instruction sees: each lane's operands, and the lanes that run it."""

    a: list[int]
    b: list[int]
    active: int

    @property
    def lanes(self) -> list[int]:
        return [i for i in range(32) if self.active >> i & 1]


Model = Callable[[Warp, int], tuple[int, int]]
"""Of a warp and a lane: the word and the predicate that the lane gets."""


@dataclass(frozen=True)
class Across:
    """An instruction: ``%a`` and ``%b`` are sources, ``%m`` the mask of the lanes there.

    ``%o`` and ``%p`` are the results, ``%q`` is ``%a & 1`` as a predicate.
    """

    name: str
    text: str
    model: Model
    few: bool = False

    @property
    def statement(self) -> str:
        return self.text


def shuffle(mode: str, width: int, upper: int) -> Across:
    """``shfl`` by ``%b`` in segments of ``width`` lanes, clamped at ``upper``."""
    c = (32 - width) << 8 | upper

    def model(w: Warp, lane: int) -> tuple[int, int]:
        by = w.b[lane] & 31
        segment, clamp = c >> 8 & 31, c & 31
        last = (lane & segment) | (clamp & ~segment & 31)
        first = lane & segment
        if mode == "up":
            source, inside = lane - by, lane - by >= last
        elif mode == "down":
            source, inside = lane + by, lane + by <= last
        elif mode == "bfly":
            source, inside = lane ^ by, lane ^ by <= last
        else:
            source = first | (by & ~segment)
            inside = source <= last
        if not inside:
            source = lane
        # What a lane that is not there holds is undefined: such cases are not looked at.
        if not w.active >> source & 1:
            return -1, int(inside)
        return w.a[source], int(inside)

    text = f"shfl.sync.{mode}.b32 %o|%p, %a, %b, {c}, %m;"
    return Across(f"shfl.{mode} width {width} clamp {upper}", text, model)


def voted(mode: str) -> Across:
    def model(w: Warp, _: int) -> tuple[int, int]:
        votes = [w.a[i] & 1 for i in w.lanes]
        if mode == "ballot":
            return sum((w.a[i] & 1) << i for i in w.lanes), 0
        return 0, int({"all": all(votes), "any": any(votes), "uni": len(set(votes)) == 1}[mode])

    if mode == "ballot":
        return Across("vote.ballot", "vote.sync.ballot.b32 %o, %q, %m;", model)
    return Across(f"vote.{mode}", f"vote.sync.{mode}.pred %p, %q, %m;", model)


def denied(mode: str) -> Across:
    def model(w: Warp, _: int) -> tuple[int, int]:
        votes = [1 - (w.a[i] & 1) for i in w.lanes]
        return 0, int(all(votes) if mode == "all" else any(votes))

    return Across(f"vote.{mode} of !q", f"vote.sync.{mode}.pred %p, !%q, %m;", model)


def match_any(w: Warp, lane: int) -> tuple[int, int]:
    return sum(1 << i for i in w.lanes if w.a[i] == w.a[lane]), 0


def match_all(w: Warp, _: int) -> tuple[int, int]:
    agree = len({w.a[i] for i in w.lanes}) == 1
    return w.active if agree else 0, int(agree)


def match_wide(w: Warp, lane: int) -> tuple[int, int]:
    return sum(1 << i for i in w.lanes if (w.a[i], w.b[i]) == (w.a[lane], w.b[lane])), 0


def reduced(name: str, kind: str) -> Across:
    def model(w: Warp, _: int) -> tuple[int, int]:
        values = [to_signed(w.a[i], 32) if kind == "s32" else w.a[i] for i in w.lanes]
        result = values[0]
        for x in values[1:]:
            result = {
                "add": result + x, "min": min(result, x), "max": max(result, x),
                "and": result & x, "or": result | x, "xor": result ^ x,
            }[name]  # fmt: skip
        return result & FULL, 0

    return Across(f"redux.{name}.{kind}", f"redux.sync.{name}.{kind} %o, %a, %m;", model)


CASES = [
    *(
        shuffle(mode, width, upper)
        for width in (32, 16, 8, 4, 2, 1)
        for mode, upper in (("up", 0), ("down", 31), ("bfly", 31), ("idx", 31))
    ),
    *(shuffle(mode, 32, upper) for mode in ("down", "idx", "bfly") for upper in (0, 7, 20)),
    *(shuffle("up", width, upper) for width in (32, 8) for upper in (1, 3)),
    *map(voted, ("all", "any", "uni", "ballot")),
    *map(denied, ("all", "any")),
    Across("match.any.b32", "match.any.sync.b32 %o, %a, %m;", match_any, few=True),
    Across("match.all.b32", "match.all.sync.b32 %o|%p, %a, %m;", match_all, few=True),
    Across(
        "match.any.b64", "mov.b64 %d, {%a, %b}; match.any.sync.b64 %o, %d, %m;", match_wide,
        few=True,
    ),
    *(reduced(name, kind) for name in ("add", "min", "max") for kind in ("s32", "u32")),
    *(reduced(name, "b32") for name in ("and", "or", "xor")),
    Across("activemask", "activemask.b32 %o;", lambda w, _: (w.active, 0)),
    Across(
        "elect", "elect.sync _|%p, %m;", lambda w, lane: (0, int(lane == min(w.lanes)))
    ),
    Across("elect leader", "elect.sync %o|_, %m;", lambda w, _: (min(w.lanes), 0)),
]  # fmt: skip
COVERED = frozenset(opcode for case in CASES for opcode in opcodes(case.statement))


def ptx_of(case: Across) -> str:
    """Lanes of ``picked`` run the instruction in one branch, the others in another."""
    offset = "mul.wide.u32 %x, %i, 4;"
    loads = "".join(
        f"ld.param.u64 %y, [p{i}]; add.s64 %y, %y, %x; ld.global.u32 %{name}, [%y];\n"
        for i, name in enumerate(("a", "b", "m", "s"))
    )
    stores = "".join(
        f"ld.param.u64 %y, [p{i}]; add.s64 %y, %y, %x; st.global.u32 [%y], %{name};\n"
        for i, name in ((4, "o"), (5, "z"))
    )
    return f"""{HEADER}.visible .entry k({", ".join(f".param .u64 p{i}" for i in range(6))})
{{
.reg .b32 %a, %b, %m, %s, %o, %z, %i, %j, %n; .reg .b64 %x, %y, %d; .reg .pred %p, %q, %t;
mov.u32 %i, %tid.x; mov.u32 %j, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.s32 %i, %j, %n, %i;
{offset}
{loads}
mov.u32 %o, 0;
and.b32 %z, %a, 1; setp.eq.u32 %q, %z, 1; setp.ne.u32 %p, %z, %z; setp.eq.u32 %t, %s, 0;
@%t bra OTHERS;
{case.text}
bra DONE;
OTHERS:
{case.text}
DONE:
selp.u32 %z, 1, 0, %p;
{stores}
ret;
}}
"""


def warps(
    values: list[list[int]], picked: list[int], threads: int, block: int
) -> list[tuple[Warp, list[int]]]:
    """Each group of lanes that runs the instruction together, with its threads."""
    found = []
    for first in range(0, threads, block):
        for start in range(first, first + block, 32):
            here = list(range(start, min(start + 32, first + block)))
            for side in (0, 1):
                members = [t for t in here if picked[t] == side]
                if members:
                    active = sum(1 << (t - start) for t in members)
                    padded = [[v[t] for t in here] + [0] * (32 - len(here)) for v in values]
                    found.append((Warp(padded[0], padded[1], active), members))
    return found


@pytest.mark.parametrize("block", [32, 64, 45, 7, 1])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_warp(case: Across, block: int) -> None:
    grid = 6
    threads = grid * block
    rng = random.Random(f"{case.name}{block}")
    for divided in (False, True):
        pool = [rng.getrandbits(32) for _ in range(3 if case.few else 200)]
        values = [[rng.choice(pool) for _ in range(threads)] for _ in range(2)]
        if rng.random() < 0.5:  # some warps of one mind
            values[0][: block * 2] = [values[0][0]] * len(values[0][: block * 2])
        picked = [rng.getrandbits(1) if divided else 1 for _ in range(threads)]
        groups = warps(values, picked, threads, block)
        members = [0] * threads
        for warp, lanes in groups:
            for t in lanes:
                members[t] = warp.active
        out, flags = np.zeros(threads, np.uint32), np.zeros(threads, np.uint32)
        sources = [np.array(v, np.uint32) for v in (*values, members, picked)]
        launch(ptx_of(case), grid, block, [*sources, out, flags], checks="none")
        for warp, lanes in groups:
            for t in lanes:
                word, flag = case.model(warp, t % block % 32)
                assert int(flags[t]) == flag, (t, warp)
                assert word == -1 or int(out[t]) == word, (t, warp)
