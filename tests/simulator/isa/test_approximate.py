"""The approximate functions, bit for bit: a Hopper GPU's results by their CRC-32."""

import pytest

from tests.studies.approximate import RANGES, measured, simulated
from tests.support.launches import every_other

MEASURED = measured()
# Of 256 ranges of the arguments' bits, two exponents each: where a function is at its work, and
# where subnormals, overflow or the argument's reduction come in. All: python -m
# tests.studies.approximate.
SHOWN = {
    "ex2.approx.ftz.f32": 66, "ex2.approx.f32": 194, "lg2.approx.ftz.f32": 63, "lg2.approx.f32": 0,
    "rcp.approx.ftz.f32": 191, "rcp.approx.f32": 126, "rsqrt.approx.ftz.f32": 63,
    "rsqrt.approx.f32": 0, "sqrt.approx.ftz.f32": 64, "sqrt.approx.f32": 0,
    "sin.approx.ftz.f32": 193, "sin.approx.f32": 62, "cos.approx.ftz.f32": 66,
    "cos.approx.f32": 63, "tanh.approx.f32": 63, "rcp.approx.ftz.f64": 63,
    "rsqrt.approx.ftz.f64": 127,
}  # fmt: skip


@pytest.mark.slow_but("ex2.approx.ftz.bf16", "tanh.approx.bf16")
@pytest.mark.parametrize("form", every_other([*MEASURED]))
def test_approximate(form: str) -> None:
    numbers = range(RANGES) if form.endswith("f16") else [SHOWN[form]]
    assert [simulated(form, i) for i in numbers] == [MEASURED[form][i] for i in numbers]
