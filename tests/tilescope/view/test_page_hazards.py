"""The page's hazards in a real browser: the moment, both sides, what should have been, the fix."""

import dataclasses
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from tests.tilescope.view.conftest import html, of_library
from tilescope.cli.main import main
from tilescope.text.findings import severities
from tilescope.view import Story


def moments(story):
    data = json.loads(re.search(r'id="data">(.*?)</script>', html(story), re.S)[1])
    return data["runs"][0]["story"]["moments"]


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_missing_barrier_opens_at_its_moment(open_page, which):
    story = of_library(f"matmul_missing_{which}_barrier", "32")
    first, *others = moments(story)
    shown = open_page(story)
    assert "missing barrier" in shown.text("#badge")
    x, y = first["thread"] % 16, first["thread"] // 16
    told = "before" if which == "first" else "after"
    assert re.match(rf"Thread \({x},{y}\) reads [AB]s\[\d+\]\[\d+\] {told}", shown.text("#finding"))
    assert shown.state("pos") == first["step"] + 1
    got, should = (
        float(text.replace("\u2212", "-"))
        for text in shown.page.locator(".pair .big").all_inner_texts()
    )
    assert got == pytest.approx(first["got"], rel=1e-3)
    assert should == pytest.approx(first["should"], rel=1e-3)
    between = abs(first["other_step"] - first["step"])
    assert f"{between} steps" in shown.text("#say")
    assert shown.page.locator(".tl-picture .mark").count() == 2
    assert shown.text("#count").startswith(f"moment 1 of {1 + len(others)}: {first['kind']}")
    for number, moment in enumerate(others):
        shown.press("ArrowRight")
        assert shown.state("moment") == number + 1
        assert shown.text("#count").endswith(moment["kind"])
    last = (first, *others)[-1]
    lines = {item.source.line for item in story.run.hazards[last["hazard"]].involved}
    marked = shown.page.locator(".code .first i, .code .second i").all_inner_texts()
    assert set(map(int, marked)) <= lines


def test_crimson_is_for_what_is_wrong_alone(open_page):
    shown = open_page(of_library("matmul_tiled", "32"))
    crimson = "getComputedStyle(document.documentElement).getPropertyValue('--x2').trim()"
    found = shown.page.evaluate(
        f"""() => {{
          const probe = document.createElement("i");
          probe.style.color = {crimson};
          document.body.append(probe);
          const wrong = getComputedStyle(probe).color;
          probe.remove();
          return [...document.querySelectorAll("main *")].filter((one) => {{
            if (one.closest("defs")) return false;
            const style = getComputedStyle(one);
            return [style.color, style.fill, style.stroke, style.backgroundColor].includes(wrong);
          }}).length;
        }}"""
    )
    assert found == 0


@pytest.fixture(scope="module")
def fixed_page(tmp_path_factory):
    """The page that the command makes of a kernel whose fix it has found."""
    file = tmp_path_factory.mktemp("fixed") / "race.html"
    words = ["view", "matmul_missing_first_barrier", "--size", "32", "-q", "-o", str(file)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return file


def test_with_the_barrier_it_reads_what_it_should(chromium, fixed_page):
    tab = chromium.new_page()
    tab.goto(fixed_page.as_uri())
    tab.wait_for_selector("html[data-ready]")
    should = tab.locator(".pair .big").nth(1).inner_text()
    assert "__syncthreads();" in tab.locator(".code .add").inner_text()
    assert re.search(r"[\d,]+ of 1,024 results are wrong", tab.locator("#more").inner_text())
    assert tab.locator("#play").inner_text().endswith("With the barrier")
    tab.keyboard.press("Space")
    assert tab.evaluate("tilescopePage.state.fixed")
    assert tab.locator(".pair .big").first.inner_text() == should
    assert tab.locator(".code .add").count() == 0
    own = tab.evaluate(
        """() => {
          const { state } = tilescopePage;
          const moment = state.runs[0].story.moments[0];
          const variable = state.now.shared[moment.variable];
          const { writes } = state.blockNow;
          const at = variable.start + moment.element * variable.size;
          return writes.last(-1, at, state.event).value;
        }"""
    )
    assert float(should.replace("\u2212", "-")) == pytest.approx(own, rel=1e-3)
    tab.keyboard.press("Space")
    assert not tab.evaluate("tilescopePage.state.fixed")
    assert tab.locator(".runs").count() == 0  # the fixed run is no run of its own
    tab.close()


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
    diff = cards.first.locator(".diff")
    assert diff.inner_text().splitlines() == text.splitlines()[2:]
    assert diff.locator(".plus").inner_text().strip() == "+__syncthreads();"
    assert diff.locator(".minus").inner_text().strip() == "-gone"
    assert cards.first.locator("button").count() == len(found)
    assert cards.nth(1).locator(".diff").count() == 0


OTHERS = [
    "faulty_blocks_raw", "faulty_no_guard", "faulty_neighbour", "faulty_barrier_skipped",
    "faulty_uninitialised_shared", "faulty_missing_wait", "faulty_shuffle_mask",
]  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_hazards_say_what_is_wrong_and_where(open_page, name):
    story = of_library(name)
    shown = open_page(story)
    errors = [hazard for hazard in story.run.hazards if hazard.severity == "error"]
    assert errors
    assert shown.text("#badge").startswith("\u2717")
    assert shown.text(".findings h3") == severities(story.run.hazards)
    shown.page.locator(".finding button").first.click()
    line = errors[0].involved[0].source.line
    lit = shown.page.locator(".code .now i").all_inner_texts()
    assert str(line) in lit or shown.page.locator(f".code [data-line='{line}']").count()
    assert np.isfinite(shown.state("pos"))


def test_a_hazard_of_the_whole_launch_has_no_moment(open_page):
    story = of_library("faulty_trap")
    (hazard,) = story.run.hazards
    assert open_page(story).page.locator("#jump a").first.inner_text() == "The moment"
    whole = dataclasses.replace(hazard, kind="too-many-resources", involved=())
    shown = open_page(Story(dataclasses.replace(story.run, hazards=[whole]), "whole"))
    assert shown.state("moment") == -1
    assert shown.page.locator("#jump a").first.inner_text() == "Watch"
    assert shown.page.locator(".finding").count() == 1
    assert shown.page.locator(".finding button").count() == 0


@pytest.mark.parametrize("width", [1280, 1400])
def test_the_header_shows_its_facts_whole(open_page, width):
    story = of_library("matmul_missing_first_barrier", "32")
    noted = Story(story.run, story.name, "MxNxK = 256x256x256, tile 16")
    shown = open_page(noted, width=width)
    whole = shown.page.evaluate(
        """() => {
          const box = document.getElementById("facts").getBoundingClientRect();
          return [...document.querySelectorAll("#facts span")]
            .map((one) => [one.innerText, one.getBoundingClientRect()])
            .filter(([, at]) => at.top < box.bottom)
            .map(([text, at]) => [text, at.right <= box.right + 0.5 && at.bottom <= box.bottom]);
        }"""
    )
    assert whole[0] == ["M\u00d7N\u00d7K = 256\u00d7256\u00d7256", True]
    assert all(fits for _, fits in whole)
