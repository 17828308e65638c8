"""One page for all launches of a session."""

import numpy as np
import pytest

import simulator
import tilescope
from kernels import Kernel
from tilescope.view import NoTrace

SOURCE = """
extern "C" __global__ void fill(float* x) { x[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void racy(float* x)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];  // "</script>" & <b>
}
"""


def test_all_launches(chromium, tmp_path):
    x = np.zeros(64, np.float32)
    with tilescope.session() as session:
        for name, trace in (("fill", True), ("racy", True), ("fill", False)):
            simulator.launch(Kernel.from_cuda(SOURCE, name), 1, 64, [x], trace=trace)
    path = session.show().save(tmp_path / "all.html")
    page, errors = chromium.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: said.type == "error" and errors.append(said.text))
    page.goto(path.as_uri())
    assert page.locator("li").count() == 3
    assert "not recorded" in page.locator("li").nth(2).inner_text()
    frame = page.frame_locator("iframe")
    frame.locator("#finding").wait_for()
    for number, name in enumerate(("fill", "racy")):
        page.locator("button").nth(number).click()
        frame.locator("#finding").wait_for()
        assert name in frame.locator("body").inner_text()
    assert "1 hazard" in page.locator("li").nth(1).inner_text()
    assert errors == []
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    assert axe.run(page).response["violations"] == []
    page.close()


def test_nothing_recorded():
    with tilescope.session() as session:
        simulator.launch(Kernel.from_cuda(SOURCE, "fill"), 1, 64, [np.zeros(64, np.float32)])
    with pytest.raises(NoTrace, match="trace=True"):
        session.show()
