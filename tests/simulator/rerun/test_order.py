"""The order between launches: streams, events and the host's waits, as CUDA's guide has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
import tilescope
from kernels import Kernel, Pointer
from simulator.host_order import Order, Source
from simulator.observe.checks.array_footprint import ArrayFootprint
from tilescope.sessions.recording import Session

SOURCE = """
extern "C" __global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
extern "C" __global__ void sum(const float* x, float* out) { atomicAdd(out, x[threadIdx.x]); }
"""
X, Y, OUT = np.ones(64, np.float32), np.ones(64, np.float32), np.zeros(1, np.float32)


def twice(stream: Any, array: Any = X, n: int = 64) -> None:
    with stream:
        simulator.launch(Kernel.from_cuda(SOURCE, "twice"), 1, 64, [array, n])


def total(stream: Any, array: Any = X) -> None:
    with stream:
        simulator.launch(Kernel.from_cuda(SOURCE, "sum"), 1, 64, [array, OUT])


def event(s: Session, late: bool) -> None:
    one, two = s.stream(), s.stream(blocking=False)
    before = one.record()
    twice(one)
    two.wait(one.record() if late else before)
    total(two)


def through_a_third(s: Session) -> None:
    one, two, three = s.stream(False), s.stream(False), s.stream(False)
    twice(one)
    two.wait(one)
    twice(two, Y)
    three.wait(two)
    total(three)


def through_the_default(s: Session) -> None:
    one, two = s.stream(), s.stream()
    twice(one)
    twice(s.order.legacy, Y)
    total(two)


def host(s: Session, wait: Callable[[Any, Any], None]) -> None:
    one, two = s.stream(False), s.stream(False)
    twice(one)
    wait(s, one)
    total(two)


def two(s: Session, first: Any, second: Any, **blocking: bool) -> None:
    streams = [s.stream(blocking.get(name, True)) if name != "default" else s.order.legacy
               for name in ("one", "two")]  # fmt: skip
    first(streams[0])
    second(streams[1])


def with_default(s: Session, blocking: bool, later: bool) -> None:
    streams = [s.stream(blocking), s.order.legacy]
    for call, stream in zip((twice, total), streams[:: -1 if later else 1], strict=True):
        call(stream)


PROGRAMS: dict[str, tuple[int, Callable[[Session], None]]] = {
    "write and read": (1, lambda s: two(s, twice, total)),
    "write and write": (1, lambda s: two(s, twice, twice)),
    "read and write": (1, lambda s: two(s, total, twice)),
    "reads, and atomics": (0, lambda s: two(s, total, total)),
    "atomic and write": (1, lambda s: two(s, total, lambda t: twice(t, OUT, 1))),
    "halves": (0, lambda s: two(s, lambda t: twice(t, X, 32), lambda t: twice(t, X[32:], 32))),
    "pointer": (0, lambda s: two(s, lambda t: twice(t, X, 32),
                                 lambda t: twice(t, Pointer(X, 32), 32))),
    "overlap": (1, lambda s: two(s, lambda t: twice(t, X, 33), lambda t: twice(t, X[32:], 32))),
    "every other": (0, lambda s: two(s, lambda t: twice(t, X[::2], 32),
                                     lambda t: twice(t, X[1::2], 32))),
    "every other, once more": (1, lambda s: two(s, lambda t: twice(t, X[::2], 32),
                                                lambda t: twice(t, X[32:33], 1))),
    "event": (0, lambda s: event(s, late=True)),
    "event before the work": (1, lambda s: event(s, late=False)),
    "a third stream": (0, through_a_third),
    "the default stream between": (0, through_the_default),
    "host waits for the stream": (0, lambda s: host(s, lambda _, one: one.synchronize())),
    "host waits for all": (0, lambda s: host(s, lambda s, _: s.synchronize())),
    "host does not wait": (1, lambda s: host(s, lambda *_: None)),
    "default first": (0, lambda s: with_default(s, blocking=True, later=True)),
    "default last": (0, lambda s: with_default(s, blocking=True, later=False)),
    "default first, non-blocking": (1, lambda s: with_default(s, blocking=False, later=True)),
    "default last, non-blocking": (1, lambda s: with_default(s, blocking=False, later=False)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_session(name: str) -> None:
    wanted, program = PROGRAMS[name]
    with tilescope.session() as s:
        program(s)
    assert [h.kind for h in s.hazards] == ["host-order"] * wanted
    assert all(not launch.run.hazards for launch in s.launches[:-1])
    for hazard in s.hazards:
        assert {i.source.file for i in hazard.involved} == {__file__}
        assert all("simulator.launch(" in i.source.code for i in hazard.involved)


def test_the_report() -> None:
    with tilescope.session() as s:
        two(s, twice, total)
    text = " ".join(str(s.hazards[0]).split())
    assert "the launch of sum reads x[0], which the launch of twice writes: nothing" in text
    assert "the launch of sum is in stream 2, the launch of twice in stream 1" in text


@pytest.mark.parametrize("freed", [False, True])
def test_memory_that_is_another_arrays_now(freed: bool) -> None:
    order, memory = Order(), bytearray(64)
    first, second = (np.ndarray(8, np.float64, memory) for _ in range(2))

    def write(array: Any) -> None:
        with order.on(order.stream()):
            order.work("a copy", Source("", 0), [ArrayFootprint.whole(array, "a", "store")])

    write(first)
    if freed:
        del first
    write(second)
    assert len(order.hazards) == (not freed)


STEPS = st.lists(
    st.tuples(st.sampled_from(["work", "record", "wait", "sync", "sync all", "sync event"]),
              st.integers(0, 3), st.integers(0, 1)), max_size=14,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_clocks_are_what_a_graph_says(steps: list[tuple[str, int, int]]) -> None:
    """Streams 0 to 3: the default one, two blocking ones, one that is not."""
    order = Order()
    streams = [order.legacy, order.stream(), order.stream(), order.stream(blocking=False)]
    events: list[Any] = [{}, {}]
    done: list[tuple[int, set[int]]] = []  # of each piece of work: its stream, what is before it
    begun: list[set[int]] = [set() for _ in streams]  # what a stream's next piece waits for
    moments: list[set[int]] = [set(), set()]
    host: set[int] = set()

    def before(stream: int) -> set[int]:
        """Each rule by itself: program order, what was waited for, the default stream."""
        rivals = {0: (0, 1, 2), 1: (0, 1), 2: (0, 2), 3: (3,)}[stream]
        found = begun[stream] | host
        for other in rivals:
            found |= begun[other] if other != stream else set()
        return found

    for what, stream, number in steps:
        if what == "work":
            mine = before(stream)
            clock = streams[stream].begins()
            numbers = {(s, n): i for i, (s, n) in enumerate(numbered(done))}
            said = {i for (s, n), i in numbers.items() if clock.get(streams[s].number, 0) >= n}
            assert said == mine
            with order.on(streams[stream]):
                order.work("work", Source("", 0), [])
            done.append((stream, mine))
            begun[stream] = mine | {len(done) - 1}
        elif what == "record":
            events[number], moments[number] = streams[stream].record(), before(stream)
        elif what == "wait":
            streams[stream].wait(events[number])
            begun[stream] = before(stream) | moments[number]
        elif what == "sync event":
            order.waits(events[number])
            host |= moments[number]
        elif what == "sync":
            streams[stream].synchronize()
            host |= before(stream)
        else:
            order.synchronize()
            host = set(range(len(done)))


def numbered(done: list[tuple[int, set[int]]]) -> list[tuple[int, int]]:
    """The order counts pieces of work from 1, over all streams."""
    return [(stream, i + 1) for i, (stream, _) in enumerate(done)]
