"""Scripts as the front ends' documents teach them: right, counted, clean; their faults found.

Each script takes ``--faulty``; the line where that shows is marked ``named``.
"""

from typing import Any

import numpy as np
import pytest

import tilescope
from tests.support.paths import TESTS
from tilescope.scripts.run import run_script
from tilescope.scripts.virtual_device import VirtualDevice

FOLDER = TESTS / "kernels" / "front_ends" / "scripts"
NEEDS = {"numba": "numba_cuda", "triton": "triton", "cuda": "cuda.core"}
KINDS = {
    "numba_matmul": "war-race", "numba_reduction": "raw-race", "numba_histogram": "raw-race",
    "numba_shared": "raw-race", "triton_vector_add": "out-of-bounds",
    "triton_softmax": "waw-race", "triton_matmul": "waw-race", "triton_layer_norm": "waw-race",
    "triton_attention": "waw-race", "cuda_core_transpose": "raw-race",
}  # fmt: skip
"""What is found in the faulty one of each script."""
FEATURES = ("numba_features", "triton_features")
"""Scripts with what else the documents show; of these there is no faulty one."""
RUNS = [(name, ("--faulty",) * faulty) for name in KINDS for faulty in (0, 1)]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@pytest.mark.slow_but(
    "cuda_core_transpose-words18", "cuda_core_transpose-words19", "numba_histogram-words4",
    "numba_histogram-words5", "numba_matmul-words1", "numba_reduction-words2",
    "numba_reduction-words3", "numba_shared-words6", "numba_shared-words7",
    "triton_vector_add-words9",
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")  # of the front ends
@pytest.mark.parametrize(
    ("name", "words"),
    [*RUNS, *(pytest.param(name, (), marks=pytest.mark.slow) for name in FEATURES)],
)
def test_a_script(name: str, words: tuple[str, ...]) -> None:
    needs = NEEDS[name.split("_")[0]]
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    path = FOLDER / f"{name}.py"
    with np.errstate(all="ignore"), tilescope.session() as made:
        code, end, *_ = run_script(path, words, VirtualDevice())
    assert (code, end) == (0, "")
    assert all(
        c.global_load.requests + c.global_store.requests > 0
        for c in (launch.run.counters for launch in made.launches)
    )
    assert {launch.file for launch in made.launches} == {str(path)}
    if not words:
        assert made.hazards == []
        return
    named = [h for h in made.hazards if any("named" in i.source.code for i in h.involved)]
    assert KINDS[name] in {h.kind for h in named}


def test_every_script_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*KINDS, *FEATURES}
