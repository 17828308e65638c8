"""Moments of hazards: each number held to the trace, and to what the faulty kernel's text says."""

import json
import re

import numpy as np
import pytest

import simulator
from kernels import library
from simulator.observe.trace.trace import RELEASE
from tests.kernels.library.test_faulty import TABLE
from tests.tilescope.view.conftest import html, of_library
from tilescope.view import Story, page


def told(name):
    """The story of a faulty kernel, and its run's trace."""
    story = of_library(name)
    return content(html(story)), story.run


def content(text):
    """The story in a page."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    return data["runs"][0]["story"]


def sentence(moment):
    return "".join(text for text, _ in moment["title"])


def accesses(run, block, moment):
    """Thread and byte offset of each access of the warp, from the event itself."""
    (batch,) = run.trace.batches
    at = batch.blocks.index(block)
    found = []
    for event in batch.events:
        if event.watched < 0 or event.offset is None:
            continue
        line = run.trace.program.watched[event.watched].instruction.line
        if line == run.hazards[moment["hazard"]].involved[0].ptx_line:
            on = np.broadcast_to(event.mask, (1, 1, 64, len(batch.blocks)))[0, 0, :, at]
            offsets = np.broadcast_to(event.offset, (1, 1, 64, len(batch.blocks)))[0, 0, :, at]
            found += zip(np.flatnonzero(on).tolist(), offsets[on].tolist(), strict=True)
    return found


@pytest.mark.parametrize("name", ["faulty_no_guard", "faulty_neighbour", "faulty_past_shared"])
def test_an_access_outside_has_the_elements_of_its_warp(name):
    story, run = told(name)
    (moment,) = story["moments"]
    (hazard,) = run.hazards
    assert (moment["picture"], moment["element"]) == ("outside", hazard.element)
    own = {thread: offset // 4 for thread, offset in accesses(run, moment["block"], moment)}
    cells = dict(moment["cells"])
    warp = moment["thread"] // 32
    assert cells == {t: e for t, e in own.items() if t // 32 == warp}
    assert cells[moment["thread"]] == hazard.element
    assert f"[{hazard.element}]; {hazard.variable} has " in sentence(moment)
    times = "once" if hazard.count == 1 else f"{hazard.count} times"
    assert f"outside {times}." in moment["more"]


def test_what_no_thread_has_written_is_read():
    story, run = told("faulty_uninitialised_shared")
    (moment,) = story["moments"]
    assert (moment["picture"], moment["kind"]) == ("shared", "written by no thread")
    assert (
        sentence(moment) == "Thread (0) of block (0) reads tile[63], which no thread has written."
    )
    assert sorted(e for _, e in moment["cells"]) == list(range(32, 64))  # threads 32.. write none
    assert f"{run.hazards[0].count} times" in moment["more"]


@pytest.mark.parametrize("name", ["faulty_missing_wait", "faulty_missing_commit"])
def test_a_copy_in_flight_has_its_two_steps(name):
    story, run = told(name)
    (moment,) = story["moments"]
    write, read = run.hazards[0].involved
    assert moment["kind"] == "still under way"
    assert [(line, text) for _, _, line, text in moment["tags"]] == [
        (read.source.line, "reads"), (write.source.line, "copies")
    ]  # fmt: skip
    assert moment["other_thread"] == moment["element"] == write.thread[0]
    assert {element for _, element in moment["cells"]} == set(range(32, 64))
    assert moment["got"] == of_library(name).inputs[0][moment["element"]]
    assert f"line {write.source.line}" in moment["more"]


STANDING = {
    "faulty_barrier_skipped": [("waits", 15, range(32)), ("loops", 18, range(32, 64))],
    "faulty_barrier_elsewhere": [("waits", 32, range(32)), ("waits", 35, range(32, 64))],
    "faulty_barrier_after_exit": [("waits", 62, range(48)), ("left", 0, range(48, 64))],
    "faulty_barrier_rounds": [("waits", 50, range(0, 64, 2)), ("waits", 50, range(1, 64, 2))],
    "faulty_barrier_count": [("waits", 74, range(64))],
    "faulty_endless_wait": [("loops", 114, range(64))],
}


@pytest.mark.parametrize("name", STANDING)
def test_threads_that_stand_still_are_grouped_by_what_they_do(name):
    story, run = told(name)
    moment = story["moments"][0]
    groups = [
        (g["state"], g["line"], [t for a, b in g["ranges"] for t in range(a, b)])
        for g in moment["groups"]
    ]
    assert groups == [(state, line, list(threads)) for state, line, threads in STANDING[name]]
    assert sum(g["count"] for g in moment["groups"]) == 64
    assert all(f"line {line}" in sentence(moment) for state, line, _ in groups if line)
    (batch,) = run.trace.batches
    every = run.trace.program.watched
    steps = [e for e in batch.events if e.watched == RELEASE or every[e.watched].what != "exit"]
    assert moment["step"] < len(steps)


def test_a_barrier_that_never_opens_is_waited_for_to_the_end():
    story, _ = told("faulty_barrier_skipped")
    block = story["blocks"][0]
    last = max(tag[0] for tag in story["moments"][0]["tags"])
    assert block["count"] == last + 1


UNORDERED = {
    "faulty_blocks_raw": "Thread (63) of block (1) writes work[127], which thread (0) of block (0) "
    "reads.",
    "faulty_global_waw": "Thread (0) and thread (32) both write out[0].",
    "faulty_lanes_waw": "Thread (0) and thread (1) both write tile[0].",
    "faulty_last_block": "Thread (0) of block (0) writes work[0], which thread (0) of block (1) "
    "reads.",
}


@pytest.mark.parametrize("name", UNORDERED)
def test_two_accesses_in_no_order(name):
    story, run = told(name)
    (moment,) = story["moments"]
    (hazard,) = run.hazards
    assert (moment["picture"], moment["kind"]) == ("accesses", "in no order")
    assert sentence(moment) == UNORDERED[name]
    (batch,) = run.trace.batches
    for k, (prefix, part) in enumerate(zip(("", "other_"), hazard.involved[:2], strict=True)):
        block, thread = moment[f"{prefix}block"], moment[f"{prefix}thread"]
        assert (block, thread) == (part.block[0], part.thread[0])
        cells = {tuple(cell) for cell in moment["cells" if not k else "other_cells"]}
        assert (thread, hazard.element) in cells
        lane = 0, 0, thread, batch.blocks.index(block)
        extent = 1, 1, run.block[0], len(batch.blocks)
        event = next(
            e
            for e in batch.events
            if e.watched >= 0
            and (e.mask is None or np.broadcast_to(e.mask, extent)[lane])
            and run.trace.program.watched[e.watched].instruction.line == part.ptx_line
        )
        value = np.broadcast_to(event.values[0], extent)[lane]
        assert moment["values"][k] == value.view(np.int32)


def test_an_access_that_is_not_allowed_has_the_elements_of_its_warp():
    story, run = told("faulty_read_only")
    (moment,) = story["moments"]
    assert (moment["picture"], moment["kind"]) == ("accesses", "read only")
    own = [(thread, offset // 4) for thread, offset in accesses(run, moment["block"], moment)]
    warp = moment["thread"] // 32
    assert [tuple(cell) for cell in moment["cells"]] == [one for one in own if one[0] // 32 == warp]
    assert (moment["other_step"], moment["other_cells"]) == (-1, [])
    assert sentence(moment) == "Write to read-only in[0]."


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_hazard_of_a_launch_has_a_moment(row):
    """Also a trap, which is no step, and a bulk copy from shared memory."""
    story, run = told(f"faulty_{row.name}")
    assert {moment["hazard"] for moment in story["moments"]} == set(range(len(run.hazards)))
    first = run.hazards[story["moments"][0]["hazard"]]
    assert first.severity == min(hazard.severity for hazard in run.hazards)  # errors first
    counts = {block["block"]: block["count"] for block in story["blocks"]}
    for moment in story["moments"]:
        hazard = run.hazards[moment["hazard"]]
        assert 0 <= moment["step"] < counts[moment["block"]]
        assert {line for _, _, line, _ in moment["tags"]} & set(hazard.lines)
        assert sentence(moment) or moment["picture"] == "shared"
        if moment["picture"] in ("lanes", "outside", "accesses"):
            own = run.block[0] * moment["block"] + moment["thread"]
            assert own in {run.block[0] * i.block[0] + i.thread[0] for i in hazard.involved}


def lanes(name):
    """The only moment of a kernel whose picture is the warp, and each lane's text."""
    story, run = told(name)
    (moment,) = story["moments"]
    assert moment["picture"] == "lanes"
    return moment, [text for _, _, text in moment["lanes"]], run


def test_lanes_are_shown_with_what_they_access():
    moment, texts, run = lanes("faulty_misaligned")
    own = [f"in at byte {at}" for _, at in accesses(run, 0, moment)[:32]]
    assert texts == own
    assert moment["facts"] == [["Thread (1) of block (0), line 41", "reads", own[1]]]
    moment, texts, run = lanes("faulty_null_pointer")
    assert texts == [f"{at:#x}" for _, at in accesses(run, 0, moment)[:32]]


def test_lanes_name_local_variables_and_other_blocks_memory():
    given = of_library("faulty_uninitialised_local").inputs[0]
    moment, texts, _ = lanes("faulty_uninitialised_local")
    first = 64 * moment["block"]
    assert texts == [f"own[{(value + 1) % 4}]" for value in given[first : first + 32]]
    given = of_library("faulty_missing_cluster_barrier").inputs[0]
    moment, texts, _ = lanes("faulty_missing_cluster_barrier")
    assert texts == [f"rank 1: s[{63 - t}] = {given[64 + 63 - t]}" for t in range(32)]
    assert [fact[2] for fact in moment["facts"]] == ["s[63]", texts[0]]


@pytest.mark.parametrize("build", ["device", "source"])
def test_an_instruction_that_is_no_step_has_the_step_before_it(build):
    """In the source build __syncwarp() is a function of its own, whose PTX stands elsewhere."""
    entry = library.get("faulty_warp_sync_mask")
    launch = entry.launch()
    given = launch.args[0].copy()
    run = simulator.launch(
        entry.kernel(build=build), launch.grid, launch.block, launch.args, schedule="warps",
        trace=True,
    )  # fmt: skip
    (moment,) = content(page([Story(run)]))["moments"]
    texts = [text for _, _, text in moment["lanes"]]
    assert texts[:16] == [f"out[{t}] = {given[t]}" for t in range(16)]


def test_lanes_that_take_no_part_have_no_access():
    moment, texts, _ = lanes("faulty_shuffle_mask")
    given = of_library("faulty_shuffle_mask").inputs[0]
    assert texts == [f"in[{t}] = {given[t]}" if t < 16 else "" for t in range(32)]
    assert [on for _, on, _ in moment["lanes"]] == [t < 16 for t in range(32)]
    assert moment["facts"][0][1] == "last access before"


def test_a_bulk_copy_reaches_the_elements_that_it_writes():
    story, run = told("faulty_missing_proxy_fence")
    (out,) = (number for number, item in run.trace.maps.items() if item.name == "out")
    written = [w for b in story["blocks"] for w in b["windows"] if w[1] == out and w[2]]
    covered = {i for window in written for i in range(window[4], window[6])}
    assert covered == set(np.flatnonzero(run.trace.maps[out].writes))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "faulty_no_guard",
        "faulty_neighbour",
        "faulty_barrier_skipped",
        "faulty_missing_wait",
        "faulty_blocks_raw",
        "faulty_global_waw",
        "faulty_read_only",
        "faulty_read_only_load",
        "faulty_misaligned",
        "faulty_missing_cluster_barrier",
        "faulty_trap",
    ],
)
@pytest.mark.parametrize("width", [1400, 360])
def test_the_page_opens_at_the_moment(open_page, name, width):
    story, run = told(name)
    moment = story["moments"][0]
    shown = open_page(of_library(name), width=width)
    assert shown.text("#finding") == sentence(moment)
    assert shown.state("pos") == moment["step"] + 1
    assert shown.state("thread") == moment["thread"]
    assert shown.page.locator(".code .tag").count() == len(
        {line for _, _, line, _ in moment["tags"]}
    )
    marked = [tag for tag in moment["tags"] if tag[0] >= 0]  # others are of another block
    assert shown.page.locator(".tl-picture .mark").count() == len(marked)
    big = shown.page.locator(".moment-panel .big").all_inner_texts()
    said = {
        "outside": lambda: [f"[{moment['element']}]".replace("-", "\u2212")],
        "threads": lambda: [str(g["count"]) for g in moment["groups"]],
        "accesses": lambda: [f"{value:g}" for value in moment["values"]],
        "shared": lambda: [f"{moment['got']:g}"],
        "lanes": lambda: [what for _, _, what in moment["facts"]],
    }[moment["picture"]]()
    assert big[: len(said)] == said
    shown.press("Space")  # without a fix the block is played from its start
    fixed = run.hazards[0].fix is not None
    assert shown.state("moment") == (0 if fixed else -1)
