"""Bytes at each level of memory, phases' sectors, counts of uses: held to the counters."""

import dataclasses

import numpy as np
import pytest

import simulator
from kernels import library
from tests.tilescope.view.conftest import matmul, of_library
from tests.tilescope.view.test_story import content
from tilescope.view.describe import lines
from tilescope.view.limits import levels
from tilescope.view.page import show
from tilescope.view.story.reach import use_counts


@pytest.fixture(scope="module")
def predicted():
    entry = library.get("matmul_tiled")
    launch = entry.launch(entry.parse_size("64"))
    found = simulator.predict(entry.kernel(), launch.grid, launch.block, launch.args, gpu="h200")
    return dataclasses.replace(of_library("matmul_tiled", "64"), prediction=found)


def test_bytes_of_each_level(predicted):
    counters, found = predicted.run.counters, predicted.prediction
    rows = {row["name"]: row for row in levels(predicted.run, found)}
    loads, stores = counters.global_load, counters.global_store
    assert rows["threads"]["bytes"] == counters.global_bytes == loads.bytes + stores.bytes
    assert rows["L1"]["bytes"] == 32 * (loads.sectors + stores.sectors)
    assert stores.sectors * 32 <= rows["L2"]["bytes"] <= rows["L1"]["bytes"]
    assert rows["DRAM"]["bytes"] == found.dram_read_bytes + found.dram_write_bytes
    assert rows["shared memory"]["bytes"] == (
        counters.shared_load.bytes + counters.shared_store.bytes
    )
    for row in rows.values():
        assert row["intensity"] == pytest.approx(counters.flops / row["bytes"])
        roof = row["rate"] * row["intensity"]
        reached = 1000 * counters.flops * bool(roof)
        assert row["used"] * roof * found.time_ms == pytest.approx(reached)
    assert rows["DRAM"]["rate"] < rows["L2"]["rate"] < rows["L1"]["rate"]
    assert levels(predicted.run, None) == []


def test_waste_of_each_line():
    story = of_library("matmul_transposed", "32")
    counters = story.run.counters
    found = lines(story.run)
    every = [
        getattr(counters, f"{space}_{act}")
        for space in ("global", "shared")
        for act in ("load", "store")
    ]
    unused = sum(t.sectors - t.distinct_bytes / 32 for t in every if t.sectors)
    assert sum(line["waste"] for line in found) == unused + sum(t.bank_conflicts for t in every) > 0
    assert sum(line["moved"] for line in found) == sum(t.sectors + t.wavefronts for t in every)


@pytest.mark.slow
def test_the_page_has_a_roof_and_a_bar_for_each_level(open_page, predicted):
    shown = open_page(predicted)
    shown.press("4")
    rows = levels(predicted.run, predicted.prediction)
    assert shown.page.locator(".ladder .bar-row").count() == len(rows)
    assert shown.page.locator("polyline.level").count() == 3
    said = shown.text(".places")
    for row in rows:
        if row["name"] in ("L1", "L2", "DRAM"):
            assert f"{row['name']}: {row['intensity']:.3g} FLOP per byte" in said
    rate = predicted.run.counters.flops / predicted.prediction.time_ms * 1000
    assert f"{rate / 1e9:.3g} GFLOP/s at the predicted time" in shown.text("#roofline")


@pytest.mark.parametrize("schedule", ["warps", "lockstep"])
def test_phases_have_the_counters_sectors(schedule):
    story = matmul(6, 2, schedule=schedule)
    counters = story.run.counters
    found = content(story)["blocks"]
    assert len(found) == 9
    moved = sum(phase[4] for block in found for phase in block["phases"])
    assert moved == counters.global_load.sectors + counters.global_store.sectors
    assert [phase[3] for phase in found[0]["phases"]] == [8, 8, 8, 0]  # two tiles of 2x2; the store


def test_counts_of_uses():
    assert use_counts(np.array([4, 4, 4])) == {
        "low": 4, "high": 4, "mean": 4.0, "levels": [[4, 4, 3]]
    }  # fmt: skip
    uneven = use_counts(np.repeat(np.arange(10), 7))
    assert (uneven["low"], uneven["high"], uneven["mean"]) == (0, 9, 4.5)
    assert [level[:2] for level in uneven["levels"]] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert sum(level[2] for level in uneven["levels"]) == 70
    assert use_counts(np.array([]))["levels"] == []


def test_a_notebook_has_the_smaller_page():
    shown = show(matmul(4, 2).run)
    assert "data-small" in shown._repr_html_().split("&lt;head")[0]
    assert "<html data-small" not in shown.content
