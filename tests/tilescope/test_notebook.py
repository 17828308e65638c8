"""One import in a notebook: what it gives, and the tables that it shows."""

import subprocess
import sys

import numpy as np
import pytest

import simulator
import tilescope as ts
from tests.support.paths import ROOT

HOSTILE = """
__global__ void sums(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def kernel() -> ts.Kernel:
    return ts.Kernel.from_cuda(ROOT / "examples" / "row_sums.cu", "row_sums")


def arguments() -> list[object]:
    return [np.ones((4, 500), np.float32), np.zeros(4, np.float32), 500]


def test_one_import_gives_the_same_objects_lazily() -> None:
    code = "import sys, tilescope as ts; assert 'numpy' not in sys.modules; print(*dir(ts))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ts.__all__) <= set(done.stdout.split())
    assert ts.launch is simulator.launch
    assert ts.predict is simulator.predict
    for name in ts.__all__:
        assert callable(getattr(ts, name)), name
    with pytest.raises(AttributeError, match="no attribute 'lunch'"):
        ts.lunch  # noqa: B018


def test_a_run_its_counters_and_hazards_show_tables(kernel: ts.Kernel) -> None:
    run = ts.launch(kernel, 4, 128, arguments())
    assert "<td>raw-race</td>" in run.hazards._repr_html_()
    assert "row_sums.cu:12" in run.hazards._repr_html_()
    shown = run._repr_html_()
    assert run.counters._repr_html_() in shown
    assert f"<td>{run.counters.global_load.sectors:,}</td>" in shown
    unchecked = ts.launch(kernel, 4, 128, arguments(), checks="none", counters="none")
    assert "not checked" in unchecked._repr_html_()
    assert "not counted" in unchecked._repr_html_()
    with pytest.raises(simulator.SimulatorError, match="trace=True"):
        run.show()
    traced = ts.launch(kernel, 4, 128, arguments(), trace=True)
    assert "<iframe" in traced.show()._repr_html_()


def test_a_prediction_shows_one_unit(kernel: ts.Kernel) -> None:
    prediction = ts.predict(kernel, 4, 128, arguments())
    shown = prediction._repr_html_()
    assert "limits the launch" in shown
    assert shown.count(" us") >= len([time for time in prediction.bounds.values() if time])
    assert " ms" not in shown


def test_check_takes_a_launch_and_leaves_the_arrays(kernel: ts.Kernel) -> None:
    x, sums, n = arguments()
    verdict = ts.check(kernel, (4,), (128,), [x, sums, n], fixes=True)
    assert not sums.any()
    assert verdict.builds == ("device", "source")
    assert verdict.errors == 1
    assert "fix: __syncthreads() after line 10" in verdict._repr_html_()
    assert repr(verdict).endswith("errors: 1, warnings: 0>")
    text = (ROOT / "examples" / "row_sums.cu").read_text()
    ptx = ts.Kernel.from_ptx(kernel.ptx, kernel.entry)
    assert ts.check(ptx, 4, 128, [x, sums, n]).builds == ("ptx",)
    assert "__syncthreads();\n    for" not in text


def test_what_a_user_wrote_is_escaped() -> None:
    source = HOSTILE.replace("out[threadIdx.x] =", "/*<script>*/ out[threadIdx.x] =")
    run = ts.launch(ts.Kernel.from_cuda(source, "sums"), 1, 64, [np.zeros(64, np.float32)])
    run.kernel = "<script>"
    run.hazards[0].heading = "<b>"
    assert "<script" not in run._repr_html_()
    assert "<b>" not in run._repr_html_()
