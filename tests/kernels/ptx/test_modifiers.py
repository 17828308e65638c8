"""The rows' forms against ptxas, on a drawn sample (``python -m tests.fuzz --net modifiers``)."""

import re

import pytest

from simulator.isa import TABLE
from simulator.isa.grammar import Match, Misfit, find, form
from tests.fuzz import modifiers, ptxas

CONSTANTS = ("1", "-1", "0f3F800000")
needs_ptxas = pytest.mark.skipif(ptxas.path() is None, reason="the wheel nvidia-cuda-nvcc")


@needs_ptxas
def test_numbers_of_arrivals() -> None:
    """Which constants may stand for one, as ptxas has it."""
    drawn = [
        ("mbarrier", (*opcode.split("."), where, "b64"), ("%b64_1", "[sv]", number))
        for opcode in ("arrive", "arrive_drop", "arrive.noComplete", "arrive.expect_tx")
        for where in ("shared", "shared::cta")
        for number in ("1", "0", "-1", "0xFFFFFFFF", "0xFFFFFFFFFFFFFFFF", "WARP_SZ", "%b32_1")
    ]
    drawn += [
        ("mbarrier", (*opcode.split("."), "shared", "b64"), ("%pred_1", "[sv]", *rest))
        for rest in (["gv+4"], ["5"], ["%b64_1", "gv+4"], ["gv+4", "%b32_1"])
        for opcode in ("test_wait", "try_wait", "test_wait.parity", "try_wait.parity")
    ] + [("mbarrier", ("pending_count", "b64"), ("%b32_1", state)) for state in ("gv+4", "5")]
    modifiers.assert_agrees(drawn, "sm_90")


@needs_ptxas
def test_whole_numbers_of_copies_in_bulk() -> None:
    """Registers for masks of blocks and offsets of images, as ptxas has them."""
    start = ("async", "bulk")
    where = ("shared::cluster", "global", "mbarrier::complete_tx::bytes")
    to, box = ("[%b64_1]", "[%b64_2, {%b32_1, %b32_1, %b32_1}]"), "[%b64_3]"
    drawn = [
        one
        for register in ("%b16_1", "%f16_1", "%b32_1", "7")
        for one in (
            ("cp", (*start, *where, "multicast::cluster"),
             (to[0], "[%b64_2]", "16", box, register)),
            ("cp", (*start, "tensor", "3d", *where, "im2col"), (*to, box, f"{{{register}}}")),
            ("cp", (*start, "tensor", "3d", *where, "multicast::cluster"), (*to, box, register)),
        )
    ]  # fmt: skip
    modifiers.assert_agrees(drawn, "sm_90")


@needs_ptxas
def test_registers_of_vectors_that_are_sent() -> None:
    """Those of ``st.async`` have the elements' size, of a plain ``st`` they may be wider.

    One vector's are of one size, and no floats stand among integers.
    """
    names = [f"%{type}_1" for type in ("b16", "b32", "s32", "f32", "b64", "u64", "f64")]
    sent = ("async", "shared::cluster", "mbarrier::complete_tx::bytes")
    drawn = [
        ("st", (*how, *many, type), ("[%b64_3]", value, "[%b64_3]")[: 3 if how is sent else 2])
        for how in (sent, ("shared",))
        for type in ("b32", "u32", "s32", "f32", "b64", "f64")
        for name in names
        for many, value in (
            ((), name),
            (("v2",), f"{{{name}, {name}}}"),
            (("v2",), f"{{%{type}_1, {name}}}"),
            (("v4",), f"{{{name}, %b32_1, {name}, %b32_1}}"),
        )
    ]
    modifiers.assert_agrees(drawn, "sm_90")


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("seed", [9_000, pytest.param(9_001, marks=pytest.mark.slow)])
def test_refuses_what_ptxas_refuses(seed: int) -> None:
    report = modifiers.run(float("inf"), seed, 1)
    assert not report.differences
    assert report.reached["agreed"].keys() >= {"accepted", "refused"}


@needs_ptxas
@pytest.mark.parametrize(
    "target",
    [t if t == "sm_90a" else pytest.param(t, marks=pytest.mark.slow) for t in modifiers.TARGETS],
)
def test_every_form_once(target: str) -> None:
    """The first word of each place of each form, as it is."""
    drawn = [
        modifiers.legal(opcode, text, [c[0] for c in modifiers.choices(form(text))])
        for opcode in modifiers.ROWS
        for row in TABLE[opcode]
        for text in row.signatures
    ]
    report = modifiers.Report()
    modifiers.compare(drawn, target, report, 0)
    assert not report.differences


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize(
    "target",
    [t if t == "sm_100a" else pytest.param(t, marks=pytest.mark.slow) for t in modifiers.TARGETS],
)
def test_a_constant_in_each_place(target: str) -> None:
    """Of each form's sources, one after the other."""
    drawn = []
    for opcode in modifiers.ROWS:
        for shape in [form(text) for row in TABLE[opcode] for text in row.signatures]:
            first = [choice[0] for choice in modifiers.choices(shape)]
            _, words, operands = modifiers.legal(opcode, shape.text, first)
            for at in range(len(shape.results), len(operands)):
                if operands[at].startswith("%"):
                    ways = [(*operands[:at], c, *operands[at + 1 :]) for c in CONSTANTS]
                    drawn += [(opcode, words, way) for way in ways]
    modifiers.assert_agrees(drawn, target)


@needs_ptxas
def test_the_net_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that lists a modifier too many, and one that lost a form, are found."""
    from dataclasses import replace

    (row,) = TABLE["mul24"]
    for forms in ((*row.signatures, "lo|hi! ftz .s32|u32 : t = t t"), ("hi! .s32|u32 : t = t t",)):
        drawn = [
            modifiers.legal("mul24", text, chosen)
            for text in {*forms, *row.signatures}
            for chosen in modifiers.itertools.product(*modifiers.choices(form(text)))
        ]
        monkeypatch.setitem(TABLE, "mul24", (replace(row, signatures=forms),))
        _clear()
        report = modifiers.Report()
        modifiers.compare(drawn, "sm_90", report, 0)
        _clear()
        assert report.differences


def _clear() -> None:
    from simulator.isa import decoded

    decoded.forms.cache_clear()


def test_forms_read_as_written() -> None:
    shape = form("lo|hi! cc? .s32|u32 .u16 @90 : t|pred? = t0 d8")
    assert [slot.words for slot in shape.head] == [("lo", "hi")]
    assert shape.types == (("s32", "u32"), ("u16",))
    assert (shape.targets, shape.results, shape.sources) == ((90, 999), ("t|pred?",), ("t0", "d8"))


@pytest.mark.parametrize(
    ("written", "target", "said"),
    [
        ("lo.u16.s32", "sm_90", "'.u16' does not belong there"),
        ("cc.lo.s32.u16", "sm_90", "'.lo', '.hi' is missing"),
        ("lo.s32.u16", "sm_80", "for targets sm_90 and later only"),
        ("lo.cc.cx.s32.u16", "sm_90", "it knows no '.cx'"),
        ("lo.s32", "sm_90", "'.u16' is missing"),
        ("lo.ftz.ftz.s32.u16", "sm_90", "'.ftz' twice"),
        ("lo.hi.s32.u16", "sm_90", "'.hi' does not belong there"),
    ],
)
def test_a_misfit_says_what_is_wrong(written: str, target: str, said: str) -> None:
    result = find(("lo|hi! cc? ftz? .s32 .u16 @90 :",), tuple(written.split(".")), target)
    assert isinstance(result, Misfit)
    assert said in result.why


def test_modifiers_may_come_in_any_order() -> None:
    for written in ("lo.cc.ftz.s32.u16", "lo.s32.ftz.u16.cc", "lo.ftz.s32.cc.u16"):
        result = find(("lo|hi! cc? ftz? .s32 .u16 :",), tuple(written.split(".")), "sm_90")
        assert isinstance(result, list)
        assert isinstance(result[0], Match)
        assert result[0].types == ("s32", "u16")


def test_every_row_has_forms_and_every_refusal_a_reason() -> None:
    for rows in TABLE.values():
        assert all(row.signatures or row.unsupported_signatures for row in rows) or len(rows) == 1
        for row in rows:
            assert all(
                about and not re.search(r"[.:]$", about) for _, about in row.unsupported_signatures
            )
