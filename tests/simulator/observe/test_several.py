"""Loads from one base are counted together: whatever comes between, as if one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.compile.compiler import compile_ptx
from simulator.core.geometry import Geometry
from simulator.memory.event import AccessEvent
from simulator.observe.counters.traffic_counter import TrafficCounter
from tests.support.launches import entry

KERNEL = entry(
    "ld.shared.u32 %r1, [%r0]; ld.shared.u32 %r2, [%r0+4]; ld.shared.u32 %r3, [%r0+256];"
    "ld.shared.u32 %r4, [%r0+12];"
)
SHAPE = (1, 1, 64, 3)
BASES = [
    np.arange(64, dtype=np.int64).reshape(1, 1, 64, 1) * stride + start
    for stride, start in ((4, 0), (4, 128), (4, 64), (8, 0), (8, 1024))
]
BASES += [BASES[0].copy(), np.arange(192).reshape(SHAPE) % 7 * 16, np.array(32)]
MASKS = [None, np.arange(64).reshape(1, 1, 64, 1) < 5, np.arange(192).reshape(SHAPE) % 5 < 2]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from(range(len(BASES))), st.sampled_from(range(3)), st.booleans()),
        max_size=12,
    )
)
def test_together_and_one_by_one_count_the_same(drawn: list[tuple[int, int, bool]]) -> None:
    program = compile_ptx(KERNEL.ptx, "k")
    sites = tuple(program.sites[:4])
    together, alone = (TrafficCounter(len(program.sites), {}) for _ in range(2))
    for batch in range(2):
        geometry = Geometry((6, 1, 1), (64, 1, 1), np.arange(3) + 3 * batch)
        for counter in (together, alone):
            counter.start(geometry)
        last = None
        for base, mask, twice in drawn:
            for _ in range(1 + twice):
                what = BASES[base], MASKS[mask], last == (base, mask), None, None
                last = base, mask
                events = [AccessEvent(site, "shared", *what) for site in sites]
                together.grouped_loads(sites, events)
                for event in events:
                    alone.access(event._replace(repeated=False))
        for counter in (together, alone):
            counter.finish()
    for site in sites:
        assert together.traffic(site) == alone.traffic(site)
        requests = sum(traffic.requests for traffic in alone.traffic(site).values())
        assert bool(requests) == bool(drawn)
