"""What went into a picked output, in a real browser, against NumPy."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.conftest import matmul, of_library
from tilescope.view import Story


def picked(shown, name, i):
    """Pick an output element: by array what went into it, and what only decided."""
    shown.page.evaluate(
        "([name, i]) => { const page = tilescopePage;"
        " page.pick(page.state.now.arrays.find((a) => a.name === name), i); }",
        [name, i],
    )
    return {
        other: ({i for i, decides in found if not decides}, {i for i, decides in found if decides})
        for other, found in shown.page.evaluate("tilescopePage.fed()").items()
    }


def went(shown, name, i, of):
    """What of one array went into an element."""
    return picked(shown, name, i).get(of, (set(), set()))[0]


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
        assert went(shown, out.name, block, given.name) == set(
            range(block * each, (block + 1) * each)
        )
        assert shown.text("#say") == f"{out.name}[{block}] is made of {each} elements of in."


def test_a_product_is_fed_by_a_row_and_a_column_in_order(open_page):
    shown = open_page(matmul(6, 2))
    assert went(shown, "C", 6 * 4 + 1, "A") == set(range(24, 30))
    assert went(shown, "C", 6 * 4 + 1, "B") == set(range(1, 36, 6))
    assert shown.text("#say") == "C[4][1] is made of 6 elements of A and 6 elements of B."
    shown.press("ArrowRight")
    assert shown.state("fed") is None


def test_a_transpose_moves_each_element_through_another_thread(open_page):
    story = of_library("transpose_tiled", "64")
    shown = open_page(story)
    maps = story.run.trace.maps.values()
    given, out = (next(m for m in maps if getattr(m, way).any()) for way in ("reads", "writes"))
    assert went(shown, out.name, 5 * 64 + 40, given.name) == {40 * 64 + 5}


def test_a_softmax_is_fed_by_its_whole_row(open_page):
    """Its sum went through shuffles and shared memory, to every thread of the block."""
    story = of_library("softmax_rows")
    shown = open_page(story)
    maps = story.run.trace.maps.values()
    given, out = (next(m for m in maps if getattr(m, way).any()) for way in ("reads", "writes"))
    width = out.shape[-1]
    assert went(shown, out.name, 5, given.name) == set(range(width))


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
    assert went(shown, out.name, bin_, given.name) == set(np.flatnonzero(data == bin_).tolist())


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
    assert (went(shown, "y", 7, "x"), went(shown, "y", 7, "at")) == ({42}, {7})
    assert (went(shown, "z", 33, "x"), went(shown, "z", 33, "at")) == ({32, 33, 34}, set())


def test_a_product_by_tensor_cores_is_fed_by_a_row_and_a_column(open_page):
    """By cp.async, ldmatrix (one transposed) and mma, in halves of registers; and back."""
    story = of_library("matmul_tensor", "64")
    shown = open_page(story)
    a, b = (set(range(k, n, step)) for k, n, step in ((320, 384, 1), (10, 4096, 64)))
    assert picked(shown, "C", 5 * 64 + 10) == {"A": (a, set()), "B": (b, set())}
    assert "way ends" not in shown.text("#say")


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


def test_what_decided_is_told_apart(open_page):
    """Where a row ends decides how often the loop runs; where it begins goes into indices."""
    story = of_library("spmv_thread", "64x32")
    shown = open_page(story)
    starts = np.asarray(story.inputs[0])
    found = picked(shown, "y", 10)
    assert found["starts"] == ({10}, {11})
    inside = set(range(starts[10], starts[11]))
    assert found["values"] == found["columns"] == (inside, set())
    assert "1 more decided on what happened" in shown.text("#say")


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
    assert found == {"x": (set(range(40, 48)), set())}
    found = picked(shown, "pick", 5)
    assert (found["x"], found["y"]) == ((set(), {5}), ({5}, set()))
    assert "y" not in picked(shown, "pick", 2)
    assert picked(shown, "all", 3)["y"][0] == set(range(64))


def test_a_shown_run_has_a_prediction(open_page):
    """As ``tilescope view`` has it: on the arguments as they were before the run."""
    x = np.zeros(256, np.float32)
    source = "__global__ void k(float* x) { x[threadIdx.x] += 1; }"
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 256, [x], trace=True)
    assert run.trace.given["args"][0].max() == 0
    assert x.min() == 1
    assert '"time_ms":' in run.show().content
