"""What changes of the simulator, made by hand, once went unnoticed."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import entry

HEAD = """\
.shared .align 8 .b8 s[128];
ld.param.u64 %d0, [out]; ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
mov.u64 %d3, s; add.u64 %d4, %d3, %d1;
setp.lt.u32 %p, %r0, %r1;
"""


def kernel(body: str) -> Kernel:
    return entry(f"{HEAD}{body}\nst.global.u32 [%d2], %r2;")


@pytest.mark.parametrize("guard", ["", "@!%q "])
@pytest.mark.parametrize("back", [4, 8, 64])
def test_before_the_first_byte_of_shared_memory(guard: str, back: int) -> None:
    """The constant part of an address can bring it below zero, for all lanes or for some."""
    body = (
        "setp.gt.u32 %q, %r0, 99; st.shared.u32 [%d4], %r0; bar.sync 0;\n"
        f"{guard}ld.shared.u32 %r2, [%d4+-{back}];"
    )
    out = np.zeros(16, np.uint32)
    run = simulator.launch(kernel(body), 1, 16, [out, 0], checks={"memory"})
    (hazard,) = run.hazards
    assert hazard.kind == "out-of-bounds"
    assert hazard.space == "shared"
    reach = back // 4
    assert out[:reach].tolist() == [0xFFFFFFFF] * min(reach, 16)
    assert out[reach:].tolist() == list(range(16 - min(reach, 16)))


def test_the_first_byte_of_shared_memory() -> None:
    body = "st.shared.u32 [%d4], %r0; bar.sync 0;\nld.shared.u32 %r2, [s];"
    out = np.ones(16, np.uint32)
    assert simulator.launch(kernel(body), 1, 16, [out, 0]).hazards == []
    assert not out.any()


@pytest.mark.parametrize("rest", ["", ".shared .b8 rest[128];\n"])
@pytest.mark.parametrize("first", [32, 0])
def test_a_verdict_about_an_interval_depends_on_what_came_before(first: int, rest: str) -> None:
    """The same accesses between barriers, once after the writes and once without them.

    Where all of shared memory is written, and where some of it (``rest``) never is.
    """
    used = "mov.u64 %d5, rest;" if rest else ""
    body = "@%p st.shared.u32 [%d4], %r0;\nbar.sync 0;\nld.shared.u32 %r2, [%d4];\nbar.sync 0;"
    k = kernel(f"{rest}{body}{used}")
    for n in (first, 32 - first, first):
        run = simulator.launch(k, 1, 32, [np.zeros(32, np.uint32), n])
        kinds = [hazard.kind for hazard in run.hazards]
        assert kinds == ([] if n else ["uninitialised"])


@pytest.mark.parametrize("n", [0, 5, 32])
def test_a_guarded_write_leaves_the_other_lanes_their_value(n: int) -> None:
    """A register that is written under a guard in the next block lives on until then."""
    body = "mov.u32 %r2, 7;\nbra.uni NEXT;\nNEXT: @%p mov.u32 %r2, 1;\nbra.uni LAST;\nLAST:"
    out = np.zeros(32, np.uint32)
    simulator.launch(kernel(body), 1, 32, [out, n])
    assert out.tolist() == [1] * n + [7] * (32 - n)


def test_a_guarded_load_leaves_the_other_lanes_their_value() -> None:
    body = (
        "mov.u32 %r2, 7; st.shared.u32 [%d4], %r0; bar.sync 0;\n"
        "@%p ld.shared.u32 %r2, [%d4];\nbar.sync 0;"
    )
    out = np.zeros(32, np.uint32)
    simulator.launch(kernel(body), 1, 32, [out, 5])
    assert out.tolist() == [0, 1, 2, 3, 4] + [7] * 27


GUARDED = {
    "ld.param.u32 %r2, [n];": lambda n: n,
    "cvta.shared.u64 %d5, %d3;": None,
    "cvta.to.shared.u64 %d5, %d6;": lambda n: 0,
    "isspacep.shared %q, %d6;": lambda n: 1,
    "mov.b64 %d5, {%r1, %r0};": lambda n: n,
    "mov.b64 {%r2, %r3}, %d7;": lambda n: 3,
    "ld.shared.v2.u32 {%r2, %r3}, [s];": lambda n: 11,
    "atom.shared.add.u32 %r2, [s], 0;": lambda n: 11,
    "popc.b32 %r2, -1;": lambda n: 32,
    "setp.eq.u32 %q|%p, 1, 1;": lambda n: 1,
}


@pytest.mark.parametrize("n", [0, 5, 32])
@pytest.mark.parametrize("ins", GUARDED)
def test_a_guard_holds_for_every_way_to_write_a_register(ins: str, n: int) -> None:
    """Into ``%r2``, ``%d5`` or ``%q``; the other lanes keep their 7."""
    body = f"""\
mov.u32 %r2, 7; mov.u64 %d5, 7; setp.ne.u32 %q, 0, 0; cvta.shared.u64 %d6, %d3;
mov.u64 %d7, 3; st.shared.u32 [%d4], 11; bar.sync 0;
@%p {ins}
"""
    if "%d5" in ins:
        body += "cvt.u32.u64 %r2, %d5;"
    elif "%q" in ins:
        body += "selp.u32 %r2, 1, 7, %q;"
    out = np.zeros(32, np.uint32)
    simulator.launch(kernel(body), 1, 32, [out, n])
    value = GUARDED[ins]
    if value is None:  # some address, the same for all
        assert len(set(out[:n].tolist())) <= 1
        assert 7 not in out[:n]
        assert out[n:].tolist() == [7] * (32 - n)
    else:
        assert out.tolist() == [value(n)] * n + [7] * (32 - n)


@pytest.mark.parametrize("kind", ["u64", "v2.u32"])
def test_every_word_of_a_wide_read_has_to_be_written(kind: str) -> None:
    """The word before it is, the one after it is not."""
    into, upper = ("{%r2, %r3}", "") if kind[0] == "v" else ("%d5", "mov.b64 {%r2, %r3}, %d5;")
    body = (
        "setp.eq.u32 %q, %r0, 0;\n"
        "@%q st.shared.u32 [s+12], %r0; @%q st.shared.u32 [s+16], %r0;\n"
        f"@%q ld.shared.{kind} {into}, [s+16]; {upper} mov.u32 %r2, %r3;"
    )
    run = simulator.launch(kernel(body), 1, 8, [np.zeros(8, np.uint32), 0])
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.count) == ("uninitialised", 1)
