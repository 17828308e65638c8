"""The roofline: amounts from the simulator's counters, times by hand, and the figure."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import simulator
from device import GPUS, Roofline, roofline, roofline_svg
from kernels import library
from simulator import Counters, Traffic

H200 = GPUS["h200"]


def placed(name: str, size: tuple[int, ...], gpu: str = "h200") -> Roofline:
    entry = library.get(name)
    launch = entry.launch(size)
    run = simulator.launch(entry.kernel(), launch.grid, launch.block, launch.args, checks="none")
    return roofline(GPUS[gpu], run.counters, launch.args)


def test_a_matrix_product_by_hand() -> None:
    place = placed("matmul_naive", (64, 64, 64))
    assert place.flops == 2 * 64**3
    assert place.array_bytes == 3 * 64 * 64 * 4
    # A warp of 16x16: two rows of A (1 sector each), half a row of B (2); stores: 4.
    warps = 64 * 64 // 32
    assert place.sector_bytes == 32 * (warps * 64 * (2 + 2) + warps * 4)
    assert place.arithmetic.amount == 64**3
    assert place.arithmetic.seconds == pytest.approx(2 * 64**3 / 67e12)
    assert place.once.seconds == pytest.approx(3 * 64 * 64 * 4 / 4.8e12)
    assert place.intensities == (place.flops / place.sector_bytes, place.flops / 49152)
    assert place.shared.amount == 0
    assert place.best is place.once
    assert place.worst is place.uncached
    assert place.attainable(place.once) == pytest.approx(4.8e12 * place.flops / 49152)


def test_tiles_move_a_product_up_the_slope() -> None:
    naive, tiled = (placed(f"matmul_{name}", (128, 128, 128)) for name in ("naive", "tiled"))
    slow, fast = (place.attainable(place.uncached) for place in (naive, tiled))
    assert slow is not None
    assert fast is not None
    assert fast > 5 * slow
    assert tiled.worst is tiled.shared  # one wavefront a load: the banks are the roof
    assert tiled.arithmetic == naive.arithmetic


def test_lone_additions_reach_half_of_the_peak() -> None:
    adds = roofline(H200, Counters(add_f32=1000, flops=1000), [np.zeros(1, np.float32)])
    fmas = roofline(H200, Counters(fma_f32=1000, flops=2000), [np.zeros(1, np.float32)])
    assert adds.attainable(adds.arithmetic) == pytest.approx(H200.fp32 / 2)
    assert fmas.attainable(fmas.arithmetic) == pytest.approx(H200.fp32)


def test_double_precision_has_its_own_roof() -> None:
    counters = Counters(fma_f64=1000, fma_f32=100, flops=2200)
    hopper, ada = (roofline(GPUS[name], counters).arithmetic for name in ("h200", "rtx4090"))
    assert hopper.unit == ada.unit == "FP64 instructions"
    assert hopper.rate == pytest.approx(67e12 / 2 / 2)
    assert ada.rate == pytest.approx(82.6e12 / 2 / 64)


def test_bank_conflicts_take_time() -> None:
    shared = Traffic(requests=10, wavefronts=320)
    place = roofline(H200, Counters(shared_load=shared))
    assert place.best is place.shared
    assert place.shared.seconds == pytest.approx(320 / (132 * H200.clock))


def test_a_launch_that_does_nothing() -> None:
    place = roofline(H200, Counters())
    assert place.best is None
    assert place.worst is None
    assert place.bounds == ()
    assert place.intensities == (None, None)
    assert place.to_dict()["bound_by"] is None
    with pytest.raises(ValueError, match="no kernel here"):
        roofline_svg({"empty": place})


def test_an_array_given_twice_counts_once() -> None:
    array = np.zeros(100, np.float32)
    assert roofline(H200, Counters(), [array, array, 3]).array_bytes == 400


# -- the figure -------------------------------------------------------------------------


def points(svg: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    found = root.iter("{http://www.w3.org/2000/svg}circle")
    return [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in found]


def test_the_figure_is_svg_with_every_kernel_in_it() -> None:
    kernels = {n: placed(f"matmul_{n}", (64, 64, 64)) for n in ("naive", "tiled")}
    svg = roofline_svg(kernels)
    texts = [t.text for t in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "Roofline of NVIDIA H200 SXM" in texts
    assert {"naive", "tiled", "67 TFLOP/s of FP32", "4,800 GB/s"} <= set(texts)
    assert len(points(svg)) == 4
    assert all(0 <= x <= 720 and 0 <= y <= 420 for x, y in points(svg))
    assert "prefers-color-scheme:dark" in svg


def test_a_point_below_the_slope_lies_on_the_ray_of_its_bandwidth() -> None:
    """Naive's left end is bound by memory: it must lie on the drawn slope."""
    svg = roofline_svg({"naive": placed("matmul_naive", (64, 64, 64))})
    (x, y), _ = points(svg)
    line = re.search(r'polyline class="roof" points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)', svg)
    assert line is not None
    x0, y0, x1, y1 = map(float, line.groups())
    assert y == pytest.approx(y0 + (x - x0) * (y1 - y0) / (x1 - x0), abs=1.0)


def test_names_are_escaped_and_measurements_drawn() -> None:
    place = placed("matmul_naive", (64, 64, 64))
    svg = roofline_svg({"tiled<16> & more": place}, {"tiled<16> & more": 2.5e12})
    assert "tiled&lt;16&gt; &amp; more" in svg
    assert "measured 2.5 TFLOP/s" in svg
    assert len(points(svg)) == 3


def test_one_figure_has_one_gpu() -> None:
    kernels = {g: placed("matmul_naive", (16, 16, 16), g) for g in ("h200", "a100")}
    with pytest.raises(ValueError, match="roofs of one GPU"):
        roofline_svg(kernels)


def test_a_small_grid_leaves_multiprocessors_idle() -> None:
    counters = Counters(fma_f32=1000, flops=2000, shared_load=Traffic(requests=9, wavefronts=9))
    whole, one, many = (roofline(H200, counters, (), blocks) for blocks in (None, 1, 1000))
    assert (whole.sms, one.sms, many.sms) == (132, 1, 132)
    assert one.arithmetic.seconds == pytest.approx(132 * whole.arithmetic.seconds)
    assert one.shared.seconds == pytest.approx(132 * whole.shared.seconds)
    assert many.bounds == whole.bounds
