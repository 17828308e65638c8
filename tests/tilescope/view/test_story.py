"""The story of a run: its numbers against the counters and NumPy, its sentences by their rules."""

import functools

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.observe.trace.access_counts import SHARED
from tests.tilescope.view.conftest import matmul, of_library
from tilescope.view.page import BUDGET, Story, _content
from tilescope.view.story import beats as kinds
from tilescope.view.story.beats import COPY, MAKE, STORE, WAIT
from tilescope.view.story.rows import SHARED_ROW
from tilescope.view.story.sentence import reaches_all_before, times
from tilescope.view.story.story import Teller

LAYOUTS = {
    "matmul_tiled": "product", "matmul_naive": "product", "matmul_tensor": "product",
    "matmul_wgmma": "product", "matmul_double_buffered": "product",
    "stencil_line": "strips", "reduction_shuffle": "strips",
    "scan_hillis_steele": "rows", "scan_blelloch": "rows", "reduction_shared": "rows",
    "sort_bitonic": "rows", "transpose_tiled": "planes", "convolution": "planes",
    "stencil_five_point": "planes", "histogram_shared": "atomics", "spmv_thread": "plain",
}  # fmt: skip


@functools.cache
def content(story):
    return _content([story], BUDGET)["runs"][0]["story"]


@functools.cache
def teller(story):
    run = _content([story], BUDGET)["runs"][0]
    return Teller(story.run, run["watched"], run["arrays"], run["shared"], run["sources"])


def blocks(story):
    """Steps, beats and reach of every recorded block."""
    found = []
    for batch in story.run.trace.batches:
        found += teller(story)._blocks(batch, batch.blocks, len(batch.events))
    return found


@pytest.mark.parametrize(("name", "layout"), LAYOUTS.items())
def test_layouts_are_chosen_from_the_trace(name, layout):
    size = "32" if layout == "product" and name != "matmul_wgmma" else None
    assert content(of_library(name, size))["layout"] == layout


@pytest.mark.parametrize("schedule", ["warps", "lockstep"])
@pytest.mark.parametrize(("size", "tile"), [(6, 2), (5, 2), (32, 16)])
def test_flows_are_those_of_the_counters(size, tile, schedule):
    story = matmul(size, tile, schedule=schedule)
    found = blocks(story)
    assert len(found) == story.run.trace.blocks
    counters = story.run.counters
    assert sum(beats.loads[-1] for _, _, beats, _ in found) == counters.global_load.accesses
    assert sum(beats.reads[-1] for _, _, beats, _ in found) == counters.shared_load.accesses


def test_beats_of_a_tiled_product():
    (_, steps, beats, reach), *_ = blocks(matmul(6, 2))
    assert len(steps.acts) == 43
    order = [COPY, COPY, WAIT, MAKE, MAKE, WAIT] * 3 + [STORE]
    assert [kind for _, kind, *_ in beats.beats] == order
    assert beats.phases == [(0, 14, 1), (14, 28, 2), (28, 42, 3), (42, 43, 0)]
    walked = [w for w in reach.windows if w[1] == 0]
    assert [w[3:] for w in walked] == [(0, 0, 2, 2), (0, 2, 2, 4), (0, 4, 2, 6)]


@pytest.mark.parametrize("name", ["matmul_tiled", "scan_hillis_steele", "convolution"])
def test_beats_and_segments_cover_each_step_of_a_warp_once(name):
    for _, steps, beats, _ in blocks(of_library(name, "32" if name == "matmul_tiled" else None))[
        :3
    ]:
        for warp in range(steps.lanes.shape[1]):
            own = np.flatnonzero(steps.lanes[:, warp])
            parts = [row for row in beats.beats if row[0] == warp]
            assert [a for _, _, a, *_ in parts] == sorted(a for _, _, a, *_ in parts)
            for step in own:
                assert sum(a <= step < b for _, _, a, b, _ in parts) == 1
            spans = [row for row in beats.segments if row[0] == warp]
            for step in own:
                assert sum(a <= step < b for _, _, a, b in spans) == 1


def test_a_copy_keeps_its_arrays_hue():
    told = content(matmul(6, 2))
    assert told["hues"] == {"0": 0, "1": 1, "2": 2}
    assert told["sources"] == [0, 1]
    assert told["variables"] == [0, 1]


def test_shared_reads_of_a_block_are_those_of_the_counters():
    story = matmul(6, 2)
    batch, steps, _, _ = blocks(story)[0]
    from tilescope.view.story.reach import shared_reads

    one = teller(story)
    found = shared_reads(batch, steps, one.roles, one.shared, one.extent)
    assert sum(int(counts.sum()) for counts in found.values()) == (
        story.run.counters.shared_load.accesses // 9
    )


@pytest.mark.parametrize("schedule", ["warps", "lockstep"])
def test_different_values_of_a_beat(schedule):
    """In each of 4 steps along k a block of 2 x 2 loads 2 values of A and 2 of B, each twice."""
    story = matmul(4, 2, "naive.cu", "naive", schedule=schedule)
    for _, _, beats, reach in blocks(story):
        loads = [beats.loads[end] - beats.loads[start] for _, _, start, end, _ in beats.beats]
        pairs = [pair for pair in zip(loads, reach.of_beats, strict=True) if pair != (0, 0)]
        assert pairs == [(8, 4)] * 4


SENTENCES = [
    (("matmul", 6, 2), "Each block walks 3 tiles of A and 3 tiles of B to make one tile of C."),
    (("matmul", 5, 2), "Tiles reach past the edge of the matrices. There the kernel stores zeros, "
     "which add nothing."),
    (("matmul_tiled", "64"), "Each value of A and B is loaded 4 times, not 64: "
     "16 threads share every load."),
    (("matmul_naive", "64"), "Each value of A and B is loaded 64 times from global memory: "
     "once for every product it enters."),
    (("stencil_line", "500"), "A block loads 134 values of in once and reads them 896 times "
     "for 128 values of out."),
    (("scan_hillis_steele", "300"), "8 rounds of additions, each twice as far, make every "
     "element of out a sum of all up to it in its block."),
    (("reduction_shared", None), "8 rounds, each with half as many threads, make one value of "
     "sums out of 256 in shared memory."),
    (("transpose_tiled", "64"), "Every value of A goes to its mirrored place in B, "
     "through shared memory."),
    (("softmax_rows", "3x70"), "Each of 3 blocks makes 1 row of out from 1 row of in."),
    (("layer_norm", "4x64"), "Each of 4 blocks makes 1 row of out from 1 row of in "
     "and all of gamma and beta."),
    (("spmv_thread", None), "1,024 threads in 8 blocks read starts, columns, values and x "
     "and write y."),
]  # fmt: skip


@pytest.mark.parametrize(("which", "said"), SENTENCES, ids=lambda item: str(item[0])[:20])
def test_sentences(which, said):
    story = matmul(*which[1:]) if which[0] == "matmul" else of_library(*which)
    assert "".join(text for text, _ in content(story)["title"]) == said


def test_phases_rows_and_sentence_count_the_same_rounds():
    made = content(of_library("scan_blelloch", "300"))
    (block, *_) = made["blocks"]
    assert "".join(text for text, _ in made["title"]).startswith("16 rounds between barriers")
    rounds = [row["name"] for row in block["rows"] if row["made"]]
    assert [phase[5] for phase in block["phases"]] == ["load", *rounds, "write"]
    assert rounds[-1] == "round 16"
    (block, *_) = content(matmul(6, 2))["blocks"]
    assert [phase[5] for phase in block["phases"]] == ["phase 1", "phase 2", "phase 3", "write"]


def test_what_supports_the_sentence_is_counted():
    story = of_library("matmul_tiled", "64")
    counters = story.run.counters
    said = "".join(text for text, _ in content(story)["more"])
    assert said == (
        f"{counters.global_load.accesses:,} global loads feed "
        f"{counters.shared_load.accesses:,} reads from shared memory. "
        f"All {counters.global_load.sectors:,} sectors are used in full."
    )


def support(story):
    return "".join(text for text, _ in content(story)["more"])


def test_work_of_rounds_is_counted():
    scan = sum(256 - (1 << number) for number in range(8))
    said = f"{scan:,} additions on 256 values, where 255 suffice; 9 barriers a block. "
    assert support(of_library("scan_hillis_steele", "300")).startswith(said)
    tree = [128 >> number for number in range(8)]  # threads of each round, up and down
    idle = 1 - 2 * sum(tree) / (128 * 16)
    said = f"{2 * sum(tree)} additions on 256 values; {idle:.0%} of the threads write nothing in a "
    assert support(of_library("scan_blelloch")).startswith(said)
    halved = [128 >> number for number in range(8)]
    idle = 1 - sum(halved) / (256 * 8)
    said = f"255 additions on 256 values; {idle:.0%} of the threads write nothing in a round"
    assert support(of_library("reduction_shared")).startswith(said)


IN_PLACE = """
__global__ void products(const float *in, float *out) {
    __shared__ float part[32];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    for (int reach = 1; reach < 32; reach *= 2) {
        float made = part[t];
        if (t >= reach) made *= part[t - reach];
        __syncthreads();
        part[t] = made;
        __syncthreads();
    }
    out[t] = part[t];
}
"""


def test_work_of_rounds_is_that_of_the_kernels_own_operation_and_barriers():
    kernel = Kernel.from_cuda(IN_PLACE, "products")
    args = [np.ones(32, np.float32), np.zeros(32, np.float32)]
    story = Story(simulator.launch(kernel, 1, 32, args, trace=True), "products")
    products = sum(32 - (1 << number) for number in range(5))
    said = f"{products} multiplications on 32 values, where 31 suffice; 11 barriers a block. "
    assert support(story).startswith(said)
    title = "".join(text for text, _ in content(story)["title"])
    assert title == (
        "5 rounds of multiplications, each twice as far, make every element of out a product of "
        "all up to it."
    )


def test_a_name_in_a_sentence_has_its_hue():
    title = content(matmul(6, 2))["title"]
    assert [part for part in title if part[1] >= 0] == [("A", 0), ("B", 1), ("C", 2)]


RENAMED = """
extern "C" __global__ void anything(const float* left, const float* top, float* made, int n) {
    int r = threadIdx.y, c = threadIdx.x;
    float s = 0;
    for (int k = 0; k < n; ++k) s += left[r * n + k] * top[k * n + c];
    made[r * n + c] = s;
}
extern "C" __global__ void sum(const float* left, const float* top, float* made, int n) {
    int i = threadIdx.y * n + threadIdx.x;
    made[i] = left[i] + top[i];
}
"""


@pytest.mark.parametrize(("entry", "layout"), [("anything", "product"), ("sum", "planes")])
def test_a_product_is_told_by_what_it_does(entry, layout):
    a, b, c = (np.ones((8, 8), np.float32) for _ in range(3))
    kernel = Kernel.from_cuda(RENAMED, entry)
    run = simulator.launch(kernel, 1, (8, 8), [a, b, c, 8], trace=True)
    from tilescope.view import Story

    assert content(Story(run, entry))["layout"] == layout


def test_rows_of_a_scan_are_its_partial_sums():
    story = of_library("scan_hillis_steele", "300")
    one = teller(story)
    batch, steps, _, _ = blocks(story)[0]
    layout = one.layout([part[1:] for part in blocks(story)], False)
    rows = one._rows(layout, batch, steps)
    given = story.inputs[0][:256].astype(np.float64)
    assert rows[0].place == 0
    assert rows[0].values.tolist() == given.tolist()
    for number, row in enumerate(row for row in rows if row.place == SHARED_ROW):
        reach = 1 << number
        expected = [given[max(0, i - reach + 1) : i + 1].sum() for i in range(256)]
        assert row.values.tolist() == expected
    assert rows[-1].values.tolist() == np.cumsum(given).tolist()
    assert reaches_all_before(rows)


@pytest.mark.parametrize("which", ["first", "second"])
def test_moments_of_a_missing_barrier(which):
    story = of_library(f"matmul_missing_{which}_barrier", "32")
    moments = content(story)["moments"]
    wanted = ["not yet written", "an old value"] if which == "first" else ["overwritten"]
    moments = [moment for moment in moments if moment["hazard"] == moments[0]["hazard"]]
    assert [moment["kind"] for moment in moments] == wanted
    for moment in moments:
        (_, steps, _, _) = next(part for part in blocks(story) if part[1].block == moment["block"])
        events = [steps.events[moment[name]] for name in ("step", "other_step")]
        read, write = (story.run.trace.batches[0].events[int(n)] for n in events)
        every = story.run.trace.program.watched
        assert (every[read.watched].what, every[write.watched].what) == ("load", "store")
        assert read.place == write.place == SHARED
        assert (moment["step"] < moment["other_step"]) == (which == "first")
        assert moment["got"] != moment["should"]
    assert content(story)["cause"] == "missing barrier"


def test_counts_in_words():
    assert times(np.array([3, 3])) == "3"
    assert times(np.array([1, 1066])) == "1 to 1,066"
    assert (kinds.COPY, kinds.FETCH) == (0, 5)  # story.js has the same


def test_two_runs_are_compared_by_what_differs_most():
    both = [of_library("matmul_naive", "64"), of_library("matmul_tiled", "64")]
    told = _content(both, BUDGET)["compare"]
    said = "".join(text for text, _ in told["title"])
    assert said == "matmul_tiled asks global memory 16 times less often than matmul_naive."
    rows = {row["name"]: row["values"] for row in told["rows"]}
    counters = [story.run.counters for story in both]
    assert rows["global loads"] == [c.global_load.accesses for c in counters]
    assert rows["shared reads"] == [c.shared_load.accesses for c in counters]
    assert "bank conflicts" not in rows
    assert _content(both[:1], BUDGET)["compare"] is None


def test_a_conflict_that_is_gone_is_said():
    both = [of_library("transpose_tiled", "64"), of_library("transpose_padded", "64")]
    said = "".join(text for text, _ in _content(both, BUDGET)["compare"]["title"])
    conflicts = both[0].run.counters.shared_load.bank_conflicts
    assert said == f"transpose_tiled has {conflicts:,} bank conflicts; transpose_padded has none."
