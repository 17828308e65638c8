"""Graphs: what streams were given while they were captured runs when the graph is launched."""

from pathlib import Path

import pytest

import tilescope
from tests.support.graph_scripts import GRAPHS
from tilescope.scripts.run import run_script
from tilescope.scripts.virtual_device import VirtualDevice


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", [(), ("--faulty",)])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_runs_when_it_is_launched(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    path = tmp_path / "script.py"
    path.write_text(GRAPHS[name])
    with tilescope.session() as made:
        assert run_script(path, words, VirtualDevice(order=made.order))[:2] == (0, "")
    assert {hazard.kind for hazard in made.hazards} == ({"host-order"} if words else set())
    assert all("launch" not in launch.kernel.name for launch in made.launches)
