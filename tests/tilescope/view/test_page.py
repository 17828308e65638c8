"""The page in a real browser: what it shows against NumPy and the run's own counters."""

import re

import numpy as np
import pytest

from tests.tilescope.view.conftest import html, matmul, of_library

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
    assert f"went {all_read} elements of global memory: {own} that the thread read itself" in said
    assert f", {all_read - own} that other threads read and passed on" in said

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
    lit = shown.text(".steps .source .code:not(.ptx) .now code")
    ptx = shown.text(".steps .source .ptx .now code")
    assert "sum += As[y][k] * Bs[k][x];" in lit
    assert ptx.startswith(("ld.shared.f32", "fma.rn.f32"))
    line = int(shown.text(".steps .source .ptx .now i"))
    assert " ".join(shown.trace.kernel.ptx.splitlines()[line - 1].split()) == ptx


@pytest.mark.parametrize("view", ["2", "3"])
def test_a_click_on_a_source_line_goes_to_its_next_step(open_page, view):
    shown = open_page(matmul(6, 2))
    shown.press(view, "Home")
    panel = shown.page.locator(".source").filter(visible=True)
    line = panel.locator("button.line", has_text="sum += As[y][k] * Bs[k][x];")
    steps = []
    for _ in range(2):
        line.click()
        assert "sum +=" in panel.locator(".code:not(.ptx) .now code").inner_text()
        steps.append(shown.page.evaluate("tilescopePage.state.step"))
    assert steps[1] > steps[0] > 0


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
    figure = shown.figure("A")
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
        section = shown.page.locator("section.panel", has=shown.page.locator(".summary")).nth(i)
        said = section.locator(".summary").inner_text()
        assert said.startswith(f"Each element of A and B is read {each}\u00d7; C is written.")
        cells = section.locator("canvas").first.evaluate(
            "c => Array.from({length: 36}, (_, i) => c.tilescopeGrid.cells.text(i))"
        )
        assert cells == [f"{each}\u00d7"] * 36


def test_64_cubed(open_page):
    story = matmul(64, 16)
    assert len(html(story).encode()) < 2_000_000
    shown = open_page(story)
    shown.click_cell("C", 37, 21)
    block, thread = shown.page.evaluate("[tilescopePage.state.block, tilescopePage.state.thread]")
    assert (block, thread) == (2 * 4 + 1, 5 * 16 + 5)
    for view in "1234":
        shown.press(view, "Home")
        shown.page.wait_for_timeout(50)
        steps = shown.page.evaluate(STEPS)
        assert len(steps) == 60
        assert steps == sorted(set(steps)) or view == "1", view  # the arrays have no steps
    shown.press("2", "End")
    expected = np.cumsum(terms(story, 37, 21, 16)).tolist()
    assert shown.growth() == expected
    assert len(expected) == 64


STEPS = """async () => {
  const steps = [];
  for (let i = 0; i < 60; i++) {
    const key = i % 20 === 19 ? {key: 'ArrowRight', shiftKey: true} : {key: 'ArrowRight'};
    document.body.dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true}));
    if (i % 2) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    steps.push(tilescopePage.state.step);
  }
  return steps;
}"""


@pytest.mark.slow
def test_larger_launches_are_sampled_and_the_page_says_so(open_page):
    story = of_library("matmul_tiled", "128")
    assert len(html(story).encode()) < 2_000_000
    shown = open_page(story)
    shown.press("2")
    said = shown.text("#sampled")
    blocks = shown.page.evaluate("tilescopePage.state.now.recorded.length")
    assert said.startswith(
        f"{blocks} of 64 blocks are recorded step by step; counts are of all. For another"
    )
    lines = shown.page.evaluate(
        "tilescopePage.views.matrices.parts[0].grids[0].lines(16383).join('\\n')"
    )
    assert "read 8\u00d7" in lines


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
    from simulator.gpus.occupancy import occupancy
    from simulator.gpus.table import GPUS
    from simulator.prediction.roofline import roofline

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
