"""``mma`` against a slow model, and on a GPU against its tensor cores: fragments and arithmetic."""

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest

import simulator
from simulator.isa import TABLE
from simulator.isa.grammar import form
from tests.simulator.isa import tensor_model as model
from tests.simulator.isa.harness import MACHINES
from tests.simulator.isa.tensor_cases import KINDS, Case, Operands, program, wrong
from tests.support.launches import every_other


def variants() -> Iterator[str]:
    """Every variant of every form of the dense row."""
    for text in TABLE["mma"][0].signatures:
        shape = form(text)
        words = [slot.words if slot.needed else ("", *slot.words) for slot in shape.slots]
        for chosen in itertools.product(*words, *shape.types):
            yield ".".join(["mma", *(word for word in chosen if word)])


CASES = tuple(Case(name) for name in variants())


@pytest.mark.slow_cases(
    "mma.sync.aligned.m16n8k16.rm.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k8.rp.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k8.rz.row.col.f64.f64.f64.f64",
)
@pytest.mark.parametrize("case", every_other(CASES), ids=lambda case: case.name)
def test_equals_the_model(case: Case) -> None:
    operands = Operands(case)
    wanted = operands.expected(case.element)
    for machine in MACHINES:
        found, _ = operands.launch(machine, program(case, operands.threads))
        assert not wrong(found, wanted)[:5], machine.__name__


@pytest.mark.slow_cases("-Case(name='mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32')")
@pytest.mark.parametrize("case", [case for case in CASES[::9] if ".f64" not in case.name], ids=str)
@pytest.mark.parametrize("scalar", ["", "a", "b", "c", "bc"])
def test_registers_of_any_shape(case: Case, scalar: str) -> None:
    """Warps that share a matrix, blocks that do; warps that leave before."""
    operands = Operands(case)
    plain = program(case, operands.threads)
    for name in scalar:
        words = operands.words[name]
        operands.words[name] = np.tile(words[:, :32], (1, len(KINDS)))
    wanted, _ = operands.launch(simulator, plain)
    leave = "setp.ge.u32 %q, %t, 96; @%q bra OUT;"
    for before, grid in (("", 1), ("", len(KINDS)), (leave, 1)):
        made = program(case, operands.threads, before, scalar)
        found, run = operands.launch(simulator, made, grid)
        if before:
            warps = len(wanted) // len(KINDS) * 3
            assert not found[warps:].any()
            found, wanted = found[:warps], wanted[:warps]
        assert (found == wanted).all()
        assert not run.hazards


ELSEWHERE = [
    (80, "m16n8k16.row.col.f32.f16.f16.f32", (8, 24)),
    (80, "m16n8k16.row.col.f16.f16.f16.f16", (8, 24)),
    ("sm_86", "m16n8k16.row.col.f32.bf16.bf16.f32", (8, 24)),
    ("89", "m16n8k8.row.col.f32.tf32.tf32.f32", (4, 24)),
    ("compute_89", "m16n8k32.row.col.f32.e4m3.e5m2.f32", (32, 13, 13)),
    (75, "m16n8k8.row.col.f32.f16.f16.f32", (8, 24)),
    (70, "m8n8k4.row.col.f32.f16.f16.f32", (4, 23)),
    ("sm_100a", "m16n8k32.row.col.f32.e5m2.e5m2.f32", (32, 25)),
    ("90a", "m16n8k16.row.col.f32.f16.f16.f32", (16, 25)),
]
"""Architectures, variants and the model: how many products at once, fraction bits, those kept."""


@pytest.mark.parametrize(("arch", "name", "rule"), ELSEWHERE, ids=str)
def test_other_architectures(arch: str | int, name: str, rule: tuple[int, ...]) -> None:
    case = Case(f"mma.sync.aligned.{name}")
    operands = Operands(case)
    out, kind, other, _ = case.types

    def element(pairs: list[tuple[int, int]], c: int) -> int:
        if kind not in model.F8:
            return model.steps(kind, pairs, out, c, *rule)
        wide = [(model.widened(kind, a), model.widened(other, b)) for a, b in pairs]
        least = model.LEAST[kind], model.LEAST[other]
        return model.steps("f16", wide, out, c, *(*rule, 23)[:3], least)

    found, run = operands.launch(simulator, program(case, operands.threads), arch=arch)
    assert not wrong(found, operands.expected(element))[:5]
    number = re.sub(r"\D", "", str(arch))
    assert run.arch == f"sm_{number}"
    assert any("not measured" in note for note in run.notes) == (number != "90")


def test_architectures_by_name() -> None:
    case = CASES[0]
    operands, made = Operands(case), program(case, 160)
    assert operands.launch(simulator, made)[1].arch == "sm_90"
    for arch in ("", "91", "sm90", "sm_90b", "sm_61", "hopper", 9, 90.0, True, "９０"):
        with pytest.raises(ValueError, match="arch"):
            operands.launch(simulator, made, arch=arch)


@pytest.mark.parametrize(
    ("name", "counter"),
    [
        ("m16n8k16.row.col.f32.bf16.bf16.f32", "tensor_bf16"),
        ("m8n8k4.row.col.f16.f16.f16.f16", "tensor_f16"),
        ("m16n8k4.row.col.f32.tf32.tf32.f32", "tensor_tf32"),
        ("m16n8k32.row.col.f32.e4m3.e5m2.f32", "tensor_fp8"),
        ("m8n8k4.row.col.f64.f64.f64.f64", "tensor_f64"),
        ("m8n8k32.row.col.s32.u4.u4.s32", "tensor_int"),
        ("m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "tensor_int"),
    ],
)
def test_counts_operations(name: str, counter: str) -> None:
    """Two a multiply-add, by the type of A."""
    case = Case(f"mma.sync.aligned.{name}")
    operands = Operands(case)
    _, run = operands.launch(simulator, program(case, operands.threads))
    m, n, k = case.shape
    work = 2 * m * n * k * len(operands.matrices["a"])
    found = {key: getattr(run.counters, key) for key in run.counters.to_dict() if "tensor" in key}
    assert {key: count for key, count in found.items() if count} == {counter: work}
    assert run.counters.flops == (0 if counter == "tensor_int" else work)
