"""The page of kernels of all families in a real browser."""

import re

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.conftest import of_library
from tilescope.view import Story


@pytest.mark.parametrize("name", ["reduction_shared", "histogram_shared", "softmax_rows"])
def test_kernels_that_multiply_no_matrices(open_page, name):
    story = of_library(name)
    shown = open_page(story)
    shown.press("2", "End")
    trace = story.run.trace
    given = next(m for m in trace.maps.values() if m.argument and m.reads.any())
    shown.press("Home")
    first = ""
    for _ in range(20):
        first = shown.text("#now")
        if f"reads {given.name}[" in first:
            break
        shown.press("ArrowRight")
    index = [int(n) for n in re.findall(r"\[(\d+)\]", first)]
    value = given.before.view(given.dtype).reshape(given.shape)[tuple(index)]
    shown_value = float(re.search(r"= (-?[\d.]+(?:e-?\d+)?)\.", first)[1])
    assert given.dtype.type(shown_value) == value
    shown.press("3")
    assert "warp" in shown.text("#arrivals")


def test_a_reduction_is_a_sum_that_grows_through_shared_memory(open_page):
    story = of_library("reduction_shared")
    shown = open_page(story)
    shown.press("2", "End")
    growth = shown.growth()
    given = story.inputs[0].reshape(-1)
    assert growth[-1] == pytest.approx(given[:256].sum(dtype=np.float64), rel=1e-5)
    assert len(growth) == 8  # 256 halves to 1


def test_shared_integers_keep_their_sign(open_page):
    story = of_library("scan_blelloch")
    assert (story.inputs[0] < 0).any()
    shown = open_page(story)
    shown.press("2", "Home", "Shift+ArrowRight")
    tree = shown.page.locator("#step-grids figure", has_text="tree").locator("canvas")
    cells = tree.evaluate("c => [0, 1, 2, 3].map(i => c.tilescopeGrid.lines(i)[0])")
    given = story.inputs[0][:4].tolist()
    assert cells == [f"tree[{i}] = {value}".replace("-", "\u2212") for i, value in enumerate(given)]


def test_constants_in_registers_are_shown_as_numbers(open_page):
    shown = open_page(of_library("softmax_rows"))
    shown.press("2", "End")
    rows = shown.page.locator("#growth .names").all_inner_texts()
    assert rows
    assert not any("?" in row for row in rows)


STRUCTS = r"""
__device__ float table[4] = {1, 2, 4, 8};
struct Point { float x, y; };
__global__ void move(Point* p, float* out) {
    for (int i = threadIdx.x; i < 32; i += 32) out[i] = p[i].y * table[i & 3];
}
"""


def test_fields_of_structs_and_module_variables(open_page):
    points = np.zeros(32, np.dtype([("x", "f4"), ("y", "f4")]))
    points["y"] = 3
    out = np.zeros(32, np.float32)
    run = simulator.launch(Kernel.from_cuda(STRUCTS, "move"), 1, 32, [points, out], trace=True)
    assert out.tolist() == [3.0, 6.0, 12.0, 24.0] * 8
    shown = open_page(Story(run))
    shown.press("2", "Home")
    shown.page.locator(".threads canvas").evaluate("c => c.tilescopeGrid.choose(2)")
    said = []
    for _ in range(4):
        said.append(shown.text("#now"))
        shown.press("ArrowRight")
    text = "\n".join(said)
    assert "reads p[2] byte 4 = 3." in text
    assert re.search(r"reads table(\[2\]|, byte 8) = 4\.", text)
    assert "computes out[i] = " in text
    assert "writes out[2] = 12 " in text


def test_blocks_of_several_batches(open_page):
    kernel = Kernel.from_cuda(
        'extern "C" __global__ void twice(float* a) {\n'
        "    a[blockIdx.x * 256 + threadIdx.x] *= 2;\n}\n",
        "twice",
    )
    a = np.arange(300 * 256, dtype=np.float32)
    run = simulator.launch(kernel, 300, 256, [a], trace=True)
    assert len(run.trace.batches) == 2
    shown = open_page(Story(run))
    shown.press("2", "Home")
    shown.page.select_option("#block", "299")
    shown.press("Home")
    assert f"reads a[{299 * 256}] = {299 * 256}." in shown.text("#now")
    shown.press("ArrowRight")
    assert f"= {2 * 299 * 256}." in shown.text("#now")


BEFORE = """
__global__ void twice(const float* x, float* y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = x[i];
    y[i] = 2 * s[63 - t];
}
"""
AFTER = """
__global__ void twice(const float* x, float* y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = x[i];
    __syncthreads();
    y[i] = 2 * s[63 - t];
}
"""


def test_before_and_after_on_one_page(open_page):
    """Hazards and counters that differ are said first; a step stands beside its partner."""
    stories = []
    for name, source in (("before", BEFORE), ("after", AFTER)):
        args = [np.arange(128, dtype=np.float32), np.zeros(128, np.float32), 128]
        kernel = Kernel.from_cuda(source, "twice")
        run = simulator.launch(kernel, 2, 64, args, schedule="warps", trace=True)
        stories.append(Story(run, name))
    shown = open_page(*stories)
    shown.press("1")
    rows = shown.page.locator("#differences tr").all_inner_texts()
    cells = {row.split("\t")[0]: row.split("\t")[1:3] for row in rows}
    kinds = sorted({h.kind for h in stories[0].run.hazards})
    assert list(cells)[1] == "hazards"
    assert all(kind in cells["hazards"][0] for kind in kinds)
    assert kinds
    assert cells["hazards"][1] == "no hazards"
    counted = [f"{story.run.counters.warp_instructions:,}" for story in stories]
    assert cells["warp instructions"] == counted
    assert "sectors of global memory" not in cells  # they are the same
    shown.press("2", "Home")
    for _ in range(30):
        if "reads s[" in shown.text("#now"):
            break
        shown.press("ArrowRight")
    said = shown.text("#now")
    element = re.search(r"reads (s\[\d+\])", said)[1]
    assert shown.text("#beside").startswith("The same in after, step ")
    assert f"reads {element} = " in shown.text("#beside")
    shown.page.locator(".runs button", has_text="after").click()
    assert f"reads {element} = " in shown.text("#now")
