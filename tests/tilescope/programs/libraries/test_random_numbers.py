"""cuRAND's sequences against those of its own generators on the host (``curand_host.json``)."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from tests.support.paths import ROOT
from tilescope.programs.libraries.random_numbers import PHILOX, RandomNumbers

MADE = json.loads((ROOT / "tests" / "ground_truth" / "curand_host.json").read_text())["generators"]


@pytest.mark.parametrize("made", MADE, ids=lambda m: f"{m['kind']}-{m['ordering']}-{m['seed']}")
def test_a_sequence_of_calls(made: dict[str, Any]) -> None:
    """Each continues where the last one ended, of whatever distribution both are."""
    numbers = RandomNumbers(made["kind"], made["seed"], made["offset"], made["ordering"])
    for call in made["calls"]:
        found = numbers.draw(call["distribution"], call["count"])
        if "sha256" in call:
            assert hashlib.sha256(found.tobytes()).hexdigest() == call["sha256"], call
        else:
            several = [*found[:2], *found[-2:]]
            np.testing.assert_allclose(several, call["values"], rtol=1e-5, atol=1e-6)


def test_another_seed_begins_anew() -> None:
    numbers = RandomNumbers(PHILOX, 7)
    first = numbers.draw("bits", 6)
    assert not np.array_equal(numbers.draw("bits", 6), first)
    numbers.restart(seed=7)
    assert np.array_equal(numbers.draw("bits", 6), first)
