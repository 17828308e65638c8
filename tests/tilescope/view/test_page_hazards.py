"""The page's hazards in a real browser: both sides, their steps, and the fix."""

import dataclasses
import re

import numpy as np
import pytest

from tests.tilescope.view.conftest import of_library


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
    should = float(re.search(rf"should have got {number}; it got {number}", note)[1])
    at = expected_by(story, state)
    assert np.float32(should) == at[which]
    said = shown.page.locator("#hazard-note .events button").all_inner_texts()
    steps = [int(re.match(r"step (\d+):", text)[1]) for text in said]
    assert steps == sorted(steps)
    assert {step["write"], step["read"]} <= set(steps)
    assert sum("writes" in text for text in said) == at["writes"]
    if which == "first":
        assert read != wrote  # it came too early
    else:
        assert f"wrote {put:.9g}"[:12] in note  # it came too late: the next tile is there already
        assert " over " in note
    marked = shown.page.locator(".steps .source .marked i").all_inner_texts()
    assert sorted(map(int, marked)) == sorted({item.source.line for item in hazard.involved[:2]})
    bad = shown.page.evaluate(
        "[...document.querySelectorAll('#step-grids canvas')].flatMap(c =>"
        " c.tilescopeGrid.cells.marks.filter(m => m.kind === 'bad').map(m => m.i))"
    )
    assert len(bad) == 1
    number = "\u2460\u2461"[step_of(told, "write")]
    shown.page.locator("#hazard-note button", has_text=number).click()
    assert "writes Bs" in shown.text("#now") or "writes As" in shown.text("#now")


def expected_by(story, state):
    """What the racing write puts there, what stood there before, and how many writes there were."""
    trace = story.run.trace
    batch = next(b for b in trace.batches if state["block"] in b.blocks)
    seen = [e for e in batch.events if participates(e, batch, state["block"])]
    column = batch.blocks.index(state["block"])
    shape = (1, 16, 16, len(batch.blocks))
    first, last = sorted(state["seen"])
    found = []
    for number, event in enumerate(seen[: last + 1]):
        watched = trace.program.watched[event.watched] if event.watched >= 0 else None
        if watched is None or watched.what != "store" or event.place != state["place"]:
            continue
        offset, value = (
            np.broadcast_to(x, shape).reshape(256, -1)[:, column]
            for x in (event.offset, event.values[0])
        )
        on = np.broadcast_to(True if event.mask is None else event.mask, shape).reshape(256, -1)
        hit = np.flatnonzero((offset == state["offset"]) & on[:, column])
        found += [(number, value[thread]) for thread in hit]
    write = max(i for i, (number, _) in enumerate(found) if number in state["seen"])
    before = [number for number, _ in found if number < first]
    return {
        "first": found[write][1], "second": found[write - 1][1],
        "writes": len([n for n, _ in found if n >= (before[-1] if before else 0)]),
    }  # fmt: skip


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


@pytest.mark.parametrize("which", ["first", "second"])
def test_the_moment_is_a_pair_that_the_title_talks_about(open_page, which):
    """Threads of one warp under a title about a warp, of two under one about another warp."""
    story = of_library(f"matmul_missing_{which}_barrier", "32")
    shown = open_page(story)
    races = [hazard for hazard in story.run.hazards if hazard.row.is_race]
    assert {"another warp" in hazard.message for hazard in races} == {True, False}
    for hazard in races:
        shown.press("3")
        shown.page.locator(".finding, .also", has_text=hazard.message).last.locator(
            ".jump"
        ).first.click()
        one, two = shown.page.evaluate("tilescopePage.state.hazard.threads")
        assert one != two
        assert (one // 32 != two // 32) == ("another warp" in hazard.message), hazard.message


def test_the_fix_stands_beside_a_hazard(open_page):
    from simulator.hazards.hazard import Fix

    story = of_library("matmul_missing_first_barrier", "32")
    hazard = next(h for h in story.run.hazards if h.kind == "raw-race")
    hazard.fix = Fix(hazard.involved[0].source, (1,))
    shown = open_page(type(story)(story.run, "fixed"))
    assert f"Fix: {hazard.fix}" in shown.page.locator(".finding .fix").first.inner_text()


def test_one_fix_is_one_card_with_its_diff(open_page):
    """Hazards that one edit mends stand together; each has its own moment."""
    from simulator.hazards.hazard import Fix

    story = of_library("matmul_missing_first_barrier", "32")
    text = "--- a\n+++ b\n@@ -25,2 +25,3 @@\n <before>\n+__syncthreads();\n-gone\n"
    fix = Fix(story.run.hazards[0].involved[0].source, (1,), diff=text)
    found = [dataclasses.replace(h, fix=fix) for h in story.run.hazards if h.row.is_race]
    alone = dataclasses.replace(found[0], fix=None, involved=found[0].involved[::-1])
    run = dataclasses.replace(story.run, hazards=[*found, alone])
    shown = open_page(type(story)(run, "together"))
    cards = shown.page.locator(".finding")
    assert cards.count() == 2
    assert len(found) > 1
    shown_diff = cards.first.locator(".diff")
    assert shown_diff.inner_text().splitlines() == text.splitlines()[2:]
    assert shown_diff.locator(".added").inner_text().strip() == "+__syncthreads();"
    assert shown_diff.locator(".removed").inner_text().strip() == "-gone"
    assert cards.first.locator(".also").count() == len(found) - 1
    for i, hazard in enumerate(found):
        shown.press("3")
        cards.first.locator(".jump").nth(i).click()
        assert hazard.message in shown.text("#hazard-note")
    assert cards.nth(1).locator(".diff").count() == 0


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
