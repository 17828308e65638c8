"""The page's memory views in a real browser: sectors and banks as the run counted them."""

import dataclasses
import re

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from tests.tilescope.view.conftest import of_library
from tilescope.view import Story


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


@pytest.mark.parametrize("name", ["transpose_tiled", "matmul_transposed", "matmul_naive_strided"])
def test_memory_opens_at_the_worst_access(open_page, name):
    """What wastes most sectors or wavefronts, its line marked; another line is a click away."""
    story = of_library(name, "64")
    shown = open_page(story)
    shown.press("4")
    marked = shown.page.locator("#counters tbody tr.here")
    assert marked.count() == 1
    assert marked.get_attribute("aria-current") == "true"

    def wasted(line):
        c = line.counters
        spaces = (c.global_load, c.global_store)
        sectors = sum(t.sectors - t.distinct_bytes / 32 for t in spaces)
        return sectors + c.shared_load.bank_conflicts + c.shared_store.bank_conflicts

    worst = max(story.run.by_line(), key=wasted)
    assert marked.get_attribute("data-line") == str(worst.line)
    others = shown.page.locator("#counters tbody tr:not(.here) button.line")
    wanted = others.first.locator("xpath=ancestor::tr").get_attribute("data-line")
    others.first.click()
    assert marked.get_attribute("data-line") == wanted
    chosen = shown.page.locator("#access-line option:checked").inner_text()
    assert chosen.startswith(f"line {wanted}:")


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
    assert "What would help most" in shown.text(".look")
    shown.press("4")
    said = shown.text("#prediction")
    assert f"limited by {found.limiter}." in said
    assert float(re.search(r"([\d.]+) \u00b5s \(", said)[1]) == float(f"{1e3 * found.time_ms:.3g}")
    for advice in found.advice:
        assert advice.to_dict()["text"] in said
    assert shown.page.locator("#prediction tr").count() == len(found.bounds)


K = "__global__ void k(const float* x, float* y) { int t = threadIdx.x; "
SPREAD = "".join(f"a += x[t * 8 + {i} * 256];\n" for i in range(30))


@pytest.mark.parametrize("checks", ["none", "memory", "all"])
def test_what_is_said_first_is_of_all_lines_and_of_what_was_checked(open_page, checks):
    """Each of 30 lines wastes a thirtieth; or none wastes any."""
    checked = checks if checks != "memory" else [checks]
    for source, said in (
        (f"{K}float a = 0;\n{SPREAD}y[t] = a; }}", "All lines together move 840 sectors' worth"),
        (f"{K}y[t] = x[t]; }}", None),
    ):
        args = [np.zeros(8192, np.float32), np.zeros(32, np.float32)]
        kernel = Kernel.from_cuda(source, "k")
        run = simulator.launch(kernel, 1, 32, args, checks=checked, trace=True)
        shown = open_page(Story(run))
        words = {"none": "azards not checked", "memory": "o hazards among memory, the rest not"}
        for place in ("body", ".look") if said is None else ("body",):
            assert words.get(checks, "o hazards") in shown.text(place)
        assert said is None or said in shown.text(".look")
