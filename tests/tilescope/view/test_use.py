"""Keyboard, themes, widths, accessibility, and text that would be markup."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.conftest import html, matmul, of_library
from tilescope.view import NoTrace, Story, page, show
from tilescope.view.record import NoRecorder, record

THEMES = ["light", pytest.param("dark", marks=pytest.mark.slow)]


def test_keys(open_page):
    shown = open_page(matmul(6, 2))
    shown.press("Home")
    assert shown.state("pos") == 0
    shown.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert shown.text("#count") == "1 of 19"
    shown.press("Shift+ArrowRight")
    assert shown.state("story.phaseAt(tilescopePage.state.pos)") == 1
    shown.press("t")
    assert shown.state("thread") == 1
    shown.press("Shift+T", "b")
    assert (shown.state("thread"), shown.state("block")) == (0, 1)
    shown.press("End")
    assert shown.state("pos") == 43
    shown.press("?")
    assert shown.page.locator("#keys").is_visible()
    shown.press("Escape")
    assert not shown.page.locator("#keys").is_visible()


def test_parts_are_reached_by_their_numbers(open_page):
    shown = open_page(matmul(6, 2))
    for key, part in zip("234", ("reuse", "access-part", "speed"), strict=True):
        shown.press(key)
        shown.until(f"document.getElementById('{part}').getBoundingClientRect().top < 500")
    shown.press("1")
    shown.until("window.scrollY === 0")
    assert shown.text("#say")  # arrow keys never left the first part


def test_space_plays_to_the_end(open_page):
    shown = open_page(matmul(4, 2))
    shown.press("Home")
    shown.page.select_option("select[aria-label='Speed']", label="fast")
    shown.page.locator("h1").click()
    shown.press("Space")
    assert shown.state("playing")
    shown.until("tilescopePage.state.beat > 3")
    shown.press("Space")
    stopped = shown.state("pos")
    shown.page.wait_for_timeout(300)
    assert shown.state("pos") == stopped
    shown.press("Space")
    shown.until("!tilescopePage.state.playing", 20)
    assert shown.state("pos") == shown.state("story.count")
    assert "Next block" in shown.text("#play")


def test_reduced_motion_moves_nothing(chromium, tmp_path):
    file = tmp_path / "run.html"
    file.write_text(html(matmul(4, 2)), encoding="utf-8")
    context = chromium.new_context(reduced_motion="reduce")
    tab = context.new_page()
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready]")
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
        assert tab.locator(".air i").count() == 0
    context.close()


def test_cells_are_reached_by_keyboard(open_page):
    story = matmul(4, 2)
    shown = open_page(story)
    shown.page.locator(".lens").focus()
    shown.press("ArrowRight", "ArrowDown")
    assert shown.text("#say").startswith("The sum of thread (1,1) is")
    shown.press("Enter")
    assert shown.state("thread") == 3
    shown.press("PageDown", "ArrowRight")
    a = story.inputs[0]
    assert shown.text("#say").startswith(f"A[0][1] = {a[0, 1]:g}")
    shown.press("Escape")
    assert shown.page.evaluate("!document.activeElement.classList.contains('lens')")


def test_the_address_says_where_one_looks(open_page, tmp_path):
    shown = open_page(matmul(6, 2))
    shown.look(block=4, thread=3, pos=9)
    address = shown.page.evaluate("location.hash")
    assert address == "#block=1,1,0&thread=1,1,0&step=9"
    shown.page.reload()
    shown.page.wait_for_selector("html[data-ready]")
    assert [shown.state(name) for name in ("block", "thread", "pos")] == [4, 3, 9]


@pytest.mark.parametrize(
    "where", ["run=1&moment=0", "moment=9,fixed", "moment=x", "run=__proto__", "block=a&run=1.5"]
)
def test_a_wrong_address_opens_the_page(chromium, tmp_path, where):
    file = tmp_path / "run.html"
    story = of_library("matmul_missing_first_barrier", "32")
    fixed = dataclasses.replace(story, fixed=of_library("matmul_tiled", "32").run)
    file.write_text(page([fixed]), encoding="utf-8")
    tab, errors = chromium.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"{file.as_uri()}#step=3&{where}")
    tab.wait_for_selector("html[data-ready]", timeout=5000)
    tab.keyboard.press("ArrowRight")
    tab.close()
    assert errors == []


VALUES = """
__global__ void values(float* x) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}
"""


@pytest.mark.parametrize("width", [360, 1280])
def test_values_of_all_sizes_are_drawn(open_page, width):
    x = np.array([1.5e-7, 123456, np.nan, np.inf, -3, 0.25, 7, -1e30] * 4, np.float32)
    run = simulator.launch(Kernel.from_cuda(VALUES, "values"), 1, 32, [x], trace=True)
    shown = open_page(Story(run, "values"), width=width)
    shown.press("Home", *["ArrowRight"] * 3, "End")
    assert "\u2026" not in shown.text("#watch")


@pytest.mark.parametrize(
    ("width", "theme"),
    [(360, "light"), (1280, "dark"), pytest.param(3840, "light", marks=pytest.mark.slow)],
)
def test_widths_and_themes(open_page, width, theme):
    shown = open_page(of_library("matmul_missing_first_barrier", "32"), width=width, theme=theme)
    for key in "1234":
        shown.press(key)
        wide = shown.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
    box = shown.page.locator(".lens canvas").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["width"] > 200


def test_a_resize_draws_anew(open_page):
    shown = open_page(matmul(64, 16))
    measure = "() => document.querySelector('.lens canvas').getBoundingClientRect().width"
    wide = shown.page.evaluate(measure)
    shown.page.set_viewport_size({"width": 360, "height": 700})
    shown.until(f"({measure})() !== {wide}")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_themes_switch(open_page):
    shown = open_page(matmul(6, 2))
    back = "getComputedStyle(document.body).backgroundColor"
    pixel = (
        "() => [...document.querySelector('.lens canvas').getContext('2d')"
        ".getImageData(200, 40, 1, 1).data].join()"
    )
    before = shown.page.evaluate(back), shown.page.evaluate(pixel)
    shown.press("d")
    after = shown.page.evaluate(back), shown.page.evaluate(pixel)
    assert before[0] != after[0]
    assert before[1] != after[1]
    shown.page.locator("#theme").click()
    assert (shown.page.evaluate(back), shown.page.evaluate(pixel)) == before


def test_paper_is_light(open_page):
    shown = open_page(matmul(6, 2), theme="dark")
    theme = (
        "[document.documentElement.dataset.theme ?? null,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    before = shown.page.evaluate(theme)
    shown.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shown.page.evaluate(theme) == ["light", "rgb(255, 255, 255)"]
    assert shown.page.locator("#access-part .access-picture, #speed .roofline").count() == 2
    shown.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert shown.page.evaluate(theme) == before


ACCESSIBLE = [
    "matmul_missing_first_barrier", "scan_hillis_steele", "stencil_line", "convolution",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "faulty_no_guard", "faulty_barrier_skipped", "faulty_missing_wait", "attention",
    )),
]  # fmt: skip


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ACCESSIBLE)
def test_accessibility(open_page, name, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = open_page(of_library(name, "32" if "matmul" in name else None), theme=theme)
    assert_accessible(axe, shown)
    for key in "234":
        shown.press(key)
    assert_accessible(axe, shown)
    shown.press("?")
    assert_accessible(axe, shown)


@pytest.mark.parametrize("theme", THEMES)
def test_two_runs_are_accessible(open_page, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = open_page(matmul(6, 2, "naive.cu", "naive"), matmul(6, 2), theme=theme)
    assert_accessible(axe, shown)


def assert_accessible(axe, shown):
    found = axe.run(shown.page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []


HOSTILE = '</script><img src=x onerror="window.pwned=1"><!--'


def test_hostile_names_and_comments_are_text(open_page, tmp_path):
    file = tmp_path / "<img src=x onerror=window.pwned=2>.cu"
    file.write_text(
        f"""\
// {HOSTILE}
// <!--<script>window.pwned=3</script>
extern "C" __global__ void twice(float* a) {{  // </style><b>
    a[threadIdx.x] *= 2;
}}
"""
    )
    run = simulator.launch(
        Kernel.from_cuda(file, "twice"), 1, 32, [np.arange(32, dtype=np.float32)], trace=True
    )
    story = Story(run, HOSTILE, "<svg onload=window.pwned=4>")
    shown = open_page(story)
    for key in "1234":
        shown.press(key)
    assert shown.page.evaluate("window.pwned") is None
    assert shown.page.locator("img, b:has(img), svg[onload]").count() == 0
    assert shown.text("h1") == HOSTILE
    assert shown.page.title() == f"{HOSTILE} - tilescope"
    comment = shown.page.locator(".code .comment").first  # of a long line: folded, in its title
    assert comment.get_attribute("title") == "// </style><b>"
    assert comment.inner_text().endswith("// \u2026")
    assert "<img src=x onerror=window.pwned=2>.cu" in shown.text(".code-head h3")
    assert "<svg onload=window.pwned=4>" in shown.text("#facts")


def test_the_page_forbids_network_and_foreign_scripts(open_page):
    shown = open_page(matmul(4, 2))
    policy = shown.page.locator("meta[http-equiv]").get_attribute("content")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert shown.page.locator("script[src], link[href], style ~ style, img, iframe").count() == 0


def test_a_run_shows_itself_in_a_notebook(chromium):
    story = matmul(4, 2)
    shown = story.run.show()
    context = chromium.new_context()
    tab = context.new_page()
    tab.set_content(shown._repr_html_())
    frame = tab.frame_locator("iframe")
    frame.locator("#badge").wait_for()
    assert frame.locator("h1").inner_text() == "tiled<2>"
    context.close()


def test_show_saves(tmp_path):
    story = matmul(4, 2)
    path = show(story.run).save(tmp_path / "run.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "save(file)" in repr(show(story.run))


def test_a_run_without_a_trace_says_what_to_do():
    kernel = Kernel.from_cuda('extern "C" __global__ void nothing() {\n}\n', "nothing")
    run = simulator.launch(kernel, 1, 1, [])
    with pytest.raises(NoTrace, match=r"trace=True"):
        run.show()


def test_a_page_without_arrays_or_steps(open_page):
    kernel = Kernel.from_cuda('extern "C" __global__ void nothing() {\n}\n', "nothing")
    run = simulator.launch(kernel, 1, 1, [], trace=True)
    shown = open_page(Story(run))
    for key in "1234":
        shown.press(key)
    assert shown.text("h1") == "nothing"


def test_the_page_is_the_same_each_time():
    assert page([matmul(4, 2)]) == html(matmul(4, 2))


RECORD = """
import sys
from pathlib import Path
from tilescope.view.record import record
record(Path(sys.argv[1]).read_text(), Path(sys.argv[2]), 3)
"""


def test_a_play_is_recorded(chromium, tmp_path):
    from PIL import Image as image

    assert chromium.is_connected()  # a process has one synchronous Playwright: another records
    path, file = tmp_path / "play.gif", tmp_path / "run.html"
    file.write_text(html(matmul(4, 2)), encoding="utf-8")
    subprocess.run([sys.executable, "-c", RECORD, str(file), str(path)], check=True)
    with image.open(path) as film:
        assert film.n_frames > 4


def test_without_pillow_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NoRecorder, match="tilescope\\[record\\]"):
        record("", tmp_path / "play.gif")
