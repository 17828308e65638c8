"""Copies of tensors in bulk: boxes of arrays, swizzled, and beyond the arrays' edges."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, TensorMap
from tests.support.launches import SCHEDULES

OPCODES = {"cp", "prefetch"}
PTX = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 from[128], .param .align 64 .b8 to[128],
                  .param .u32 a, .param .u32 b, .param .u32 bytes)
{
    .reg .pred %p, %q;
    .reg .b32 %t, %s, %m, %v, %w, %a, %b, %c, %d, %n;
    .reg .b64 %o, %f, %g;
    .shared .align 1024 .b8 buffer[8192];
    .shared .align 8 .b64 full;
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [out];
    mov.b64 %f, from;
    cvta.param.u64 %f, %f;
    mov.b64 %g, to;
    cvta.param.u64 %g, %g;
    ld.param.u32 %a, [a];
    ld.param.u32 %b, [b];
    abs.s32 %c, %a;
    abs.s32 %d, %b;
    ld.param.u32 %n, [bytes];
    mov.u32 %s, buffer;
    mov.u32 %m, full;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [%m], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%p bra wait;
    prefetch.tensormap [%f];
    mbarrier.arrive.expect_tx.shared.b64 _, [%m], %n;
    cp.async.bulk.prefetch.tensor.RANKd.L2.global.tile [%f, {FROM}];
    cp.async.bulk.tensor.RANKd.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%s], [%f, {FROM}], [%m];
wait:
    mbarrier.try_wait.parity.shared.b64 %q, [%m], 0;
    @!%q bra wait;
    mov.u32 %v, %t;
copy:
    shl.b32 %w, %v, 4;
    setp.ge.u32 %q, %w, %n;
    @%q bra copied;
    mad.lo.u32 %w, %v, 16, %s;
    .reg .b32 %x<4>;
    ld.shared.v4.u32 {%x0, %x1, %x2, %x3}, [%w];
    WRITE
    .reg .b64 %at;
    mad.wide.u32 %at, %v, 16, %o;
    st.global.v4.u32 [%at], {%x0, %x1, %x2, %x3};
    add.u32 %v, %v, 32;
    bra copy;
copied:
    bar.sync 0;
    @!%p bra done;
    cp.async.bulk.tensor.RANKd.global.shared::cta.tile.bulk_group [%g, {TO}], [%s];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
done:
    ret;
}
"""


def program(rank: int, write: str = "") -> Kernel:
    """Reads the box at ``(a, b, b ...)``, and writes it at ``(|b|, |a|, |a| ...)``."""
    places = {"FROM": ["%a", *["%b"] * (rank - 1)], "TO": ["%d", *["%c"] * (rank - 1)]}
    text = PTX.replace("RANK", str(rank)).replace("WRITE", write)
    for name, registers in places.items():
        text = text.replace(name, ", ".join(registers))
    return Kernel.from_ptx(text, "k")


def at(rank: int, first: int, other: int) -> list[int]:
    """Coordinates in an array's order of axes."""
    return [*[other] * (rank - 1), first]


def seen(map_: TensorMap) -> np.ndarray:
    """What a map makes of its array."""
    strides = (*map_.strides, map_.array.itemsize)
    return np.lib.stride_tricks.as_strided(map_.array, map_.shape, strides)


def box_of(map_: TensorMap, where: list[int]) -> np.ndarray:
    """The box of an array, element by element; zeros outside of it."""
    array = seen(map_)
    counts = [-(-n // step) for n, step in zip(map_.box, map_.steps, strict=True)]
    found = np.zeros(counts, map_.array.dtype)
    for index in itertools.product(*map(range, counts)):
        place = tuple(w + i * s for w, i, s in zip(where, index, map_.steps, strict=True))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            found[index] = array[place]
    return found


def swizzled(raw: np.ndarray, swizzle: int) -> np.ndarray:
    """Units of 16 bytes as they lie in shared memory: of each eight rows of 128 bytes."""
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    units = np.zeros((-(-raw.nbytes // 128) * 8, 16), np.uint8)
    units[: raw.nbytes // 16] = raw.reshape(-1).view(np.uint8).reshape(-1, 16)
    order = [8 * row + (unit ^ (row & bits)) for row in range(len(units) // 8) for unit in range(8)]
    return units[order][: raw.nbytes // 16]


CASES: list[tuple[tuple[int, ...], type, dict[str, Any]]] = [
    ((64,), np.uint8, {"box": (32,)}),
    ((40, 48), np.float32, {"box": (8, 32), "swizzle": 128}),
    ((40, 48), np.float32, {"box": (16, 8), "swizzle": 32}),
    ((40, 48), np.float16, {"box": (16, 32), "swizzle": 64}),
    ((40, 48), np.uint8, {"box": (8, 48)}),
    ((40, 48), np.float64, {"box": (16, 16), "swizzle": 128}),
    ((9, 10, 16), np.uint16, {"box": (4, 5, 8), "steps": (2, 1, 1)}),
    ((5, 6, 7, 8), np.float32, {"box": (2, 3, 4, 8), "swizzle": 32}),
    ((3, 4, 5, 6, 8), np.float16, {"box": (2, 2, 3, 4, 8), "steps": (1, 2, 1, 3, 1)}),
    ((40, 128), np.float16,
     {"box": (2, 8, 64), "shape": (2, 40, 64), "strides": (128, 256), "swizzle": 128}),
    ((6, 4, 24), np.float32, {"box": (2, 4, 16), "shape": (4, 5, 20), "strides": (96, 384)}),
]  # fmt: skip


def arrays(shape: tuple[int, ...], dtype: type, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    data = np.random.default_rng(seed).integers(1, 99, (2, *shape)).astype(dtype)
    return data[0].copy(), data[1].copy()


STARTS = ((0, 0), (1, 2), (-1, 1), (2, -1), (99, 99))
"""Coordinates, in units of 16 bytes."""


@pytest.mark.slow_but("start1")
@pytest.mark.parametrize("start", [(1, 0), (0, 1), (-3, 4), (2, 2)])
def test_a_box_begins_at_a_multiple_of_16_bytes(start: tuple[int, int]) -> None:
    """An H200 stops at an illegal instruction otherwise."""
    shape, dtype, options = CASES[1]
    maps = [TensorMap(array, **options) for array in arrays(shape, dtype)]
    out = np.zeros(box_of(maps[0], [0, 0]).nbytes, np.uint8)
    arguments = [out, *maps, *start, out.nbytes]
    run = simulator.launch(program(2), 1, 32, arguments, step_limit=10_000)
    assert "misaligned" in [hazard.kind for hazard in run.hazards]


@pytest.mark.parametrize("start", [(-4, 4), (4, -4)])
def test_a_box_is_not_stored_in_front_of_an_array(start: tuple[int, int]) -> None:
    """A load fills it with zeros; an H200 stops at a store as at an illegal instruction."""
    shape, dtype, options = CASES[1]
    maps = [TensorMap(array, **options) for array in arrays(shape, dtype)]
    out = np.zeros(box_of(maps[0], [0, 0]).nbytes, np.uint8)
    text = program(2).ptx.replace("abs.s32", "mov.b32")
    run = simulator.launch(Kernel.from_ptx(text, "k"), 1, 32, [out, *maps, *start, out.nbytes])
    assert [hazard.kind for hazard in run.hazards] == ["out-of-bounds"]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("shape", "dtype", "options"), CASES)
def test_boxes(
    shape: tuple[int, ...], dtype: type, options: dict[str, Any], start: tuple[int, int]
) -> None:
    source, target = arrays(shape, dtype)
    one, two = TensorMap(source, **options), TensorMap(target, **options)
    a, b = (units * 16 // source.itemsize for units in start)
    rank = len(one.shape)
    box = box_of(one, at(rank, a, b))
    out = np.zeros(box.nbytes, np.uint8)
    expected = target.copy()
    view = seen(dataclasses.replace(two, array=expected))
    for index in itertools.product(*map(range, box.shape)):
        place = tuple(
            w + i * s for w, i, s in zip(at(rank, abs(b), abs(a)), index, two.steps, strict=True)
        )
        if all(0 <= p < n for p, n in zip(place, view.shape, strict=True)):
            view[place] = box[index]
    run = simulator.launch(program(rank), 1, 32, [out, one, two, a, b, out.nbytes])
    assert run.hazards == []
    lines = out.reshape(-1, 16)
    wanted = swizzled(box, options.get("swizzle", 0))
    np.testing.assert_array_equal(lines, wanted)
    np.testing.assert_array_equal(target, expected)
    assert math.prod(box.shape) * box.itemsize == out.nbytes


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("write", "found"),
    [
        ("", set()),
        ("st.shared.u32 [%w], %t; fence.proxy.async;", set()),
        ("st.shared.u32 [%w], %t;", {"fence.proxy.async"}),
    ],
)
def test_what_is_written_passes_a_fence(write: str, found: set[str], schedule: str | int) -> None:
    source, target = arrays((40, 48), np.float32)
    maps = [TensorMap(array, (16, 32)) for array in (source, target)]
    arguments = [np.zeros(2048, np.uint8), *maps, 0, 0, 2048]
    run = simulator.launch(program(2, write), 1, 32, arguments, schedule=schedule)
    errors = [hazard.message for hazard in run.hazards if hazard.severity == "error"]
    assert bool(errors) == bool(found)
    assert all(word in message for word in found for message in errors)


AGAIN = "cp.async.bulk.wait_group.read 0; cp{}.async.bulk.tensor.2d.global.shared::cta{}.tile."


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mbarrier.try_wait.parity.shared.b64 %q, [%m], 0;\n    @!%q bra wait;", ""),
        ("cp.async.bulk.wait_group 0;", AGAIN.format("", "") + "bulk_group [%g, {%d, %c}], [%s];"),
        (
            "cp.async.bulk.wait_group 0;",
            AGAIN.format(".reduce", ".add") + "bulk_group [%g, {%d, %c}], [%s];",
        ),
    ],
)
def test_who_does_not_wait_races(old: str, new: str, schedule: str | int) -> None:
    source, target = arrays((40, 48), np.float32)
    maps = [TensorMap(array, (16, 32)) for array in (source, target)]
    text = program(2).ptx
    assert old in text
    kernel = Kernel.from_ptx(text.replace(old, new), "k")
    arguments = [np.zeros(2048, np.uint8), *maps, 0, 0, 2048]
    run = simulator.launch(kernel, 1, 32, arguments, schedule=schedule)
    assert [h for h in run.hazards if "a copy in bulk that is under way" in h.message]


@pytest.mark.parametrize(
    ("shape", "dtype", "options", "why"),
    [
        ((4, 5), np.float32, {"box": (2, 4)}, "rows are no multiple of 16"),
        ((4, 8), np.float32, {"box": (2, 3)}, "no multiple of 16"),
        ((4, 64), np.float32, {"box": (2, 64), "swizzle": 128}, "128 at most"),
        ((4, 8), np.float32, {"box": (2, 8), "swizzle": 16}, "0, 32, 64 or 128, not 16"),
        ((4, 8), np.float32, {"box": (8,)}, "2 axes"),
        ((512, 8), np.float32, {"box": (257, 8)}, "1 to 256"),
        ((4, 8), np.float32, {"box": (2, 8), "steps": (9, 1)}, "1 to 8"),
        ((2,) * 6, np.float64, {"box": (2,) * 6}, "1 to 5"),
        ((4, 8), np.float32, {"box": (2, 8), "strides": (24,)}, "strides are multiples of 16"),
        ((4, 8), np.float32, {"box": (2, 8), "shape": (4, 8, 4)}, "3 axes"),
        ((4, 8), np.float32, {"box": (2, 8), "strides": (48,)}, "beyond the array"),
        ((4, 8), np.float32, {"box": (2, 8), "strides": (32, 64)}, "2 axes have 1 strides"),
    ],
)
def test_maps_that_no_driver_makes(
    shape: tuple[int, ...], dtype: type, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        TensorMap(np.zeros(shape, dtype), **options)


@pytest.mark.parametrize(("options", "why"), [
    ({"swizzle": "128B"}, "0, 32, 64 or 128, not '128B'"),
    ({"swizzle": "128"}, "0, 32, 64 or 128, not '128'"),
    ({"swizzle": None}, "0, 32, 64 or 128, not None"),
    ({"swizzle": 64.0}, "0, 32, 64 or 128, not 64.0"),
    ({"box": 64}, "box is a tuple of whole numbers, not 64"),
    ({"box": ("64", "64")}, "box is a tuple of whole numbers"),
    ({"box": (64, 32.0)}, "box is a tuple of whole numbers"),
    ({"steps": 2}, "steps is a tuple of whole numbers, not 2"),
    ({"shape": "64"}, "shape is a tuple of whole numbers, not '64'"),
    ({"strides": 128}, "strides is a tuple of whole numbers, not 128"),
    ({"corners": 3}, "corners are two tuples of whole numbers, not 3"),
    ({"corners": ((0, 0),)}, "corners are two tuples of whole numbers"),
    ({"array": [[1.0] * 64] * 64}, "an array of NumPy's, not list"),
])  # fmt: skip
def test_words_of_the_wrong_type(options: dict[str, Any], why: str) -> None:
    """What is said is a sentence about the attribute, whatever is given for it."""
    given = {"array": np.zeros((64, 64), np.float16), "box": (64, 64)} | options
    with pytest.raises(ValueError, match=why):
        TensorMap(**given)


ROW, PLANE, SOLID = (TensorMap(np.zeros(shape, np.float32), box) for shape, box in (
    ((64,), (32,)), ((40, 48), (16, 32)), ((4, 40, 48), (1, 16, 32)),
))  # fmt: skip
PIXELS = TensorMap(np.zeros((2, 8, 16), np.float32), (4, 16), corners=((0,), (0,)))


@pytest.mark.slow_but("2-source3-target3...")
@pytest.mark.parametrize(
    ("rank", "source", "target", "verb", "said"),
    [
        (3, PLANE, SOLID, "read", "has 2 axes: this copy takes 3 (.3d)"),
        (1, PLANE, ROW, "read", "has 2 axes: this copy takes 1 (.1d)"),
        (2, ROW, PLANE, "read", "has 1 axis: this copy takes 2 (.2d)"),
        (2, PLANE, SOLID, "write", "has 3 axes: this copy takes 2 (.2d)"),
        (3, PIXELS, SOLID, "read", "is of images (.im2col): this copy is of boxes (.tile)"),
    ],
)
def test_a_map_of_another_kind_than_the_copy_s(
    rank: int, source: TensorMap, target: TensorMap, verb: str, said: str
) -> None:
    """Of axes or mode: no address is out of bounds, and none is told."""
    out = np.zeros(2048, np.uint8)
    arguments = [out, source, target, 0, 0, 2048 if rank > 1 else 128]
    run = simulator.launch(program(rank), 1, 32, arguments, step_limit=2_000)
    told = [h for h in run.hazards if h.kind == "address-space"]
    name = "argument 1" if verb == "read" else "argument 2"
    assert [h.message for h in told] == [f"{verb} of {name}, whose tensor map {said}"]
    assert "out-of-bounds" not in {h.kind for h in run.hazards}


def test_a_type_that_a_reduction_does_not_take() -> None:
    old = "cp.async.bulk.tensor.2d.global.shared::cta."
    text = program(2).ptx.replace(old, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.")
    arguments = [np.zeros(2048, np.uint8), PLANE, PLANE, 0, 0, 2048]
    run = simulator.launch(Kernel.from_ptx(text, "k"), 1, 32, arguments)
    assert [h.message for h in run.hazards] == [
        "atomic access of argument 1, whose tensor map is of f32: .and takes u32, s32, u64"
    ]


def test_what_is_no_map_is_told() -> None:
    source, target = arrays((40, 48), np.float32)
    arguments = [np.zeros(2048, np.uint8), bytes(128), TensorMap(target, (16, 32)), 0, 0, 2048]
    run = simulator.launch(program(2), 1, 32, arguments, step_limit=2_000)
    assert "read of what is no tensor map of an array of this launch" in {
        hazard.message for hazard in run.hazards if hazard.severity == "error"
    }
    with pytest.raises(TypeError, match="a tensor map"):
        simulator.launch(program(2), 1, 32, [TensorMap(source, (16, 32)), *arguments[1:]])
