"""``device`` where there is no GPU, and the arithmetic of its comparisons."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import device
from device.promises import APPROXIMATE, ATOMICS, FUSED, unpromised
from device.validate import ulp_distance
from kernels import library
from kernels.library import Expected
from tests.support.gpu_stand_in import VALIDATE, stand_in

FOUND, WHY = device.available()


@pytest.mark.skipif(FOUND, reason="this machine has a GPU")
def test_without_a_gpu_it_says_so() -> None:
    entry = library.get("matmul_naive")
    launch = entry.launch((8, 8, 8))
    with pytest.raises(device.DeviceError) as caught:
        device.launch(entry.kernel(), launch.grid, launch.block, launch.args)
    assert "\n" not in str(caught.value)
    assert str(caught.value) == WHY


def test_ulp_distance() -> None:
    one = np.array([1.0, -1.0, 0.0, np.nan, np.nan, 1e-45], np.float32)
    two = np.array([np.nextafter(np.float32(1), np.float32(2)), -1.0, -0.0, np.nan, 1.0, 0.0])
    assert ulp_distance(one, two.astype(np.float32)).tolist() == [1, 0, 0, 0, 2**63, 1]


def test_ulp_distance_counts_across_zero_and_of_every_width() -> None:
    for kind in (np.float16, np.float32, np.float64):
        least = np.finfo(kind).smallest_subnormal
        one, two = np.array([least, 1.0], kind), np.array([-least, np.nextafter(kind(1), kind(0))])
        assert ulp_distance(one, two.astype(kind)).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("atom.global.add.f32 %f1, [%rd1], %f2;", ATOMICS),
        ("red.relaxed.gpu.global.add.f64 [%rd1], %fd2;", ATOMICS),
        ("atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;", ATOMICS),
        ("atom.global.add.u32 %r1, [%rd1], %r2;", None),
        ("add.f32 %f1, %f2, %f3;", None),
        ("mul.f32 %f1, %f2, %f3;\nadd.f32 %f4, %f5, %f1;", FUSED),
        ("mul.ftz.f64 %fd1, %fd2, %fd3;\nsub.ftz.f64 %fd4, %fd1, %fd5;", FUSED),
        ("mul.rn.f32 %f1, %f2, %f3;\nadd.f32 %f4, %f5, %f1;", None),
        ("mul.f32 %f1, %f2, %f3;\nadd.rn.f32 %f4, %f5, %f1;", None),
        ("mul.f32 %f1, %f2, %f3;\nadd.f32 %f4, %f5, %f6;", None),
        ("mul.f32 %f1, %f2, %f3;\n}\n{\nadd.f32 %f4, %f5, %f1;", None),
        ("mul.lo.s32 %r1, %r2, %r3;\nadd.s32 %r4, %r5, %r1;", None),
    ],
)
def test_what_ptx_leaves_open(lines: str, found: str | None) -> None:
    assert unpromised(lines, approximate=False) == ((found,) if found else ())
    assert unpromised(lines, approximate=True)[0] == APPROXIMATE


def test_the_optimiser_leaves_nothing_to_fuse() -> None:
    """NVRTC fuses in the device build; the unoptimised one leaves it to the driver."""
    entry = library.get("matmul_naive")
    assert unpromised(entry.kernel().ptx, False) == ()
    assert unpromised(entry.kernel(build="source").ptx, False) == (FUSED,)


# -- validate, with another simulator run in place of the GPU --------------------------------


def validated(name: str, reference: Any = None, size: tuple[int, ...] = ()) -> device.Validation:
    entry = library.get(name)
    launch = entry.launch(size or (20,) * len(entry.axes))
    expected = launch.expected()
    by_place = {place: expected[name] for name, place in launch.outputs.items()}
    chosen = (lambda *args: by_place) if reference is None else reference
    return device.validate(entry.kernel(), launch.grid, launch.block, launch.args, chosen)


def test_equal_bits_within_the_bound_are_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    found = validated("matmul_tiled")
    assert found.validated
    assert found.bit_for_bit
    assert found.reason == ""
    comparison = next(c for c in found.comparisons if c.name == "C")
    assert comparison.equal == comparison.elements == 400
    assert comparison.within is True
    assert comparison.simulator is not None
    assert 0 < comparison.simulator.used < 1
    assert found.to_dict()["arrays"][2]["within"] is True


def test_one_bit_is_seen_and_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nudge(args: Sequence[Any]) -> None:
        args[2][3, 4] = np.nextafter(args[2][3, 4], np.float32(np.inf))

    stand_in(monkeypatch, [nudge])
    found = validated("matmul_tiled")
    assert not found.validated
    assert found.reason == "1 element of C differs"
    comparison = next(c for c in found.comparisons if c.name == "C")
    assert (comparison.equal, comparison.max_ulp, comparison.where) == (399, 1, (3, 4))
    assert comparison.values is not None
    assert comparison.values[0] < comparison.values[1]


def test_signs_of_zero_and_payloads_of_nan_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(args: Sequence[Any]) -> None:
        args[1].view("u4").reshape(-1)[:2] = 0x80000000, 0x7FC00001

    stand_in(monkeypatch, [change])
    entry = library.get("transpose_naive")
    launch = entry.launch((2, 2))
    launch.args[0].view("u4").reshape(-1)[:] = (0, 1, 0x7FFFFFFF, 3)
    found = device.validate(entry.kernel(), launch.grid, launch.block, launch.args)
    comparison = next(c for c in found.comparisons if c.elements - c.equal)
    assert comparison.elements - comparison.equal == 2
    assert comparison.within is None
    assert not found.validated


def test_equal_but_wrong_is_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    wrong = Expected(np.full((20, 20), 7.0), np.float64(1e-3))
    found = validated("matmul_tiled", lambda *args: {2: wrong})
    assert found.bit_for_bit
    assert not found.validated
    assert found.reason.startswith("C of the simulator is outside its error bound in 400 of 400")


def test_a_reference_that_changes_its_arrays_gives_errors_without_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in(monkeypatch)

    def reference(a: Any, b: Any, c: Any, *sizes: int) -> None:
        c[...] = a @ b

    found = validated("matmul_tiled", reference)
    comparison = next(c for c in found.comparisons if c.name == "C")
    assert found.validated
    assert comparison.within is None
    assert comparison.simulator is not None
    assert comparison.simulator.max_error < 1e-4


@pytest.mark.parametrize("bounded", [True, False])
def test_without_promised_bits_the_bound_decides(
    monkeypatch: pytest.MonkeyPatch, bounded: bool
) -> None:
    def nudge(args: Sequence[Any]) -> None:
        args[1][0] = np.nextafter(args[1][0], np.float32(np.inf))

    stand_in(monkeypatch, [nudge])
    entry = library.get("reduction_atomic")
    launch = entry.launch((1000,))
    bound = {1: launch.expected()["sum"]}
    found = device.validate(
        entry.kernel(), launch.grid, launch.block, launch.args,
        (lambda *args: bound) if bounded else None,
    )  # fmt: skip
    assert not found.bits_promised
    assert not found.bit_for_bit
    assert found.validated is bounded
    assert bounded or "no bound is given" in found.reason


def test_a_hazard_forbids_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*args: Any) -> None:
        raise AssertionError("a racy kernel must not be launched")

    monkeypatch.setattr(VALIDATE, "launch", launch)
    found = validated("matmul_missing_first_barrier", size=(64, 64, 64))
    assert not found.validated
    assert found.output is None
    assert found.reason.startswith("not launched: Missing barrier: shared ")
    assert not found.bit_for_bit


def test_arguments_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    entry = library.get("matmul_tiled")
    launch = entry.launch((20, 20, 20))
    before = [arg.copy() for arg in launch.args[:3]]
    device.validate(entry.kernel(), launch.grid, launch.block, launch.args)
    assert all(np.array_equal(a, b) for a, b in zip(before, launch.args[:3], strict=True))
