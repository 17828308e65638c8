"""Keyboard, themes, widths, accessibility, and text that would be markup."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.conftest import html, matmul, of_library
from tilescope.view import NoTrace, Story, page, show

THEMES = ["light", pytest.param("dark", marks=pytest.mark.slow)]
VIEWS = ("matrices", "steps", "barriers", "memory")


def view_of(shown):
    return shown.page.evaluate("tilescopePage.state.view")


def test_keys(open_page):
    shown = open_page(matmul(6, 2))
    for key, view in zip("1234", VIEWS, strict=True):
        shown.press(key)
        assert view_of(shown) == view
    shown.press("2", "Home")
    assert "step 1 of" in shown.text("#at")
    shown.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert "step 2 of" in shown.text("#at")
    shown.press("Shift+ArrowRight")
    assert shown.text("#at").startswith("phase 2 of 7")
    shown.press("End", "?")
    assert shown.page.locator("#help").is_visible()
    shown.press("Escape")
    assert not shown.page.locator("#help").is_visible()


def test_space_plays_to_the_end(open_page):
    shown = open_page(matmul(4, 2))
    shown.press("2", "Home")
    shown.page.select_option("select[aria-label='Speed of play']", label="fast")
    shown.page.locator("body").click(position={"x": 2, "y": 2})
    shown.press("Space")
    assert shown.page.evaluate("tilescopePage.state.playing")
    shown.until("tilescopePage.state.stop > 3")
    shown.press("Space")
    stopped = shown.page.evaluate("tilescopePage.state.stop")
    shown.page.wait_for_timeout(300)
    assert shown.page.evaluate("tilescopePage.state.stop") == stopped
    shown.press("Space")
    shown.until("!tilescopePage.state.playing")
    state = shown.page.evaluate("[tilescopePage.state.stop, tilescopePage.state.stops.length]")
    assert state[0] == state[1] - 1


def test_cells_are_reached_by_keyboard(open_page):
    shown = open_page(matmul(4, 2))
    canvas = shown.page.locator("figure.grid", has_text="C").first.locator("canvas")
    canvas.focus()
    shown.press("ArrowDown", "ArrowRight", "ArrowRight")
    live = shown.page.locator("figure.grid", has_text="C").first.locator("[aria-live]")
    assert live.inner_text().startswith("C[1][2] = ")
    shown.press("Enter")
    assert "C[1][2] belongs to thread (0,1) of block (1,0)" in shown.text("#answer0")


def test_keys_go_on_from_the_cell_that_was_clicked(open_page):
    shown = open_page(matmul(4, 2))
    live = shown.click_cell("C", 2, 1).locator("[aria-live]")
    shown.press("ArrowRight")
    assert live.inner_text().startswith("C[2][2] = ")
    shown.page.locator("#shade").focus()
    shown.page.locator("figure.grid", has_text="C").first.locator("canvas").focus()
    assert live.inner_text().startswith("C[2][2] = ")


@pytest.mark.parametrize(("phone", "word"), [(False, "Pick"), (True, "Tap")])
def test_phones_say_tap(open_page, phone, word):
    shown = open_page(matmul(4, 2), width=360, height=700, phone=phone)
    shown.press("1")
    said = shown.page.locator("main .hint").all_inner_texts()
    assert any(text.startswith(f"{word} an output element") for text in said)
    if phone:
        canvas = shown.page.locator("figure.grid", has_text="C").first.locator("canvas")
        canvas.scroll_into_view_if_needed()
        canvas.tap()
        assert shown.page.locator("#tip").is_visible()


VALUES = """
__global__ void values(float* x) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}
"""


@pytest.mark.parametrize("width", [420, 700, 1280])
def test_cells_that_have_a_value_never_look_empty(open_page, width):
    """Digits where there is room for them, a sign for a value where there is none."""
    x = np.array([1.5e-7, 123456, np.nan, np.inf, -3, 0.25, 7, -1e30] * 4, np.float32)
    run = simulator.launch(Kernel.from_cuda(VALUES, "values"), 1, 32, [x], trace=True)
    shown = open_page(Story(run, "values"), width=width)
    shown.press("2", "End")
    drawn = shown.page.evaluate(
        """() => {
          const seen = [], own = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            const g = this.canvas.tilescopeGrid;
            if (x > g.margin && y > g.top) seen.push(g.about.name);  // no heading
          };
          tilescopePage.repaint();
          CanvasRenderingContext2D.prototype.fillText = own;
          const grids = [...document.querySelectorAll("#step-grids canvas")];
          return grids.map((c) => c.tilescopeGrid).map((g) => [
            g.cell >= 13 * g.scale,
            [...Array(g.about.count).keys()].filter((i) => g.cells.text(i) !== null).length,
            seen.filter((name) => name === g.about.name).length,
          ]);
        }"""
    )
    assert any(valued for _, valued, _ in drawn)
    assert [texts >= valued for roomy, valued, texts in drawn if roomy].count(False) == 0


SAME = """
__device__ float data[8];
__global__ void same(float* data, int n) { data[threadIdx.x] = ::data[threadIdx.x] + n; }
"""


def test_two_arrays_of_one_name(open_page):
    args = [np.ones(8, np.float32), 3]
    symbols = {"data": np.arange(8, dtype=np.float32)}
    kernel = Kernel.from_cuda(SAME, "same")
    run = simulator.launch(kernel, 1, 8, args, symbols=symbols, trace=True)
    shown = open_page(Story(run, "same"))
    names = shown.page.locator("figure.grid figcaption strong").all_inner_texts()
    assert sorted(names) == ["data", "data (2)"]


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
    shown.press("2")
    boxes = shown.page.locator("#step-grids canvas").evaluate_all(
        "all => all.map(c => c.getBoundingClientRect()).map(r => [r.left, r.right, r.width])"
    )
    assert all(left >= 0 and right <= width and wide > 60 for left, right, wide in boxes)


def test_a_resize_draws_anew(open_page):
    shown = open_page(matmul(64, 16))
    shown.press("2")
    measure = "() => document.querySelector('#step-grids canvas').getBoundingClientRect().width"
    wide = shown.page.evaluate(measure)
    shown.page.set_viewport_size({"width": 360, "height": 700})
    shown.until(f"({measure})() !== {wide}")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_themes_switch(open_page):
    shown = open_page(matmul(6, 2))
    back = "getComputedStyle(document.body.parentElement).backgroundColor"
    pixel = (
        "() => [...document.querySelector('figure.grid canvas').getContext('2d')"
        ".getImageData(30, 30, 1, 1).data].join()"
    )
    before = shown.page.evaluate(back), shown.page.evaluate(pixel)
    shown.press("t")
    after = shown.page.evaluate(back), shown.page.evaluate(pixel)
    assert before[0] != after[0]
    assert before[1] != after[1]
    shown.page.locator("#theme").click()
    assert (shown.page.evaluate(back), shown.page.evaluate(pixel)) == before


@pytest.mark.parametrize("theme", THEMES)
def test_accessibility(open_page, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = open_page(of_library("matmul_missing_first_barrier", "32"), theme=theme)
    for key in "1234":
        shown.press(key)
        assert_accessible(axe, shown)
    shown.page.locator("#tab-barriers").click()
    shown.page.locator(".jump").first.click()
    assert_accessible(axe, shown)
    shown.press("?")
    assert_accessible(axe, shown)


@pytest.mark.parametrize("theme", THEMES)
def test_two_runs_are_accessible(open_page, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = open_page(matmul(6, 2, "naive.cu", "naive"), matmul(6, 2), theme=theme)
    for key in "124":
        shown.press(key)
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
    shown.press("2")
    assert shown.page.evaluate("window.pwned") is None
    assert shown.page.locator("img, b:has(img), svg[onload]").count() == 0
    assert shown.text("h1") == HOSTILE
    assert shown.page.title() == f"{HOSTILE} - tilescope"
    lines = shown.page.locator(".steps .source .code:not(.ptx) code").all_inner_texts()
    assert lines[:3] == file.read_text().splitlines()[:3]
    assert "<img src=x onerror=window.pwned=2>.cu" in shown.text("#source-title")
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
    frame.locator("#facts").wait_for()
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
