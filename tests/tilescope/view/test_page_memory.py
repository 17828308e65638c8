"""The page's memory views in a real browser: sectors and banks as the run counted them."""

import dataclasses
import re

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from tests.tilescope.view.conftest import of_library
from tilescope.view import Story


def chosen(shown):
    """The accesses of the kernel, one button each, in the order of their lines."""
    return shown.page.locator(".accesses button")


def test_sectors_are_those_that_the_run_counted(open_page):
    story = of_library("matmul_naive_strided", "64")
    shown = open_page(story)
    shown.press("3")
    load = story.run.counters.global_load
    found = []
    for button in chosen(shown).all():
        if "reads" not in button.inner_text():
            continue
        button.click()
        said = shown.text("#access").replace(",", "")
        moved = int(re.match(r"(\d+) sectors? of 32 bytes", said)[1])
        assert shown.page.locator(".access-picture .sector").count() == moved
        assert f"{moved} sector" in button.inner_text()
        found.append(moved)
    assert np.mean(found) == load.sectors / load.requests


@pytest.mark.parametrize("name", ["transpose_tiled", "matmul_transposed", "matmul_naive_strided"])
def test_it_opens_at_the_worst_access(open_page, name):
    """What wastes most sectors or wavefronts; it is marked, and so is its line."""
    story = of_library(name, "64")
    shown = open_page(story)
    shown.press("3")
    shown.page.locator("summary").click()
    marked = shown.page.locator("#counters tbody tr.here")

    def wasted(line):
        c = line.counters
        spaces = (c.global_load, c.global_store)
        sectors = sum(t.sectors - t.distinct_bytes / 32 for t in spaces)
        return sectors + c.shared_load.bank_conflicts + c.shared_store.bank_conflicts

    worst = max(story.run.by_line(), key=wasted)
    assert marked.get_attribute("data-line") == str(worst.line)
    pressed = shown.page.locator(".accesses [aria-pressed=true]")
    assert f"line {worst.line}" in pressed.inner_text()
    assert "\u25b2" in pressed.inner_text()
    others = shown.page.locator("#counters tbody tr:not(.here) button.line")
    wanted = others.first.locator("xpath=ancestor::tr").get_attribute("data-line")
    others.first.click()
    assert marked.get_attribute("data-line") == wanted


def test_banks_are_those_that_the_run_counted(open_page):
    story = of_library("transpose_tiled", "64")
    shown = open_page(story)
    shown.press("3")
    traffic = story.run.counters.shared_load
    chosen(shown).filter(has_text="reads tile").first.click()
    assert traffic.wavefronts // traffic.requests == 32
    assert shown.text("#access").startswith("32 passes over the 32 banks")


def test_heat_maps_are_the_counts_of_reads(open_page):
    story = of_library("convolution", "64")
    shown = open_page(story)
    shown.press("2")
    item = next(m for m in story.run.trace.maps.values() if m.name == "in")
    counts, many = np.unique(item.reads, return_counts=True)
    uneven = shown.page.locator(".uneven", has_text="from global memory").first
    rows = uneven.locator(".levels li").all_inner_texts()
    expected = [f"{n}\u00d7 {m:,} elements" for n, m in zip(counts, many, strict=True)]
    assert [" ".join(row.split()) for row in rows] == expected
    assert f"{item.reads.mean():.1f} on average" in uneven.locator("h3").inner_text()


def test_alike_is_a_number_and_no_picture(open_page):
    shown = open_page(of_library("matmul_tiled", "64"))
    shown.press("2")
    said = shown.page.locator(".bar-row").all_inner_texts()
    assert [" ".join(row.split()) for row in said][:2] == [
        "A from global memory, the whole launch 4\u00d7",
        "B from global memory, the whole launch 4\u00d7",
    ]
    assert shown.page.locator(".uneven").count() == 0


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
    shown.press("3")
    found = 0
    for button in chosen(shown).all():
        if "shared memory" not in button.inner_text():
            continue
        button.click()
        passes = int(re.match(r"(\d+) pass", shown.text("#access"))[1])
        assert f"{passes} pass" in button.inner_text()
        found += passes
    counters = run.counters
    both = [counters.shared_load, counters.shared_store]
    assert found == sum(t.wavefronts for t in both)


def numbers_drawn(shown):
    """Where the roofline's numbers stand."""
    return shown.page.locator(".number-of").evaluate_all(
        "all => all.map(t => [Number(t.textContent), t.getBBox()]).map(([n, b]) =>"
        " [n, b.x, b.y, b.x + b.width, b.y + b.height])"
    )


def test_the_rooflines_numbers_do_not_cross(open_page):
    both = [of_library("matmul_naive", "64"), of_library("matmul_tiled", "64")]
    shown = open_page(*both)
    shown.press("4")
    drawn = numbers_drawn(shown)
    assert [n for n, *_ in drawn] == list(range(1, len(drawn) + 1))
    assert shown.page.locator(".places li").count() == len(drawn) == 4
    for i, (_, left, top, right, bottom) in enumerate(drawn):
        for _, x, y, to_x, to_y in drawn[:i]:
            assert right <= x or to_x <= left or bottom <= y or to_y <= top


def test_the_prediction_stands_beside_the_roofline(open_page):
    entry = library.get("transpose_tiled")
    launch = entry.launch((64, 64))
    story = of_library("transpose_tiled", "64")
    found = simulator.predict(entry.kernel(), launch.grid, launch.block, launch.args, gpu="h200")
    shown = open_page(dataclasses.replace(story, prediction=found))
    shown.press("4")
    said = shown.text("#prediction")
    assert f"limited by {found.limiter}." in said
    assert float(re.search(r"([\d.]+) \u00b5s \(", said)[1]) == float(f"{1e3 * found.time_ms:.3g}")
    for advice in found.advice:
        assert advice.to_dict()["text"] in said
    assert shown.page.locator("#prediction tr").count() == len(found.bounds)
