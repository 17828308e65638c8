"""Values that live on from one basic block to another, whatever instruction wrote or reads them."""

import numpy as np
import pytest

import simulator
from kernels.errors import PtxError
from tests.support.launches import BUILDS, SCHEDULES, compiled, entry

HEAD = (
    ".shared .align 4 .u32 s[32];\nld.param.u64 %d0, [out]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;\n"
    "setp.lt.u32 %p1, %r0, %r1;\n"
)


def launched(
    body: str, n: int = 0, functions: str = "", schedule: str | int = "lockstep"
) -> list[int]:
    """What 32 threads write."""
    out = np.zeros(32, np.uint32)
    run = simulator.launch(entry(HEAD + body, before=functions), 1, 32, [out, n], schedule=schedule)
    assert run.hazards == []
    return out.tolist()


# -- the condition code ----------------------------------------------------------------

SET = {
    "add.cc": "add.cc.u32 %r2, 0xFFFFFFFF, %r0;",  # a carry from all but thread 0
    "sub.cc": "sub.cc.u32 %r2, 0, %r0;",  # a carry in thread 0: the others borrow
    "mad.lo.cc": "mad.lo.cc.u32 %r2, %r0, 1, 0xFFFFFFFF;",
    "mad.hi.cc": "mad.hi.cc.u32 %r2, 0, 0, 0; mad.lo.cc.u32 %r2, %r0, 1, 0xFFFFFFFF;",
    "addc.cc": "add.cc.u32 %r2, 0, 0; addc.cc.u32 %r2, 0xFFFFFFFF, %r0;",
    "subc.cc": "sub.cc.u32 %r2, 0, 0; subc.cc.u32 %r2, 0, %r0;",
    "madc.lo.cc": "add.cc.u32 %r2, 0, 0; madc.lo.cc.u32 %r2, %r0, 1, 0xFFFFFFFF;",
}
GET = {
    "addc": "addc.u32 %r3, 100, 0;",
    "addc.cc": "addc.cc.u32 %r3, 100, 0;",
    "subc": "subc.u32 %r3, 102, 0;",
    "madc.lo": "madc.lo.u32 %r3, 10, 10, 0;",
    "madc.hi": "madc.hi.u32 %r3, 0x80000000, 200, 0;",
}


@pytest.mark.parametrize("get", GET)
@pytest.mark.parametrize("set_", SET)
def test_a_carry_goes_on_into_the_next_block(set_: str, get: str) -> None:
    """Over a label that lanes come to by two ways; half of them change nothing in between."""
    body = f"{SET[set_]}\n@%p1 bra A;\nmov.u32 %r4, 1;\nA:\n{GET[get]}\nst.global.u32 [%d2], %r3;\n"
    carried = [(t == 0) if set_.startswith("sub") else (t > 0) for t in range(32)]
    expected = [(101 if get == "subc" else 100) + carry for carry in carried]
    assert launched(body + "ret;", 16) == expected


WAYS = {f"{s} {g}": f"{SET[s]}\n{GET[g]}" for s in SET for g in GET} | {
    "add": "add.u32 %r3, %r0, 1;",
    "call": "{ .param .b32 a, b; st.param.b32 [a], %r0; call (b), same, (a);\n"
    "ld.param.b32 %r3, [b]; }",
    "no way": "mul.lo.u32 %r7, %r0, 3; mov.u32 %r3, %r1;",
}

SAME = (
    ".func (.param .b32 res) same(.param .b32 x) {\n"
    ".reg .b32 %r; ld.param.u32 %r, [x]; st.param.b32 [res], %r; ret; }\n"
)


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_loaded_value_is_followed_to_the_branch_that_it_decides(way: str, loaded: bool) -> None:
    """Through the condition code, too; what is computed from the thread's number steers nothing."""
    body = WAYS[way].replace("%r0", "%r6")
    given = "ld.global.u32 %r6, [%d2];" if loaded else "mov.u32 %r6, %r0;"
    kernel = entry(
        f"{HEAD}{given}\n{body}\nsetp.eq.u32 %p2, %r3, 100;\n@%p2 bra A;\n"
        "st.global.u32 [%d2], 5; A:",
        before=SAME,
    )
    run = simulator.launch(kernel, 1, 32, [np.zeros(32, np.uint32), 0])
    assert (run.data_dependence is not None) == (loaded and way != "no way")


# -- calls ------------------------------------------------------------------------------

TWICE = """
.func (.param .b32 res) twice(.param .b32 x) {
.reg .pred %p; .reg .b32 %r<4>;
ld.param.u32 %r0, [x];
add.u32 %r1, %r0, %r0;
st.param.b32 [res], %r1;
setp.eq.u32 %p, %r0, 7;
@%p bra END;
st.param.b32 [res], %r1;
END: ret;
}
"""
CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; BEFORE\n" \
       "call (b), twice, (a); AFTER\nld.param.b32 %r3, [b]; }\n"  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("before", ["", "@%p1 bra A; mov.u32 %r5, 1; A:"])
@pytest.mark.parametrize("after", ["", "@%p1 bra B; mov.u32 %r5, 1; B:"])
def test_arguments_and_results_of_a_call_go_over_blocks(
    before: str, after: str, schedule: str | int
) -> None:
    body = CALL.replace("BEFORE", before).replace("AFTER", after) + "st.global.u32 [%d2], %r3; ret;"
    assert launched(body, 16, TWICE, schedule) == [2 * t for t in range(32)]


@pytest.mark.parametrize(
    "last",
    ["bar.sync 0;", "bar.sync 0; bar.sync 0;", "call g;", "@%p ret;", "@!%p ret;", "@%p bra TOP;",
     "bar.warp.sync -1;", "TOP2: @%p bra END; st.global.u32 [%d], 7; END:",
     "@!%p bra END; ret; END:", "{ }"],
)  # fmt: skip
def test_a_function_without_a_return_at_its_end_returns_there(last: str) -> None:
    """The caller goes on."""
    functions = f"""
.func g {{ bar.sync 0; }}
.func f(.param .b64 to) {{ .reg .b64 %d; .reg .pred %p;
TOP: ld.param.u64 %d, [to]; setp.eq.u64 %p, %d, 0;
st.global.u32 [%d], 7;
{last}
}}
"""
    body = (
        "{ .param .b64 a; st.param.b64 [a], %d2;\ncall f, (a); }\n"
        "ld.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; st.global.u32 [%d2], %r2;"
    )
    assert launched(body, 0, functions) == [8] * 32


@pytest.mark.parametrize("last", ["bar.sync 0;", "bar.warp.sync -1;", "call g;", "membar.cta;"])
def test_a_function_of_one_instruction(last: str) -> None:
    functions = f".func g {{ bar.sync 0; }}\n.func f {{ {last} }}\n"
    assert launched("call f;\nst.global.u32 [%d2], 5;", 0, functions) == [5] * 32


def test_functions_that_are_called_from_several_places_are_looked_at_once() -> None:
    """Each calls the next at two places: 2**26 ways lead to the last."""
    functions = ".func f26 { ret; }\n"
    for i in reversed(range(26)):
        functions += (
            f".func f{i} {{ .reg .pred %p; .reg .b32 %r; mov.u32 %r, %ntid.x;\n"
            f"setp.eq.u32 %p, %r, 9; @!%p bra A; call f{i + 1};\nA: call f{i + 1}; ret; }}\n"
        )
    assert launched("call f0;\nst.global.u32 [%d2], 5; ret;", 0, functions) == [5] * 32


def test_calls_that_nest_too_deep_are_refused_by_line() -> None:
    functions = ".func f101 { ret; }\n"
    for i in reversed(range(101)):
        functions += f".func f{i} {{ call f{i + 1}; ret; }}\n"
    with pytest.raises(PtxError, match=r"^calls nest deeper than 100: .*PTX line 6\b"):
        launched("call f0; ret;", 0, functions)
    shallow = functions.replace("{ call f101; ret; }", "{ ret; }")
    assert launched("call f1;\nst.global.u32 [%d2], 5; ret;", 0, shallow) == [5] * 32


# -- branches and warp instructions -----------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_index_of_a_jump_table_comes_from_an_earlier_block(schedule: str | int) -> None:
    body = (
        "and.b32 %r2, %r0, 3;\n@%p1 bra A;\nmov.u32 %r5, 1;\nA:\n"
        "WAYS: .branchtargets L0, L1, L2, L3;\nbrx.idx %r2, WAYS;\n"
        "L0: mov.u32 %r3, 10; bra E; L1: mov.u32 %r3, 11; bra E;\n"
        "L2: mov.u32 %r3, 12; bra E; L3: mov.u32 %r3, 13;\nE: st.global.u32 [%d2], %r3; ret;"
    )
    assert launched(body, 16, schedule=schedule) == [10 + t % 4 for t in range(32)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("kind", "result"), [("and", 0), ("or", 1), ("popc", 16)])
def test_what_a_reducing_barrier_gives_is_there_blocks_later(
    kind: str, result: int, schedule: str | int
) -> None:
    into = "%r2" if kind == "popc" else "%p2"
    body = (
        "mov.u32 %r2, 90; setp.eq.u32 %p2, %r0, %r0;\n"
        f"bar.red.{kind}.{'u32' if kind == 'popc' else 'pred'} {into}, 0, %p1;\n"
        "@%p1 bra A;\nmov.u32 %r5, 1;\nA:\n"
        + ("" if kind == "popc" else "selp.u32 %r2, 1, 0, %p2;\n")
        + "st.global.u32 [%d2], %r2; ret;"
    )
    assert launched(body, 16, schedule=schedule) == [result] * 32


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("barrier", ["bar", "barrier"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_flag_is_waited_for_through_a_reducing_barrier(
    waits: bool, barrier: str, schedule: str | int
) -> None:
    """One thread looks, and all go round until it has seen the flag; or they do not wait."""
    again = "@!%p2 bra AGAIN;" if waits else ""
    kernel = entry(
        f"{HEAD}mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r2, 0; @%p0 bra SET;\n"
        "setp.ne.u32 %p3, %r0, 0; mov.u32 %r3, 0;\n"
        "AGAIN: @%p3 bra MEET; ld.acquire.gpu.global.u32 %r3, [%d0+128];\n"
        f"MEET: setp.eq.u32 %p1, %r3, 1; {barrier}.red.or.pred %p2, 0, %p1; {again}\n"
        "ld.global.u32 %r4, [%d2]; add.u32 %r4, %r4, 1; st.global.u32 [%d2+256], %r4; ret;\n"
        "SET: st.global.u32 [%d2], %r0; bar.sync 0; setp.ne.u32 %p3, %r0, 0;\n"
        "@%p3 bra END; st.release.gpu.global.u32 [%d0+128], 1; END:"
    )
    out = np.zeros(96, np.uint32)
    run = simulator.launch(kernel, 2, 32, [out, 0], schedule=schedule)
    assert {hazard.kind for hazard in run.hazards if hazard.severity == "error"} <= (
        set() if waits else {"raw-race", "war-race"}
    )
    if waits:
        assert run.hazards == []
        assert out[64:].tolist() == [t + 1 for t in range(32)]
    else:
        assert run.hazards


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("meet", ["shfl", "vote", "bar.warp"])
def test_lanes_meet_in_the_middle_of_a_run_of_instructions(meet: str, schedule: str | int) -> None:
    """Some come later, by a loop of their own; what the others do before is no reason to go on."""
    how = {
        "shfl": "shfl.sync.bfly.b32 %r4, %r3, 31, 31, -1;",
        "vote": "setp.ge.u32 %p2, %r3, 100; vote.sync.ballot.b32 %r4, %p2, -1;",
        "bar.warp": "st.volatile.shared.u32 [%d4], %r3; bar.warp.sync -1;\n"
        "ld.volatile.shared.u32 %r4, [%d5];",
    }[meet]
    body = (
        "mov.u64 %d3, s; add.u64 %d4, %d3, %d1; sub.u64 %d5, %d3, %d1;\nadd.u64 %d5, %d5, 124;\n"
        "mov.u32 %r2, %r0; @%p1 bra B;\nLOOP: sub.u32 %r2, %r2, 1; setp.ne.u32 %p3, %r2, 0;\n"
        "@%p3 bra LOOP;\nmov.u32 %r2, %r0;\n"
        f"B: add.u32 %r3, %r2, 100;\n{how}\nst.global.u32 [%d2], %r4; ret;"
    )
    expected = [0xFFFFFFFF] * 32 if meet == "vote" else [131 - t for t in range(32)]
    assert launched(body, 16, schedule=schedule) == expected


def test_a_label_that_is_not_there_is_named() -> None:
    with pytest.raises(PtxError, match="no label 'NOWHERE' in k"):
        launched("bra NOWHERE;\nret;")


# -- labels and names of nested scopes ----------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_branch_in_a_nested_scope_means_the_label_of_that_scope(schedule: str | int) -> None:
    """Wherever the label stands in it, and whatever else has its name."""
    body = """
mov.u32 %r3, 0;
{ @%p1 bra A; add.u32 %r3, %r3, 1; A: add.u32 %r3, %r3, 10;
  { @%p1 bra A; add.u32 %r3, %r3, 100; A: add.u32 %r3, %r3, 1000; }
  bra B; add.u32 %r3, %r3, 500; B: }
{ .reg .b32 %r3; mov.u32 %r3, 0;
  A: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra A;
  mov.u32 %r4, %r3; @%p1 bra OUT; }
A: add.u32 %r4, %r4, 20000;
OUT: add.u32 %r3, %r3, %r4; st.global.u32 [%d2], %r3; ret;
"""
    assert launched(body, 16, schedule=schedule) == [1014] * 16 + [21115] * 16


def test_a_jump_table_in_a_nested_scope() -> None:
    body = """
{ and.b32 %r2, %r0, 1; WAYS: .branchtargets A, B; brx.idx %r2, WAYS;
  A: mov.u32 %r3, 10; bra E; B: mov.u32 %r3, 11; E: st.global.u32 [%d2], %r3; }
A: ret;
"""
    assert launched(body) == [10 + t % 2 for t in range(32)]


@pytest.mark.parametrize(
    "body", ["{ A: A: ret; }", "{ .reg .b32 A; A: ret; }", "{ A: .reg .b32 A; ret; }", "A: A: ret;"]
)
def test_a_name_is_declared_once_in_a_scope(body: str) -> None:
    with pytest.raises(PtxError, match="'A' is declared twice"):
        launched(body)


@pytest.mark.parametrize("build", BUILDS)
def test_inline_assembly_that_waits(build: str) -> None:
    """A loop with its way out in front of the label, in a function that is used twice."""
    source = """
__device__ int count(int n) {
    int i;
    asm volatile("{ .reg .pred P; mov.u32 %0, 0;\\n AGAIN: setp.ge.s32 P, %0, %1;\\n"
                 "@P bra DONE;\\n add.s32 %0, %0, 1; bra AGAIN;\\n DONE: }" : "=&r"(i) : "r"(n));
    return i;
}
__global__ void k(int* out, int n) { out[threadIdx.x] = 100 * count(threadIdx.x % 3) + count(n); }
"""
    out = np.zeros(32, np.int32)
    run = simulator.launch(compiled(source, "k", build), 1, 32, [out, 5])
    assert run.hazards == []
    assert out.tolist() == [100 * (t % 3) + 5 for t in range(32)]
