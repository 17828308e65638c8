"""The page of kernels of all families in a real browser."""

import math

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.conftest import of_library
from tilescope.view import Story

FAMILIES = {
    "matmul_naive": "32", "matmul_register_tiled": "64", "matmul_wgmma": None,
    "matmul_tensor": "64",
    "stencil_line": "500", "stencil_five_point": "64", "scan_hillis_steele": "300",
    "scan_blelloch": None, "scan_look_back": None, "reduction_shared": None,
    "reduction_shuffle": None, "reduction_atomic": None, "histogram_shared": None,
    "histogram_global": None, "softmax_rows": None, "layer_norm": None, "transpose_tiled": "64",
    "convolution": "32", "spmv_warp": None, "attention": None, "sort_bitonic": None,
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_plays_from_start_to_end(open_page, name):
    story = of_library(name, FAMILIES[name])
    shown = open_page(story)
    assert shown.text("#finding")
    wide = shown.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280
    total, beats = shown.state("story.count"), shown.state("beats.length")
    for share in (0, 0.2, 0.5, 0.8, 1):
        shown.page.evaluate("n => tilescopePage.state.goBeat(n)", round(beats * share))
        said = shown.text("#say")
        assert said
        assert "undefined" not in said + shown.text(".code:not(.ptx)") + shown.text("#finding")
        assert "NaN" not in shown.text("#watch") or np.isnan(story.inputs[0]).any()
    assert shown.state("pos") == total
    for key in "234":
        shown.press(key)


@pytest.mark.parametrize("name", ["stencil_line", "scan_hillis_steele", "reduction_shared"])
def test_what_a_block_writes_is_what_the_run_wrote(open_page, name):
    story = of_library(name, {"stencil_line": "500", "scan_hillis_steele": "300"}.get(name))
    shown = open_page(story)
    run = story.run
    item = next(m for m in run.trace.maps.values() if m.writes.any())
    threads = int(np.prod(run.block))
    block = shown.state("block")
    mine = np.flatnonzero(item.owner // threads == block)
    shown.look(pos=shown.state("story.count"))
    found = shown.page.evaluate(
        """([place, size, all]) => {
          const { state } = tilescopePage;
          return all.map((i) => state.blockNow.writer(place, i * size, state.event).value);
        }""",
        [item.number, item.size, mine.tolist()],
    )
    after = item.after.view(item.dtype)
    assert np.array_equal(np.array(found, item.dtype), after[mine])


def test_rows_say_how_their_values_came_about(open_page):
    story = of_library("scan_hillis_steele", "300")
    shown = open_page(story)
    equations = shown.page.locator(".over text.mono").all_text_contents()
    found = [text.replace("\u2212", "-") for text in equations if " = " in text]
    given = story.inputs[0].astype(np.int64)
    pick = shown.state("thread")
    assert found[0] == f"in[{pick}] = {given[pick]}"
    assert found[-1] == f"out[{pick}] = {given[: pick + 1].sum()}"
    for text in found[1:-1]:
        left, right = text.split(" = ")
        a, b = (float(part) for part in left.split(" + "))
        assert a + b == pytest.approx(float(right), rel=0.02, abs=12)


FOLDS = """
__global__ void fold(const float *in, float *out) {
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = in[t];
    for (int reach = 32; reach; reach /= 2) {
        __syncthreads();
        if (t < reach) part[t] = WORK(part[t], part[t + reach]);
    }
    if (t == 0) out[0] = part[0];
}
"""


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("a * b", "2 \u00d7 2 = 4"),
        ("a + b", "2 + 2 = 4"),
        ("fmaxf(a, b)", "max(2, 2) = 2"),
        ("a - b", "0"),
    ],
)
def test_rows_name_the_operation_not_one_that_fits_the_values(open_page, work, said):
    source = f"#define WORK(a, b) ({work})\n" + FOLDS
    given = np.ones(64, np.float32)
    given[[0, 32]] = 2
    args = [given, np.zeros(1, np.float32)]
    run = simulator.launch(Kernel.from_cuda(source, "fold"), 1, 64, args, trace=True)
    shown = open_page(Story(run, "fold"))
    shown.look(pos=shown.state("story.count"))
    equations = shown.page.locator(".over text.mono").all_text_contents()
    assert equations[2] == said  # below the input and its copy


STRUCTS = r"""
__device__ float table[4] = {1, 2, 4, 8};
struct Point { float x, y; };
struct Pair { float scale; short shift, spare; };
__constant__ Pair pairs[4];
__global__ void move(Point* p, float* out) {
    for (int i = threadIdx.x; i < 32; i += 32)
        out[i] = p[i].y * table[i & 3] + pairs[i & 3].scale + pairs[i & 3].shift;
}
"""


def test_fields_of_structs_and_module_variables(open_page):
    points = np.arange(64, dtype=np.float32)
    out = np.zeros(32, np.float32)
    pairs = {"pairs": [(1.5, 2, 0)] * 4}
    kernel = Kernel.from_cuda(STRUCTS, "move")
    run = simulator.launch(kernel, 1, 32, [points, out], symbols=pairs, trace=True)
    shown = open_page(Story(run, "move"))
    names = shown.page.locator(".stage-lens .over [data-name]").all_text_contents()
    said = {name.partition(" memory")[0] for name in names}
    assert {"table 4 elements in global", "pairs 32 bytes in constant"} < said
    shown.press("2")
    unread = shown.page.locator(".uneven .levels li", has_text="8 bytes")  # the third field
    assert unread.inner_text().startswith("0\u00d7")
    shown.press("3")
    button = shown.page.locator(".accesses button", has_text="pairs")
    assert "constant memory" in button.inner_text()
    shown.page.evaluate("tilescopePage.state.goBeat(1e6)")
    assert shown.state("pos") == shown.state("story.count")
    assert "out" in shown.text("#finding")


CHAIN = """
__global__ void polynomial(const float* c, const float* x, float* out)
{
    float sum = 10.0f * x[threadIdx.x];
    for (int k = 0; k < 4; ++k)
        sum += c[k] * x[threadIdx.x];
    out[threadIdx.x] = sum;
}
"""


def _value(sum_of_products):
    return sum(math.prod(map(float, part.split("*"))) for part in sum_of_products.split(" + "))


def test_equations_hold_or_leave_out_what_they_start_from(open_page):
    kernel = Kernel.from_cuda(CHAIN, "polynomial")
    args = [np.arange(1, 5, dtype=np.float32), np.full(32, 3, np.float32)]
    run = simulator.launch(kernel, 1, 32, [*args, np.zeros(32, np.float32)], trace=True)
    shown = open_page(Story(run, "polynomial"))
    said = set()
    shown.press("Home")
    for _ in range(12):
        lines = shown.page.locator(".code .now").all_inner_texts()
        said |= {line.splitlines()[-1].strip() for line in lines}
        shown.press("ArrowRight")
    equations = {text for text in said if " + " in text and " = " in text}
    for text in equations:
        left, right = text.replace("\u2212", "-").replace("\u00d7", "*").split(" = ")
        assert left.startswith("\u2026 + ") or _value(left) == float(right), text
    assert any(text.startswith("\u2026 + ") for text in equations), said


SAME = """
__device__ float data[8];
__global__ void same(float* data, int n) { data[threadIdx.x] = ::data[threadIdx.x] + n; }
"""


def test_two_arrays_of_one_name(open_page):
    args = [np.ones(8, np.float32), 3]
    symbols = {"data": np.arange(8, dtype=np.float32)}
    kernel = Kernel.from_cuda(SAME, "same")
    run = simulator.launch(kernel, 1, 8, args, symbols=symbols, trace=True)
    shown = open_page(Story(run, "same"))
    names = shown.page.evaluate("tilescopePage.state.now.arrays.map((a) => a.name)")
    assert sorted(names) == ["data", "data (2)"]
    assert "data (2)" in shown.text("#finding")
