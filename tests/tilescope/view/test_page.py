"""The page in a real browser: what it shows against NumPy and the run's own counters."""

import re

import numpy as np
import pytest

from tests.tilescope.view.conftest import html, matmul, of_library

POSTS = [(4, 2), (6, 2), (5, 2)]


def products(story, row, col, tile):
    """Sums that a thread of the tiled kernel goes through, zeros of hanging tiles included."""
    a, b = story.inputs
    size = len(a)
    found = np.zeros(-(-size // tile) * tile)
    found[:size] = a[row] * b[:, col]
    return np.cumsum(found).tolist()


@pytest.mark.parametrize(("size", "tile"), POSTS)
def test_sums_grow_as_in_numpy(open_page, size, tile):
    story = matmul(size, tile)
    shown = open_page(story)
    row, col = size - 1, 1
    block = (row // tile) * story.run.grid[0] + col // tile
    shown.look(block=block, thread=(row % tile) * tile + col % tile, pos=0)
    expected = products(story, row, col, tile)
    assert f"makes C[{row}][{col}]" in shown.text(".thread h3")
    grown = []
    beats = shown.state("beats.length")
    for _ in range(beats):
        shown.press("ArrowRight")
        terms = shown.terms()
        assert terms == expected[: len(terms)]
        grown.append(len(terms))
    assert grown[-1] == len(expected)
    assert float(shown.text(".thread .big")) == expected[-1]
    assert shown.state("pos") == shown.state("story.count")
    made = story.run.trace.maps[2].after.view(np.float32).reshape(size, size)
    assert expected[-1] == made[row, col]


def test_it_opens_at_the_first_use_of_a_tile(open_page):
    shown = open_page(matmul(6, 2))
    assert shown.text("#say").startswith("Multiply and add. All 4 threads use column 0 of As")
    assert shown.text("#count") == "4 of 19"
    assert shown.text("#finding") == (
        "Each block walks 3 tiles of A and 3 tiles of B to make one tile of C."
    )


def test_ragged_tiles_open_at_the_edge(open_page):
    shown = open_page(matmul(5, 2))
    assert shown.state("block") == 8
    assert shown.text("#say").startswith("Load.")
    assert "Block (2,2)" in shown.text(".tl-head")
    assert "nothing was loaded" in shown.text(".code .now .val") or "A[4][4]" in shown.text(
        ".code:not(.ptx)"
    )


def test_the_line_of_a_beat_has_its_values(open_page):
    story = matmul(6, 2)
    a, b = story.inputs
    shown = open_page(story)
    shown.look(block=0, thread=0, pos=0)
    said = []
    for _ in range(5):
        shown.press("ArrowRight")
        said.append((shown.text(".code .now i"), shown.text(".code .now .val")))
    assert said[0] == ("17", f"As[0][0] = A[0][0] = {a[0, 0]:g}")
    assert said[1] == ("18", f"Bs[0][0] = B[0][0] = {b[0, 0]:g}")
    assert said[2] == ("19", "all 4 threads are here: go on")
    first, second = a[0, 0] * b[0, 0], a[0, 1] * b[1, 0]
    assert said[3] == ("21", f"0 + {a[0, 0]:g} × {b[0, 0]:g} = {first:g}")
    assert said[4] == ("21", f"{first:g} + {a[0, 1]:g} × {b[1, 0]:g} = {first + second:g}")


def test_the_flow_counts_loads_and_reads(open_page):
    story = matmul(6, 2)
    shown = open_page(story)
    numbers = "all => all.map(one => Number(one.textContent.replaceAll(',', '')))"
    for pos in (0, 7, 43):
        shown.look(block=0, pos=pos)
        shown_now = shown.page.eval_on_selector_all(".flow .passes > b", numbers)
        loads, reads = (int(shown.state(f"story.{name}[{pos}]")) for name in ("loads", "reads"))
        assert shown_now == [loads, reads]
    assert shown_now == [24, 48]


def test_what_an_element_holds_is_said_where_the_pointer_is(open_page):
    story = matmul(6, 2)
    a, _ = story.inputs
    shown = open_page(story)
    said = shown.page.evaluate(
        """() => {
          const spots = tilescopePage.stage.layout.lens.spots;
          const say = (name, x, y) => spots.find((s) => s.grid?.name === name).say(x, y)
            .map(([text]) => text).join("");
          return [say("A", 28, 1), say("As", 1, 80), say("sum", 1, 1)];
        }"""
    )
    said = [text.replace("\u2212", "-") for text in said]
    assert said[0] == f"A[0][1] = {a[0, 1]:g}, read 3 times by the whole launch."
    assert said[1].startswith(f"As[1][0] = {a[1, 0]:g}, written by thread (0,1) in step 2.")
    assert said[2].startswith("The sum of thread (0,0) is ")


def test_picking_a_thread_and_a_block(open_page):
    shown = open_page(matmul(6, 2))
    shown.click_spot("sum", 100, 10)
    assert shown.state("thread") == 1
    shown.click_spot("C", 5.5 * 27, 5.5 * 27)
    assert (shown.state("block"), shown.state("thread")) == (8, 3)
    assert "makes C[5][5]" in shown.text(".thread h3")


def test_a_click_on_a_line_goes_to_its_next_beat(open_page):
    shown = open_page(matmul(6, 2))
    steps = []
    for _ in range(2):
        shown.page.locator(".code [data-line='21']").click()
        assert shown.text(".code .now i") == "21"
        steps.append(shown.state("pos"))
    assert steps[1] > steps[0] > 0


def test_the_timeline_is_the_scrubber(open_page):
    shown = open_page(matmul(6, 2))
    picture = shown.page.locator(".tl-picture")
    box = picture.bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] - 4, box["y"] + 30)
    assert shown.state("pos") == 43
    assert picture.get_attribute("aria-valuetext") == "step 43 of 43"
    heights = shown.page.locator(".tl-picture .opens").count()
    assert heights == story_releases(matmul(6, 2))


def story_releases(story):
    return sum(event.watched == -1 for event in story.run.trace.batches[0].events)


def test_64_cubed(open_page):
    """Under 2 MB, ready in a second, a step in 16 ms: see the printed times."""
    story = of_library("matmul_tiled", "64")
    assert len(html(story)) < 2_000_000
    shown = open_page(story)
    ready, each = shown.page.evaluate(
        """() => {
          const { state } = tilescopePage;
          state.goBeat(0);
          const times = [];
          for (let i = 0; i < state.beats.length; i++) {
            const begun = performance.now();
            state.goBeat(i + 1);
            times.push(performance.now() - begun);
          }
          times.sort((a, b) => a - b);
          return [performance.getEntriesByType("navigation")[0].domComplete, times];
        }"""
    )
    middle, worst = each[len(each) // 2], each[-1]
    print(f"{len(html(story)):,} characters, ready {ready:.0f} ms, a step {middle:.1f} ms"
          f" (at most {worst:.1f})")  # fmt: skip
    assert middle < 50
    sums = shown.page.evaluate("tilescopePage.state.story.count")
    assert sums == 1744


def test_several_runs_on_one_page(open_page):
    shown = open_page(matmul(6, 2, "naive.cu", "naive"), matmul(6, 2))
    assert shown.text("h1") == "naive"
    shown.page.locator(".runs button").nth(1).click()
    assert shown.text("h1") == "tiled<2>"
    assert "tiles of A" in shown.text("#finding")


def test_larger_launches_are_sampled_and_the_page_says_so(open_page):
    shown = open_page(of_library("reduction_shared"))
    said = re.search(r"(\d+) of (\d+) blocks recorded", shown.text(".tl-head"))
    assert said
    assert int(said[1]) < int(said[2]) == 256


def test_two_runs_stand_beside_each_other(open_page):
    both = [of_library("matmul_naive", "64"), of_library("matmul_tiled", "64")]
    shown = open_page(*both)
    assert shown.text("#compare-title").startswith("matmul_tiled asks global memory 16 times")
    sides = shown.page.locator(".cmp-side .big")
    assert sides.count() == 2
    shown.page.locator("#share").fill("100")
    for i, story in enumerate(both):
        loads = story.run.counters.global_load.accesses // 16  # blocks
        assert sides.nth(i).inner_text() == f"{loads:,}"
    bars = shown.page.locator(".cmp .bar-line b").all_inner_texts()
    counted = [f"{story.run.counters.global_load.accesses:,}" for story in both]
    assert bars[:2] == counted
    ratio = shown.page.locator(".cmp .bar-line small").first
    one, other = (story.run.counters.global_load.accesses for story in both)
    assert ratio.inner_text() == f"{one / other:g}\u00d7 fewer"


def test_both_runs_stand_at_the_same_term_of_a_sum(open_page):
    both = [of_library("matmul_naive", "64"), of_library("matmul_tiled", "64")]
    shown = open_page(*both)
    said = shown.page.locator(".cmp-code .val").all_inner_texts()
    assert said[0] == said[1]
    assert shown.text("[for=share]") == "24 of 64 terms of thread (5,2)"
    tops = shown.page.locator(".cmp-code").evaluate_all("all => all.map(c => c.offsetTop)")
    assert tops[0] == tops[1]
    assert shown.text(".thread .mute") == "24 of 64 products added"
    shown.press("ArrowRight")
    after = shown.page.locator(".cmp-code .val").all_inner_texts()
    assert after[0] == after[1] != said[0]
    assert shown.text("[for=share]") == "25 of 64 terms of thread (5,2)"


@pytest.mark.parametrize("is_cut", [False, True])
def test_counts_of_a_recording_that_is_cut_say_so(open_page, is_cut):
    story = matmul.__wrapped__(12, 4)
    for batch in story.run.trace.batches if is_cut else ():
        del batch.events[len(batch.events) // 2 :]
        batch.full = True
    shown = open_page(story)
    shown.press("End")
    texts = [
        shown.text(".thread .mute"), shown.text(".tl-head b"), shown.text("#count"),
        shown.page.evaluate("tilescopePage.stage.layout.lens.root.textContent"),
    ]  # fmt: skip
    assert ["recorded" in text for text in texts] == [is_cut] * 4
    assert ("\u2713" in texts[3]) != is_cut  # the block is done only if its end is recorded
