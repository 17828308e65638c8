"""The page in a real browser: what it shows against NumPy and the run's own counters."""

import re

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tilescope.view import Story

from .conftest import html, matmul, of_library

POSTS = [(4, 2), (6, 2), (3, 2)]


def terms(story, row, col, tile):
    """Products that a thread of the tiled kernel adds up, zeros of hanging tiles included."""
    a, b = story.inputs
    size = len(a)
    found = np.zeros(-(-size // tile) * tile)
    found[:size] = a[row] * b[:, col]
    return found


@pytest.mark.parametrize(("size", "tile"), POSTS)
def test_the_posts_runs_step_by_step(open_page, size, tile):
    story = matmul(size, tile)
    shown = open_page(story)
    row, col = size - 1, 1
    shown.click_cell("C", row, col)
    said = shown.text("#answer0")
    block, thread = (col // tile, row // tile), (col % tile, row % tile)
    assert f"C[{row}][{col}] belongs to thread ({thread[0]},{thread[1]})" in said
    assert f"of block ({block[0]},{block[1]})" in said
    own, all_read = loads(story, row, col, tile)
    assert f"read {own} elements of global memory itself" in said
    assert f"got {all_read - own} more" in said

    shown.press("2", "Home")
    expected = np.cumsum(terms(story, row, col, tile)).tolist()
    seen, positions = [], []
    while True:
        growth = shown.growth()
        assert growth == expected[: len(growth)]
        if len(growth) > len(seen):
            assert shown.text("#now").endswith(f"= {growth[-1]:g}.")
        seen = growth
        positions.append(shown.text("#at"))
        shown.press("ArrowRight")
        if shown.text("#at") == positions[-1]:
            break
    assert seen == expected
    assert seen[-1] == story.run.trace.maps[2].after.view(np.float32).reshape(size, size)[row, col]
    total = int(re.search(r"step (\d+) of (\d+)", positions[-1])[2])
    assert len(positions) == total
    assert "is done" in shown.text("#now")


def loads(story, row, col, tile):
    """Elements that a thread loads itself, and those it needs in all."""
    size = len(story.inputs[0])
    x, y = col % tile, row % tile
    own = sum(start + x < size for start in range(0, size, tile))
    own += sum(start + y < size for start in range(0, size, tile))
    return own, 2 * size


def test_each_step_names_elements_and_values(open_page):
    story = matmul(6, 2)
    a, b = story.inputs
    shown = open_page(story)
    shown.click_cell("C", 3, 4)
    shown.press("2", "Home")
    said = []
    for _ in range(12):
        said.append(shown.text("#now"))
        shown.press("ArrowRight")
    text = "\n".join(said)
    assert f"Thread (0,1) reads A[3][0] = {a[3, 0]:g}." in text
    assert f"Thread (0,1) writes As[1][0] = {a[3, 0]:g} (from A[3][0])." in text
    assert f"Thread (0,1) reads B[1][4] = {b[1, 4]:g}." in text
    assert f"reads Bs[1][0] = {b[1, 4]:g}, which it wrote." in text
    assert f"reads As[1][1] = {a[3, 1]:g}, which thread (1,1) wrote." in text


def test_source_and_ptx_lines_are_lit(open_page):
    shown = open_page(matmul(6, 2))
    shown.press("2", "Home", *["ArrowRight"] * 9)
    lit = shown.text(".source .code:not(.ptx) .now code")
    ptx = shown.text(".source .ptx .now code")
    assert "sum += As[y][k] * Bs[k][x];" in lit
    assert ptx.startswith(("ld.shared.f32", "fma.rn.f32"))
    line = int(shown.text(".source .ptx .now i"))
    assert " ".join(shown.trace.kernel.ptx.splitlines()[line - 1].split()) == ptx


def test_ragged_edges(open_page):
    shown = open_page(matmul(3, 2))
    shown.press("2")
    shown.page.select_option("#block", "3")
    caption = shown.page.locator(".threads figcaption").inner_text()
    assert "hatched: 3 threads that store nothing" in caption
    shown.press("Shift+ArrowRight")  # both tiles are full
    grid = shown.page.locator("#step-grids figure", has_text="As").first.locator("canvas")
    filled = grid.evaluate(
        "c => c.tilescopeGrid.cells.marks.filter(m => m.kind === 'fill').map(m => m.i)"
    )
    assert filled == [2, 3]  # row 3 of A does not exist
    lines = grid.evaluate("c => c.tilescopeGrid.lines(3)")
    assert lines[0] == "As[1][1] = 0"
    assert "a constant, not loaded" in lines[1]


def test_tooltip_tells_address_counts_and_who(open_page):
    shown = open_page(matmul(4, 2))
    figure = shown.page.locator("figure.grid", has_text="A").first
    lines = figure.locator("canvas").evaluate("c => c.tilescopeGrid.lines(6)")
    text = "\n".join(lines)
    assert lines[0].startswith("A[1][2] = ")
    assert "byte 24 of A" in text
    assert "read 2\u00d7, written 0\u00d7" in text
    assert "read by thread (0,1) of block (0,0), thread (0,1) of block (1,0)" in text
    shown.click_cell("C", 0, 0)
    canvas = figure.locator("canvas")
    box = canvas.bounding_box()
    shown.page.mouse.move(box["x"] + 40, box["y"] + 40)
    assert shown.page.locator("#tip").inner_text().startswith("A[0][")


def test_heat_map_is_the_count_of_reads(open_page):
    naive = matmul(6, 2, "naive.cu", "naive")
    tiled = matmul(6, 2)
    shown = open_page(naive, tiled)
    assert shown.text("#headline") == (
        "tiled<2> loads 2\u00d7 less often from global memory than naive: 216 against 432."
    )
    for i, each in enumerate((6, 3)):
        section = shown.page.locator("section.panel").nth(i)
        assert f"each element of A read {each}\u00d7" in section.inner_text()
        cells = section.locator("canvas").first.evaluate(
            "c => Array.from({length: 36}, (_, i) => c.tilescopeGrid.cells.text(i))"
        )
        assert cells == [str(each)] * 36


def test_64_cubed(open_page):
    story = matmul(64, 16)
    assert len(html(story).encode()) < 2_000_000
    shown = open_page(story)
    opened = shown.page.evaluate("performance.getEntriesByType('navigation')[0].duration")
    ready = shown.page.evaluate("performance.now()")
    assert opened < 1500
    assert ready < 3000
    shown.click_cell("C", 37, 21)
    block, thread = shown.page.evaluate("[tilescopePage.state.block, tilescopePage.state.thread]")
    assert (block, thread) == (2 * 4 + 1, 5 * 16 + 5)
    for view in "1234":
        shown.press(view, "Home")
        shown.page.wait_for_timeout(50)
        costs = shown.page.evaluate(STEPS)
        assert sorted(costs)[len(costs) // 2] < 50, costs
        assert sorted(costs)[-4] < 50, costs
    shown.press("2", "Home")
    frames = shown.page.evaluate(FRAMES)  # from the key until the frame is drawn
    assert sorted(frames)[len(frames) // 2] < 50, frames
    shown.press("2", "End")
    expected = np.cumsum(terms(story, 37, 21, 16)).tolist()
    assert shown.growth() == expected
    assert len(expected) == 64


FRAMES = """async () => {
  const costs = [];
  for (let i = 0; i < 30; i++) {
    const before = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    costs.push(performance.now() - before);
  }
  return costs;
}"""

STEPS = """() => {
  const costs = [];
  for (let i = 0; i < 60; i++) {
    const key = i % 20 === 19 ? {key: 'ArrowRight', shiftKey: true} : {key: 'ArrowRight'};
    const before = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true}));
    document.body.offsetHeight;
    costs.push(performance.now() - before);
  }
  return costs;
}"""


def test_larger_launches_are_sampled_and_the_page_says_so(open_page):
    story = of_library("matmul_tiled", "256")
    assert len(html(story).encode()) < 2_000_000
    shown = open_page(story)
    shown.press("2")
    said = shown.text("#sampled")
    blocks = shown.page.evaluate("tilescopePage.state.now.recorded.length")
    assert said == f"{blocks} of 256 blocks are recorded step by step; counts are of all."
    lines = shown.page.evaluate(
        "tilescopePage.views.matrices.parts[0].grids[0].lines(65535).join('\\n')"
    )
    assert "read 16\u00d7" in lines


def step_of(told, role):
    return [item[0] for item in told].index(role)


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_missing_barrier(open_page, which):
    story = of_library(f"matmul_missing_{which}_barrier", "32")
    shown = open_page(story)
    assert "hazards" in shown.text("#badge")
    cards = shown.page.locator(".finding")  # it opens where the hazards are
    kind = "raw-race" if which == "first" else "war-race"
    hazard = next(h for h in story.run.hazards if h.kind == kind and h.severity == "error")
    card = cards.filter(has_text=hazard.message).first
    card.locator(".jump").click()
    note = shown.text("#hazard-note")
    told = re.findall(r"(read|write) by thread \((\d+),(\d+)\), step (\d+)", note)
    assert [role for role, *_ in told] == ["write", "read"][:: 1 if which == "first" else -1]
    step = {role: int(number) for role, _, _, number in told}
    state = shown.page.evaluate("tilescopePage.state.hazard")
    assert int(told[1][1]) + 16 * int(told[1][2]) in state["threads"]
    wrote, read = (values(story, state, step_of(told, role)) for role in ("write", "read"))
    number = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
    got = float(re.search(rf"(?:got|read) {number}(?::| afterwards)", note)[1])
    assert np.float32(got) == read
    put = float(re.search(rf"wrote {number}", note)[1])
    assert np.float32(put) == wrote
    assert (read == wrote) == (step["write"] < step["read"])
    assert "Each thread for itself does them the other way round" in note
    if which == "first":
        assert read != wrote  # it came too early
    else:
        assert f"wrote {put:.9g}"[:12] in note  # it came too late: the next tile is there already
        assert " over " in note
    marked = shown.page.locator(".source .marked i").all_inner_texts()
    assert sorted(map(int, marked)) == sorted({item.source.line for item in hazard.involved[:2]})
    bad = shown.page.evaluate(
        "[...document.querySelectorAll('#step-grids canvas')].flatMap(c =>"
        " c.tilescopeGrid.cells.marks.filter(m => m.kind === 'bad').map(m => m.i))"
    )
    assert len(bad) == 1
    number = "\u2460\u2461"[step_of(told, "write")]
    shown.page.locator("#hazard-note button", has_text=number).click()
    assert "writes Bs" in shown.text("#now") or "writes As" in shown.text("#now")


def values(story, state, i):
    """What the trace has for one of the two accesses of a hazard."""
    trace = story.run.trace
    batch = next(b for b in trace.batches if state["block"] in b.blocks)
    seen = [e for e in batch.events if participates(e, batch, state["block"])]
    event = seen[state["seen"][i]]
    thread = state["threads"][i]
    full = np.broadcast_to(event.values[0], (1, 16, 16, len(batch.blocks)))
    return full.reshape(256, -1)[thread, batch.blocks.index(state["block"])]


def participates(event, batch, block):
    if event.mask is None:
        return True
    column = batch.blocks.index(block) if event.mask.shape[3] > 1 else 0
    return bool(event.mask[..., column].any())


def test_the_cure_stands_beside_a_hazard(open_page):
    from simulator.hazards.hazard import Cure

    story = of_library("matmul_missing_first_barrier", "32")
    hazard = next(h for h in story.run.hazards if h.kind == "raw-race")
    hazard.cure = Cure(hazard.involved[0].source, (1,))
    shown = open_page(type(story)(story.run, "cured"))
    assert f"Cure: {hazard.cure}" in shown.page.locator(".finding .cure").first.inner_text()


def test_warps_arrive_one_by_one(open_page):
    shown = open_page(matmul(16, 16))
    shown.press("3", "Home")
    waiting = []
    while "opens" not in (said := shown.text("#arrivals")):
        found = re.search(r"(\d+) of 8 warps? waits? at the barrier in line (\d+)", said)
        if found and (not waiting or waiting[-1] != int(found[1])):
            waiting.append(int(found[1]))
            assert found[2] == "19"
        shown.press("ArrowRight")
    assert waiting == [1, 2, 3, 4, 5, 6, 7, 8]
    assert shown.page.locator("#states .waits").count() in (0, 8)


def test_sectors_are_those_that_the_run_counted(open_page):
    story = of_library("matmul_naive_strided", "64")
    shown = open_page(story)
    shown.press("4")
    line = next(line for line in story.run.by_line() if line.counters.global_load.requests)
    each = line.counters.global_load.sectors / line.counters.global_load.requests
    found = []
    options = shown.page.locator("#access-line option")
    for i in range(options.count()):
        if "ld.global" not in options.nth(i).inner_text():
            continue
        shown.page.select_option("#access-line", index=i)
        said = shown.text("#access")
        number = int(re.search(r"in (\d+) sectors?", said)[1])
        assert shown.page.locator(".sectors tbody tr").count() == number
        found.append(number)
    assert np.mean(found) == each
    row = shown.page.locator("#counters tbody tr").first.inner_text()
    assert f"{line.counters.global_load.sectors:,}" in row


def test_banks_are_those_that_the_run_counted(open_page):
    story = of_library("transpose_tiled", "64")
    shown = open_page(story)
    shown.press("4")
    traffic = story.run.counters.shared_load
    option = shown.page.locator("#access-line option", has_text="ld.shared").first
    shown.page.select_option("#access-line", value=option.get_attribute("value"))
    waves = traffic.wavefronts // traffic.requests
    assert waves == 32
    assert f"{waves} wavefronts: bank conflicts add {waves - 1}." in shown.text("#access")
    assert shown.page.locator(".banks tbody tr").count() == waves


WIDE = """
extern "C" __global__ void wide(double* out, float4* four, float2* two) {
    __shared__ double d[64];
    __shared__ float4 q[32];
    __shared__ float2 p[64];
    int t = threadIdx.x;
    d[t] = t;
    q[t] = make_float4(t, t, t, t);
    p[t] = make_float2(t, t);
    p[t + 32] = make_float2(t, t);
    __syncthreads();
    out[t] = d[t % 16];
    out[t + 32] = d[t / 2];
    four[t] = q[t];
    four[t + 32] = q[t / 2];
    four[t + 64] = q[t * 4 % 32];
    two[t] = p[t * 2];
    if (t % 3)
        two[t + 32] = p[t / 4];
}
"""


def test_banks_of_wide_accesses_are_the_simulators(open_page):
    arrays = [np.zeros(64), np.zeros(96 * 4, np.float32), np.zeros(128, np.float32)]
    run = simulator.launch(Kernel.from_cuda(WIDE, "wide"), 1, 32, arrays, trace=True)
    shown = open_page(Story(run))
    shown.press("4")
    options = shown.page.locator("#access-line option", has_text=".shared")
    found = [0, 0]
    for value in [option.get_attribute("value") for option in options.all()]:
        shown.page.select_option("#access-line", value=value)
        said = re.search(
            r"(\d+) wavefronts?(?:, in groups of \d+ lanes)?: (bank conflicts add (\d+)|no bank)",
            shown.text("#access"),
        )
        assert said
        assert shown.page.locator(".banks tbody tr").count() == int(said[1])
        found[0] += int(said[1])
        found[1] += int(said[3] or 0)
    counters = run.counters
    both = [counters.shared_load, counters.shared_store]
    assert found == [sum(t.wavefronts for t in both), sum(t.bank_conflicts for t in both)]
    assert found[1] > 0


def test_the_table_of_lines_sorts(open_page):
    story = matmul(6, 2)
    shown = open_page(story)
    shown.press("4")
    shown.page.locator("#counters th button", has_text="Warp instructions").click()
    cells = shown.page.locator("#counters tbody tr td:last-child span").all_inner_texts()
    numbers = [int(cell.replace(",", "")) for cell in cells]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == story.run.counters.warp_instructions
    shown.page.locator("#counters th button", has_text="Warp instructions").click()
    again = shown.page.locator("#counters tbody tr td:last-child span").all_inner_texts()
    assert again == cells[::-1]


def test_roofline_and_occupancy_are_those_of_the_device_package(open_page):
    from device.gpus import GPUS
    from device.occupancy import occupancy
    from device.roofline import roofline

    story = matmul(64, 16)
    shown = open_page(story)
    shown.press("4")
    names = [gpu.name for gpu in GPUS.values()]
    for key in ("a100", "h200"):
        gpu = GPUS[key]
        shown.page.select_option("#gpu", index=names.index(gpu.name))
        arrays = [story.run.trace.maps[n].before for n in range(3)]
        placed = roofline(gpu, story.run.counters, arrays)
        rate = placed.attainable(placed.worst) / 1e12
        assert f"at most {float(f'{rate:.3g}'):.3g}" in shown.text("#roofline").replace("0 T", " T")
        held = occupancy(gpu, 256, None, story.run.shared_bytes)
        said = shown.text("#occupancy")
        assert said.startswith(f"{held.blocks} blocks of 256 threads fit")
        assert f"{held.warps} of {held.most_warps} warps" in said


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


def test_a_race_between_blocks_shows_both(open_page):
    story = of_library("faulty_blocks_raw")
    shown = open_page(story)
    shown.page.locator(".jump").first.click()
    (hazard,) = story.run.hazards
    buttons = shown.page.locator("#hazard-note button")
    assert buttons.count() == 3
    buttons.nth(1).click()
    block = hazard.involved[1].block
    assert shown.page.input_value("#block") == str(block[0])
    thread = hazard.involved[1].thread
    assert shown.text("#now").startswith(f"Thread ({thread[0]},{thread[1]}) reads work[")


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
