"""Copies of one warp instruction: lanes meet at them by qualifiers and mask (PTX ISA, "shfl.sync").

A compiler may make copies where branches diverge. What lanes get is what they would of one copy:
each program here is held against its twin that has one, whose lanes part before and after it. An
H200 gives what is expected here, and hangs or gives an exited lane's zeros in ``APART``.
"""

from collections.abc import Callable

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.oracles import interpreter
from tests.support.launches import BUILDS, SCHEDULES, compiled, entry

OPERATIONS = {
    "bfly": "shfl.sync.bfly.b32 %r6, %r5, 1, 31, MASK;",
    "up": "shfl.sync.up.b32 %r6|%q, %r5, 3, 0x1000, MASK; @!%q mov.b32 %r6, %r0;",
    "constant": "shfl.sync.idx.b32 %r6, 77, 2, 0x1c1f, MASK; add.u32 %r6, %r6, %r5;",
    "ballot": "and.b32 %r6, %r5, 2; setp.ne.u32 %q, %r6, 0; vote.sync.ballot.b32 %r6, %q, MASK;",
    "all": "setp.gt.u32 %q, %r5, 30; vote.sync.all.pred %q, %q, MASK; selp.u32 %r6, 7, %r5, %q;",
    "uni": "setp.gt.u32 %q, %r5, 5; vote.sync.uni.pred %q, !%q, MASK; selp.u32 %r6, %r5, 8, %q;",
    "match": "match.any.sync.b32 %r6, %r8, MASK;",
    "match64": "mov.b64 %d3, {%r8, %r5}; match.all.sync.b64 %r6|%q, %d3, MASK; @%q not.b32 %r6, 1;",
    "redux": "redux.sync.add.s32 %r6, %r5, MASK;",
    "max": "redux.sync.max.u32 %r6, %r5, MASK;",
    "elect": "elect.sync %r6|%q, MASK; @%q add.u32 %r6, %r5, 9;",
    "barrier": "st.shared.u32 [%r10], %r5; bar.warp.sync MASK; ld.shared.u32 %r6, [%r11];"
               "bar.warp.sync MASK;",
}  # fmt: skip
WAYS = (
    ("", "xor.b32 %r6, %r6, 10000;"),
    ("add.u32 %r5, %r5, 500;", "red.global.add.u32 [%d2], %r6;"),
    ("mul.lo.u32 %r5, %r5, 3;", "not.b32 %r6, %r6;"),
)
"""Before and after: in each of the branches."""
HEAD = """
.shared .align 4 .u32 s[96]; .reg .b32 %way, %round;
ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
mad.lo.u32 %r5, %r0, 10, 7; shr.u32 %r8, %r0, 3; mov.u32 %round, 0; mov.u32 %r10, s;
mad.lo.u32 %r10, %r0, 4, %r10; xor.b32 %r11, %r10, 4;
ways: .branchtargets P0, P1, P2; afters: .branchtargets A0, A1, A2;
"""
CASES = {  # the mask, and what comes first
    "whole warps": ("0xffffffff", ""),
    "others left": ("0xffffffff", "setp.ge.u32 %q, %r0, 72; @%q exit;"),
    "some lanes": ("0xffff", "and.b32 %r9, %r0, 16; setp.ne.u32 %q, %r9, 0; @%q bra END;"),
    "halves": ("%r12", "and.b32 %r9, %r0, 16; mov.b32 %r12, 0xffff; shl.b32 %r12, %r12, %r9;"),
}  # fmt: skip
DIVIDED: dict[str, str] = {  # by which the lanes part, once a round
    "lanes": "rem.u32 %way, %r0, 3;",
    "rounds": "add.u32 %way, %r0, %round; rem.u32 %way, %way, 3;",  # each takes each copy once
    "warps": "shr.u32 %way, %r0, 5; rem.u32 %way, %way, 3;",
    "two": "and.b32 %way, %r0, 1;",
}


DRAWN = [
    (operation, case, list(DIVIDED)[(i + j) % len(DIVIDED)])
    for i, operation in enumerate(OPERATIONS)
    for j, case in enumerate(CASES)
]


def program(operation: str, case: str, divided: str, copies: bool) -> Kernel:
    """Lanes part, execute an operation at ``copies`` of it or together, and so on, three times."""
    mask, first = CASES[case]
    met = OPERATIONS[operation].replace("MASK", mask)
    again = f"{met}\nbrx.idx %way, afters;\n"
    before = "".join(
        f"P{i}: {way}\n{met if copies else ''} bra {f'A{i}' if copies else 'MEET'};\n"
        for i, (way, _) in enumerate(WAYS)
    )
    after = "".join(f"A{i}: {way}\nbra JOIN;\n" for i, (_, way) in enumerate(WAYS))
    return entry(
        f"{HEAD}{first}\nTOP: {DIVIDED[divided]}\nbrx.idx %way, ways;\n{before}MEET: {again}{after}"
        "JOIN: add.u32 %r5, %r6, %r0; add.u32 %round, %round, 1;\n"
        "setp.lt.u32 %p, %round, 3; @%p bra TOP;\nst.global.u32 [%d2+512], %r5;\nEND:"
    )


def simulated(kernel: Kernel, threads: int, schedule: str | int) -> tuple[list[int], list[str]]:
    out = np.zeros(256, np.uint32)
    run = simulator.launch(kernel, 1, threads, [out, 0], schedule=schedule)
    return out.tolist(), [str(hazard).splitlines()[0] for hazard in run.hazards]


def interpreted(kernel: Kernel, threads: int) -> list[int]:
    args = [bytearray(1024), bytes(4)]
    (out,) = interpreter.run(kernel.ptx, "k", (1,), (threads,), args, order=1)
    found: list[int] = np.frombuffer(out, np.uint32).tolist()
    return found


@pytest.mark.slow_cases(
    "barrier-halves-warps", "barrier-others left-lanes", "barrier-some lanes-rounds",
    "barrier-whole warps-two", "elect-halves-rounds", "match-halves-rounds",
    "match-some lanes-lanes", "match64-others left-lanes", "match64-some lanes-rounds",
    "max-halves-lanes", "redux-others left-rounds", "uni-halves-lanes", "up-halves-lanes",
)  # fmt: skip
@pytest.mark.parametrize(("operation", "case", "divided"), DRAWN)
def test_lanes_meet_at_copies(operation: str, case: str, divided: str) -> None:
    one, several = (program(operation, case, divided, copies) for copies in (False, True))
    expected = simulated(one, 80, "lockstep")
    assert expected[1] == []
    assert interpreted(several, 80) == expected[0]
    for schedule in SCHEDULES:
        assert simulated(several, 80, schedule) == expected, schedule


@pytest.mark.parametrize("operation", ["bfly", "ballot", "match", "redux", "barrier"])
def test_guards_choose_between_two_copies(operation: str) -> None:
    """A lane whose guard is false does not come to an instruction: it comes to the next."""
    load = ""
    *before, last = OPERATIONS[operation].replace("MASK", "-1").rstrip(";").rsplit(";", 1)
    if operation == "barrier":
        before, last = ["st.shared.u32 [%r10], %r5"], "bar.warp.sync -1"
        load = "ld.shared.u32 %r6, [%r11];"
    both = f"@%p {last}; mov.u32 %r7, %r0; @!%p {last}"
    kernels = [
        entry(f"{HEAD}and.b32 %r9, %r0, 1; setp.eq.u32 %p, %r9, 0; {';'.join([*before, way])};\n"
              f"{load} st.global.u32 [%d2], %r6;")
        for way in (last, both)
    ]  # fmt: skip
    expected = simulated(kernels[0], 64, "lockstep")
    assert expected[1] == []
    assert interpreted(kernels[1], 64) == expected[0]
    for schedule in SCHEDULES:
        assert simulated(kernels[1], 64, schedule) == expected, schedule


TWO = (
    "{head} and.b32 %r9, %r0, 1; setp.eq.u32 %p, %r9, 0; @%p bra B;\n{one} bra E;\nB: add.u32 %r5,"
    " %r5, 1; {two}\nE: st.global.u32 [%d2], %r6;"
)
EVEN, ODD, ALL = "0x55555555", "0xaaaaaaaa", "-1"
APART: dict[str, tuple[str, str, str, str, str]] = {  # instructions, masks, and what is told
    "other qualifiers": ("bfly", ALL, "constant", ALL, "bad-mask"),
    "other operation": ("redux", ALL, "max", ALL, "bad-mask"),
    "other instruction": ("ballot", ALL, "match", ALL, "bad-mask"),
    "a barrier": ("redux", ALL, "barrier", ALL, "bad-mask"),
    "other mask, that leaves out": ("redux", "0xfff", "redux", ALL, "bad-mask"),
    "left out": ("match", EVEN, "match", EVEN, "bad-mask"),
    "each alone": ("redux", ODD, "redux", EVEN, ""),
    "one waits for the other's exit": ("ballot", ALL, "ballot", EVEN, ""),
    "reads who has left": ("bfly", ALL, "bfly", EVEN, "uninitialised"),
    "reads who is not named": ("bfly", ODD, "bfly", EVEN, "uninitialised"),
}


@pytest.mark.parametrize("name", APART)
def test_lanes_that_do_not_meet(name: str) -> None:
    one, first, two, second, told = APART[name]
    body = TWO.format(
        head=HEAD, one=OPERATIONS[one].replace("MASK", first),
        two=OPERATIONS[two].replace("MASK", second),
    )  # fmt: skip
    for schedule in SCHEDULES:
        run = simulator.launch(entry(body), 1, 32, [np.zeros(32, np.uint32), 0], schedule=schedule)
        kinds = {hazard.kind for hazard in run.hazards}
        assert told in kinds if told else not kinds, (schedule, kinds)
    fails: Callable[[], object] = lambda: interpreted(entry(body), 32)  # noqa: E731
    if told:
        with pytest.raises((interpreter.Deadlock, interpreter.NotModelled)):
            fails()
    else:
        fails()


def test_an_aligned_instruction_has_one_place() -> None:
    """``mma.sync.aligned`` at two places is undefined (PTX ISA); an H200 hangs at JIT level 0."""
    mma = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2},{%fd0},{%fd0},{%fd0,%fd0};"
    more = "cvt.rzi.u32.f64 %r6, %fd1;"
    body = TWO.format(head=f"{HEAD}mov.f64 %fd0, 0d3FF0000000000000;", one=mma + more,
                      two=mma + more)  # fmt: skip
    for schedule in SCHEDULES:
        assert "which does not execute this" in simulated(entry(body), 32, schedule)[1][0]


UNWRITTEN = """\
.local .b32 box[2]; and.b32 %r9, %r0, 1; setp.eq.u32 %p, %r9, 0; @%p bra B;
ld.local.u32 %r5, [box]; shfl.sync.idx.b32 %r6, %r5, {odd}, 31, -1; bra E;
B: shfl.sync.idx.b32 %r6, 5, {even}, 31, -1;
E: st.global.u32 [%d2], %r6;"""


@pytest.mark.parametrize(
    ("odd", "even", "told"), [(1, 0, True), (0, 1, True), (0, 0, False), (3, 5, True)]
)
def test_what_nothing_wrote_goes_from_copy_to_copy(odd: int, even: int, told: bool) -> None:
    """Odd lanes bring what they never wrote, the others a constant; who reads from whom counts."""
    kernel = entry(HEAD + UNWRITTEN.format(odd=odd, even=even))
    run = simulator.launch(kernel, 1, 32, [np.zeros(32, np.uint32), 0])
    assert {hazard.kind for hazard in run.hazards} == ({"uninitialised"} if told else set())


UNSWITCHED = """(int* out, const int* in, long long c, int n) {
    long long loc[8], l = in[threadIdx.x + 9], w = in[threadIdx.x + 5];
    int t = threadIdx.x, i = in[t + 4];
    unsigned u = in[t + 7];
    for (int j = 0; j < 8; ++j) loc[j] = in[t + j];
    for (int k = 0; k < 3; ++k) {
        switch ((unsigned)loc[7] % 3) {
            case 0: l = (n - i) * ((w == u ? c : -4294967296ll) - (l + c));
        }
        i = WHAT;
    }
    if (t < 60) out[t] = (int)(l % 1000003) + i;
}"""
WHATS = {
    "shuffle": "__shfl_sync(~0u, (int)loc[u & 7], 1, 2)",
    "ballot": "__ballot_sync(~0u, (int)loc[u & 7] & 1)",
    "match": "__match_any_sync(~0u, (int)loc[u & 7])",
    "sum": "__reduce_add_sync(~0u, (int)loc[u & 7])",
}


@pytest.mark.slow_but("shuffle")
@pytest.mark.parametrize("what", WHATS)
def test_a_loop_that_nvrtc_takes_apart(what: str) -> None:
    """The device build moves the divergent ``switch`` out of the loop, and has six copies."""
    kernels = [compiled(UNSWITCHED.replace("WHAT", WHATS[what]), "k", build) for build in BUILDS]
    assert kernels[0].ptx.count(".sync.") == 6, "NVRTC does not do it: find a loop that it does"
    found = set()
    for kernel in kernels:
        for schedule in SCHEDULES:
            args = [np.zeros(64, np.int32), np.arange(80, dtype=np.int32) * 7919 % 97, 12345, 777]
            run = simulator.launch(kernel, 1, 64, args, schedule=schedule)
            assert run.hazards == []
            found.add(args[0].tobytes())
    assert len(found) == 1
