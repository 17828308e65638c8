"""Constants adjusted on launches, as ``docs/predicted.md`` has them."""

import dataclasses
import math

from benchmarks import adjusted
from kernels import library
from simulator.caches.traffic import observe
from simulator.execute.prepare import prepare
from simulator.prediction.error_bounds import errors
from simulator.prediction.model_input import case
from simulator.prediction.rates import rates
from tests.support.paths import ROOT


def test_constants_are_found_again() -> None:
    """From launches that took what other constants say, adjusting finds what they took."""
    true = dataclasses.replace(adjusted.start(), launch_us=9.0, barrier=60.0)
    launches = []
    for name, size in (("matmul_tiled", "64"), ("scan_blelloch", "4096")):
        entry = library.get(name)
        launch = entry.launch(entry.parse_size(size), None)
        ready = prepare(
            entry.kernel(None), launch.grid, launch.block, launch.args, 0, "lockstep", 10**6, False
        )
        it = case(ready, observe(ready, adjusted.GPU), rates(adjusted.GPU), "")
        one = adjusted.keep(name, 1.0, it)
        launches.append(dataclasses.replace(one, ms=math.exp(one.error(true))))
    found = adjusted.adjust(launches)
    assert sum(abs(one.error(adjusted.start())) for one in launches) > 0.4
    assert sum(abs(one.error(found)) for one in launches) < 0.02
    families = {"scan": lambda case: case.startswith("scan")}
    known, errors = adjusted.left_out(launches, families, lambda case: True)["scan"]
    assert known == adjusted.adjust(launches[:1])
    assert len(errors) == 1


def test_ranges_are_those_of_the_page() -> None:
    """Both are written by one run of ``benchmarks.predictions``."""
    page = (ROOT / "docs" / "predicted.md").read_text()
    for name, share in errors().items():
        assert f"| {name} | {100 * share:.0f} % |" in page
