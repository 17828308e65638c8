"""A few programs of each net; ``python -m tests.fuzz`` runs them for longer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kernels.ptx.module import Instruction
from simulator.execute.progress import lane_compaction
from simulator.isa import TABLE, Op
from tests.fuzz import claims, compare, cuda, ptx, unset
from tests.fuzz.__main__ import told
from tests.fuzz.bites import __main__ as bites
from tests.fuzz.bites import defects
from tests.fuzz.bites.draw import drawn
from tests.fuzz.cuda_program import draw as draw_cuda
from tests.fuzz.ptx_statements import draw as draw_ptx
from tests.fuzz.report import Difference, Report
from tests.fuzz.tree import Statement
from tests.oracles import interpreter
from tests.support.launches import drawn_later

pytestmark = pytest.mark.usefixtures("checked_writes", "picked_out")


@pytest.fixture
def picked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes of small batches, too, are picked out, as in ``python -m tests.fuzz``."""
    for limit, value in (("LEAST", 0), ("SHORT", 0), ("SHARE", 1)):
        monkeypatch.setattr(lane_compaction, limit, value)


@pytest.mark.slow_but("[45]")
@pytest.mark.parametrize("seeds", [range(10), [45], *drawn_later([range(10, 31)])], ids=str)
def test_random_ptx(seeds: Sequence[int]) -> None:
    """(45: lanes of a warp that come to one place in turns.)"""
    for seed in seeds:
        launch = draw_ptx(seed, small=True).launch()
        assert compare.difference(launch, (compare.SCHEDULES[seed % 4],)) is None, seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 6, 3))
def test_random_cuda(first: int) -> None:
    for seed in range(first, first + 3):
        program = draw_cuda(seed, small=True)
        for build in cuda.BUILDS:
            launch = program.launch(build)
            assert compare.difference(launch, (compare.SCHEDULES[seed % 4],)) is None, (seed, build)


@pytest.mark.slow_but("range(1, 6)")
@pytest.mark.parametrize(
    "seeds", [range(1, 6), [19, 306174, 1730000004], *drawn_later([range(6, 31)])], ids=str
)
def test_random_copies_of_what_nothing_wrote(seeds: Sequence[int]) -> None:
    """(19: a guard is a use; 1730000004: what is undefined decides where another read goes.

    306174: untyped bytes with what may be padding, beside a use.)
    """
    for seed in seeds:
        assert unset.wrong(unset.draw(seed)) is None, seed


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("seed", [1, 2, *drawn_later([3, 4, 5, 6])])
def test_random_claims(seed: int) -> None:
    assert claims.wrong(claims.draw(seed)) is None


@pytest.mark.slow
def test_a_difference_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose remainder is its dividend."""
    (row,) = TABLE["rem"]

    def wrong(ins: Instruction) -> Op:
        op = build(ins)
        return Op(lambda a, b: a, op.inputs, op.outputs)

    assert row.build
    build = row.build
    monkeypatch.setitem(TABLE, "rem", (replace(row, build=wrong),))
    program = draw_ptx(3, small=True)
    program.functions = [[], []]
    program.body = [
        Statement("add.u32 %r3, %r3, 5;"),
        Statement("@%p0 bra L{id};\n{0}\nL{id}:", [[Statement("not.b32 %r4, %r4;")]]),
        Statement("rem.u32 %r1, %t0, 5;"),
    ]
    said = ptx.wrong(program)
    assert said
    text = ptx.shrunk(program, said)
    assert "rem.u32 %r1, %t0, 5;" in text
    assert "add.u32 %r3" not in text
    assert "not.b32 %r4" not in text


def test_what_a_net_says() -> None:
    report = Report(programs=2, launches=8, known={"rows": {"add", "sub"}})
    report.reach("rows", "add")
    report.differences.append(Difference(7, "lockstep: other", "the program"))
    text = told("ptx", report, 1)
    assert "rows never reached: sub" in text
    assert "DIFFERENCE, seed 7: lockstep: other" in text
    assert "| the program" in text


def test_the_interpreter_knows_a_deadlock() -> None:
    body = "@%p bar.sync 0;\nbar.sync 1;"
    with pytest.raises(interpreter.Deadlock):
        interpreter.run(kernel(body), "k", (1,), (64,), [])


def test_the_interpreter_refuses_what_is_approximate() -> None:
    with pytest.raises(interpreter.NotModelled):
        interpreter.run(kernel("ex2.approx.f32 %f, %f;"), "k", (1,), (1,), [])


def kernel(body: str) -> str:
    return (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
        ".reg .pred %p; .reg .f32 %f; .reg .b32 %r;\nmov.u32 %r, %tid.x;\n"
        f"setp.lt.u32 %p, %r, 32;\n{body}\nret;\n}}\n"
    )


def test_every_bite_fits_the_files() -> None:
    """Each patch finds the piece that it replaces exactly once, and leaves valid Python."""
    for bite in defects.BITES:
        for file, text in bites.patched(bite).items():
            compile(text, file, "exec")


@pytest.mark.slow
def test_a_seed_draws_the_same_mutants_again() -> None:
    pytest.importorskip("mutmut")
    first, again, other = (
        [
            bite.changes
            for bite in drawn(
                "simulator/memory/atomics.py", 5, seed, "tests/simulator/memory/test_atomics.py"
            )
        ]
        for seed in (3, 3, 4)
    )
    assert len(first) == 5
    assert first == again != other
    for [(_, old, new)] in first:
        assert old != new
        compile(new, "mutant", "exec")
