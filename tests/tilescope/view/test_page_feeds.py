"""What went into an output and where an input went, in a real browser, against NumPy."""

import re

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from tests.tilescope.view.conftest import matmul, of_library
from tilescope.view import Story


def marks(shown, run, name):
    """Elements of an array that are marked, by kind."""
    found = shown.page.evaluate(
        "([run, name]) => tilescopePage.views.matrices.parts[run].grids"
        ".find(g => g.array.name === name).cells.marks.map(m => [m.kind, m.i, m.note ?? ''])",
        [run, name],
    )
    made = {}
    for kind, i, note in found:
        made.setdefault(kind, {})[i] = note
    return made


def pick(shown, name, i, run=0):
    shown.press("1")
    shown.page.evaluate(
        "([run, name, i]) => { const g = tilescopePage.views.matrices.parts[run].grids"
        ".find(g => g.array.name === name); g.choose(i); }",
        [run, name, i],
    )


def fed(shown, name):
    found = marks(shown, 0, name)
    return set(found.get("read", {})) | set(found.get("through", {}))


@pytest.mark.parametrize("name", ["reduction_shared", "reduction_shuffle"])
def test_a_sum_lights_all_that_it_sums(open_page, name):
    """Through a tree in shared memory, and through shuffles."""
    story = of_library(name)
    shown = open_page(story)
    trace = story.run.trace
    out = next(m for m in trace.maps.values() if m.writes.any())
    given = next(m for m in trace.maps.values() if m.reads.any() and m is not out)
    each = given.reads.size // out.reads.size
    for block in (0, out.reads.size - 1):
        pick(shown, out.name, block)
        assert fed(shown, given.name) == set(range(block * each, (block + 1) * each))
        assert f"went {each} elements" in shown.text("#answer0")
    pick(shown, given.name, 3)
    assert set(marks(shown, 0, out.name)["mine"]) == {0}
    assert "It reached 1 output" in shown.text("#answer0")


def test_a_product_is_fed_by_a_row_and_a_column_in_order(open_page):
    shown = open_page(matmul(6, 2))
    pick(shown, "C", 6 * 4 + 1)
    assert fed(shown, "A") == set(range(24, 30))
    assert fed(shown, "B") == set(range(1, 36, 6))
    notes = [n for name in "AB" for kind in ("read", "through")
             for n in marks(shown, 0, name)[kind].values()]  # fmt: skip
    assert sorted(map(int, notes)) == list(range(1, 13))
    pick(shown, "A", 6 * 4 + 3)
    assert set(marks(shown, 0, "C")["mine"]) == set(range(24, 30))


def test_a_transpose_moves_each_element_through_another_thread(open_page):
    story = of_library("transpose_tiled", "64")
    shown = open_page(story)
    maps = story.run.trace.maps.values()
    given, out = (next(m for m in maps if getattr(m, way).any()) for way in ("reads", "writes"))
    pick(shown, out.name, 5 * 64 + 40)
    assert fed(shown, given.name) == {40 * 64 + 5}
    assert marks(shown, 0, given.name)["through"]
    pick(shown, given.name, 40 * 64 + 5)
    assert set(marks(shown, 0, out.name)["mine"]) == {5 * 64 + 40}


def test_a_softmax_is_fed_by_its_whole_row(open_page):
    """Its sum went through shuffles and shared memory, to every thread of the block."""
    story = of_library("softmax_rows")
    shown = open_page(story)
    maps = story.run.trace.maps.values()
    given, out = (next(m for m in maps if getattr(m, way).any()) for way in ("reads", "writes"))
    width = out.shape[-1]
    pick(shown, out.name, 5)
    assert fed(shown, given.name) == set(range(width))
    assert set(marks(shown, 0, given.name)["read"]) == set(range(5 % 128, width, 128))
    pick(shown, given.name, 7)
    assert set(marks(shown, 0, out.name)["mine"]) == set(range(width))


def test_a_bin_is_fed_by_what_fell_into_it(open_page):
    """The index of an atomic was loaded: it counts."""
    story = of_library("histogram_shared", "4096")
    shown = open_page(story)
    data = np.asarray(story.inputs[0]).reshape(-1)
    given, out = (story.run.trace.maps[n] for n in (0, 1))
    assert out.writes.any()
    recorded = set(shown.page.evaluate("tilescopePage.runs[0].recorded"))
    assert len(recorded) == story.run.trace.blocks
    bin_ = int(np.bincount(data.astype(np.int64)).argmax())
    pick(shown, out.name, bin_)
    assert fed(shown, given.name) == set(np.flatnonzero(data == bin_).tolist())
    one = int(np.flatnonzero(data == bin_)[-1])
    pick(shown, given.name, one)
    assert bin_ in marks(shown, 0, out.name)["mine"]


LINE = """
__global__ void smooth(const float* x, const int* at, float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[at[i]];
    float sum = 0;
    for (int k = -1; k <= 1; ++k)
        if (i + k >= 0 && i + k < n) sum += x[i + k];
    z[i] = sum;
}
"""


def test_ones_own_kernel_in_one_dimension(open_page):
    n = 50
    x, at = np.arange(n, dtype=np.float32), np.arange(n, dtype=np.int32)[::-1].copy()
    y, z = np.zeros(n, np.float32), np.zeros(n, np.float32)
    run = simulator.launch(Kernel.from_cuda(LINE, "smooth"), 2, 32, [x, at, y, z, n], trace=True)
    shown = open_page(Story(run, "smooth"))
    pick(shown, "y", 7)
    assert (fed(shown, "x"), fed(shown, "at")) == ({42}, {7})
    pick(shown, "z", 33)
    assert (fed(shown, "x"), fed(shown, "at")) == ({32, 33, 34}, set())
    pick(shown, "x", 10)
    assert set(marks(shown, 0, "y")["mine"]) == {39}
    assert set(marks(shown, 0, "z")["mine"]) == {9, 10, 11}
    names = shown.page.locator("figure.grid figcaption strong").filter(visible=True)
    order = [name.split()[0] for name in names.all_inner_texts()]
    assert sorted(order[:2]) == ["at", "x"]  # what is read stands before what is written


def test_a_product_stands_as_people_draw_it(open_page):
    shown = open_page(matmul(6, 2))
    a, b, c = (shown.figure(name).locator("canvas").bounding_box() for name in "ABC")
    assert abs(a["x"] + a["width"] - c["x"]) < 40
    assert abs(b["y"] + b["height"] - c["y"]) < 60
    assert (a["y"], a["height"], b["x"], b["width"]) == (c["y"], c["height"], c["x"], c["width"])
    both = open_page(matmul(16, 8, "naive.cu", "naive"), matmul(16, 8), width=1200)
    tops = both.page.locator(".product canvas").evaluate_all(
        "all => all.map(c => c.getBoundingClientRect()).map(r => [r.left, r.top])"
    )
    for above, left, corner in (tops[:3], tops[3:]):
        assert (left[1], above[0]) == (corner[1], corner[0])
    other = open_page(of_library("reduction_shared"))
    assert other.page.locator(".product").count() == 0


def test_the_opening_plays_the_first_tile_until_a_key(open_page):
    shown = open_page(matmul(6, 2))
    film = "tilescopePage.views.matrices.film.running"
    assert shown.page.evaluate(film)
    said = set()
    while len(said) < 3:
        said.add(shown.text("#answer0"))
    assert any(re.search(r"Thread \(0,0\) (reads|computes)", text) for text in said)
    shown.press("Escape")
    assert not shown.page.evaluate(film)
    assert "Into what thread (0,0)" in shown.text("#answer0")
    shown.page.locator("#again").click()
    assert shown.page.evaluate(film)
    shown.click_cell("C", 0, 0)
    assert not shown.page.evaluate(film)


@pytest.mark.parametrize(
    ("name", "size"),
    [("stencil_line", "600"), ("reduction_atomic", "1024"), ("matmul_async_copy", "32")],
)
def test_an_input_reaches_what_changes_with_it(open_page, name, size):
    """Another value in one place: the outputs that change are those that the page rings."""
    story = of_library(name, size)
    shown = open_page(story)
    run = story.run
    assert shown.page.evaluate("tilescopePage.runs[0].recorded.length") == run.trace.blocks
    given = run.trace.maps[0]
    out = next(m for m in run.trace.maps.values() if m.writes.any())
    shared = library.get(name).launch(library.get(name).parse_size(size)).shared_bytes
    for i in (3, given.reads.size // 2):
        args = [np.copy(x) if isinstance(x, np.ndarray) else x for x in story.inputs]
        args[0].reshape(-1)[i] += 3
        simulator.launch(run.trace.kernel, run.grid, run.block, args, shared_bytes=shared)
        before = out.after.view(out.dtype)
        changed = np.flatnonzero(before != args[out.number].reshape(-1))
        pick(shown, given.name, i)
        assert set(marks(shown, 0, out.name)["mine"]) == set(changed.tolist())
        assert len(changed)


def picked(shown, name, i):
    """By array what went into one element: as data, and what only decided."""
    pick(shown, name, i)
    names = shown.page.evaluate("tilescopePage.runs[0].arrays.map(a => a.name)")
    return {
        other: (fed(shown, other), set(marks(shown, 0, other).get("decides", {})))
        for other in names
        if other != name
    }


def test_a_product_by_tensor_cores_is_fed_by_a_row_and_a_column(open_page):
    """By cp.async, ldmatrix (one transposed) and mma, in halves of registers; and back."""
    story = of_library("matmul_tensor", "64")
    shown = open_page(story)
    a, b = (set(range(k, n, step)) for k, n, step in ((320, 384, 1), (10, 4096, 64)))
    assert picked(shown, "C", 5 * 64 + 10) == {"A": (a, set()), "B": (b, set())}
    assert "way ends" not in shown.text("#answer0")
    pick(shown, "B", 7 * 64 + 10)
    assert set(marks(shown, 0, "C")["mine"]) == b


def test_an_attention_is_fed_by_a_query_all_keys_and_a_column(open_page):
    story = of_library("attention", "64x32")
    shown = open_page(story)
    q, k, v = set(range(64, 96)), set(range(32 * 32)), set(range(3, 1024, 32))
    found = picked(shown, "out", 2 * 32 + 3)
    assert {name: data for name, (data, _) in found.items()} == {"Q": q, "K": k, "V": v}


def test_what_other_blocks_handed_on_is_followed(open_page):
    """A scan whose blocks look back at each other's sums, behind flags and votes."""
    story = of_library("scan_look_back", "700")
    shown = open_page(story)
    found = picked(shown, "out", 600)
    assert found["in"][0] == set(range(601))
    pick(shown, "in", 300)
    assert set(marks(shown, 0, "out")["mine"]) == set(range(300, 700))


def test_what_decided_is_told_apart(open_page):
    """Where a row ends decides how often the loop runs; where it begins goes into indices."""
    story = of_library("spmv_thread", "64x32")
    shown = open_page(story)
    starts = np.asarray(story.inputs[0])
    found = picked(shown, "y", 10)
    assert found["starts"] == ({10}, {11})
    inside = set(range(starts[10], starts[11]))
    assert found["values"] == found["columns"] == (inside, set())
    assert "1 more decided on what happened" in shown.text("#answer0")


VOTES = """
__global__ void votes(const int* x, const int* y, int* any, int* pick, int* all) {
    int i = threadIdx.x;
    any[i] = __any_sync(0xffu << (i & 24), x[i] > 3);
    pick[i] = x[i] > 3 ? y[i] : 7;
    all[i] = __syncthreads_count(y[i] > 2);
}
"""


def test_votes_choices_and_reducing_barriers(open_page):
    x, y = np.arange(64, dtype=np.int32) % 8, np.arange(64, dtype=np.int32)
    outs = [np.zeros(64, np.int32) for _ in range(3)]
    run = simulator.launch(Kernel.from_cuda(VOTES, "votes"), 1, 64, [x, y, *outs], trace=True)
    story = Story(run, "votes")
    shown = open_page(story)
    found = picked(shown, "any", 42)
    assert (found["x"], found["y"][0]) == ((set(range(40, 48)), set()), set())
    found = picked(shown, "pick", 5)
    assert (found["x"], found["y"]) == ((set(), {5}), ({5}, set()))
    assert picked(shown, "pick", 2)["y"] == (set(), set())
    assert picked(shown, "all", 3)["y"][0] == set(range(64))
    pick(shown, "x", 5)
    assert marks(shown, 0, "pick").keys() == {"decides"}


def test_a_shown_run_has_a_prediction(open_page):
    """As ``tilescope view`` has it: on the arguments as they were before the run."""
    x = np.zeros(256, np.float32)
    source = "__global__ void k(float* x) { x[threadIdx.x] += 1; }"
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 256, [x], trace=True)
    assert run.trace.given["args"][0].max() == 0
    assert x.min() == 1
    assert '"time_ms":' in run.show().content
