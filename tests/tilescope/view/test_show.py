"""``Run.show``: the renderer that is registered, or else the one that is installed."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simulator
import simulator.run
from kernels import Kernel
from tests.support.paths import ROOT

LAUNCH = """
import sys
import simulator
from kernels import Kernel
kernel = Kernel.from_cuda('extern "C" __global__ void nothing() {}', "nothing")
run = simulator.launch(kernel, 1, 1, [], trace=True)
assert not any(name.partition(".")[0] == "tilescope" for name in sys.modules)
print(type(run.show()))
"""


@pytest.fixture
def run() -> simulator.Run:
    kernel = Kernel.from_cuda('extern "C" __global__ void nothing() {}', "nothing")
    return simulator.launch(kernel, 1, 1, [])


def test_the_registered_renderer_is_called(
    run: simulator.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator.run, "_renderers", [])
    simulator.run.set_page_renderer(lambda run: "another")
    simulator.run.set_page_renderer(lambda run: f"page of {run.kernel}")
    assert run.show() == "page of nothing"


def test_without_a_renderer_the_error_says_what_to_import(
    run: simulator.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator.run, "_renderers", [])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    with pytest.raises(simulator.SimulatorError, match=r"import tilescope\.view"):
        run.show()


def test_the_installed_renderer_is_found(tmp_path: Path) -> None:
    """With the entry points of pyproject.toml, as an installation writes them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][simulator.run.PAGES]
    folder = tmp_path / "tilescope-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tilescope\nVersion: 0.1.0\n")
    lines = [f"[{simulator.run.PAGES}]", *(f"{name} = {at}" for name, at in points.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH], env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "<class 'tilescope.view.page.Shown'>", done.stderr
