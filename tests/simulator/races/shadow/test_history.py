"""What is remembered of an instruction's accesses, and how narrow the locations are."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulator
from simulator.compile.compiler import compile_ptx
from simulator.memory.site import Site, granules
from simulator.races.shadow import access_history
from simulator.races.shadow.access_history import AccessHistory
from tests.support.launches import compiled

ACCESSES = st.dictionaries(
    st.integers(0, 12), st.tuples(st.integers(0, 2), st.booleans()), min_size=0, max_size=8
)


@pytest.mark.slow_cases("0")
@given(steps=st.lists(st.tuples(ACCESSES, st.booleans()), max_size=12), load=st.booleans())
@pytest.mark.parametrize("few", [access_history._FEW, 0])
def test_a_history_is_what_came_last(few: int, steps: list[Any], load: bool) -> None:
    """Whoever asks, whenever: each location's and thread's latest, and whether values changed.

    And whether only what is touched is looked at, or all.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_history, "_FEW", few)
        check(steps, load)


def check(steps: list[Any], load: bool) -> None:
    site = cast(Site, type("S", (), {"access": "load" if load else "store"}))
    found, expected = AccessHistory(site), dict[int, list[Any]]()
    met = dict.fromkeys(range(13), 0)
    for now, (accesses, asked) in enumerate(steps, 1):
        keys = np.array(list(accesses), np.int64)
        for key, (_, meets) in accesses.items():
            met[key] = now - 1 if meets else met[key]
        values = np.array([value for value, _ in accesses.values()], np.uint64)
        since = np.array([met[key] for key in accesses], np.int64)
        found.add(keys, now, None if load else values, since)
        for key, (value, _) in accesses.items():
            if key not in expected:
                expected[key] = [now, value, False, False]
                continue
            time, before, varied, ever = expected[key]
            other = value != before
            expected[key] = [now, value, (other or varied) and time > met[key], ever or other]
        if asked:
            found.table.keys  # noqa: B018 - it settles
    assert found.table.keys.tolist() == sorted(expected)
    rows = [expected[key] for key in sorted(expected)]
    assert found.table.times.tolist() == [row[0] for row in rows]
    if load:
        assert found.values is None
        return
    assert found.values is not None
    assert found.values.tolist() == [row[1] for row in rows]
    assert found.table.varied.tolist() == [row[2] for row in rows]
    assert found.table.varied_far.tolist() == [row[3] for row in rows]


def test_what_waits_to_be_put_in_order_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_history, "_WAITING", 100)
    found = AccessHistory(cast(Site, type("S", (), {"access": "load"})))
    for now in range(1, 50):
        found.add(np.arange(40) + now % 5 * 40, now, None, np.zeros(40, np.int64))
        assert sum(len(one.keys) for one in found._added.values()) <= 240
    assert found.table.times.tolist() == [time for time in range(45, 50) for _ in range(40)]


BYTES = """extern "C" __global__ void k(unsigned char *out, const unsigned char *in) {
  __shared__ %s s[64];
  s[threadIdx.x] = in[threadIdx.x];
  %s
  out[threadIdx.x] = s[threadIdx.x ^ 1] + s[threadIdx.x ^ 33];
}"""


@pytest.mark.parametrize(("type", "wide"), [("float", 4), ("unsigned char", 1), ("short", 2)])
def test_locations_are_as_narrow_as_accesses_there(type: str, wide: int) -> None:
    for barrier in ("__syncthreads();", ""):
        kernel = compiled(BYTES % (type, barrier))
        program = compile_ptx(kernel.ptx, "k")
        assert granules(program.sites, False) == (1, wide, 4)
        assert granules(program.sites, True) == (1, 1, 1)
        out = np.zeros(64, np.uint8)
        run = simulator.launch(kernel, 1, 64, [out, np.arange(64, dtype=np.uint8)])
        races = [hazard for hazard in run.hazards if hazard.kind == "raw-race"]
        assert bool(races) == (not barrier)
        assert {hazard.space for hazard in races} <= {"shared"}


def test_an_access_without_a_space_may_be_any() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.shared .b8 s[64];
.visible .entry k(.param .u64 p) {
.reg .b64 %d<3>; .reg .b32 %r<3>;
ld.param.u64 %d0, [p];
ld.u8 %r0, [%d0];
st.shared.u32 [s], %r0;
ret;
}"""
    assert granules(compile_ptx(text, "k").sites, False) == (1, 1, 1)
