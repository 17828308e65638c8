"""Blocks that do alike are judged in one of them: what is told is what all would have shown."""

import itertools
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from simulator.core.geometry import Geometry
from simulator.memory.event import AccessEvent, LaneAddressList
from simulator.memory.site import Site
from simulator.observe import observers
from simulator.races.check.shared_memory import SharedMemory
from simulator.races.in_flight.late_waits import LateWaits
from simulator.races.representative import representative_check, selection
from simulator.races.representative.block_projection import BlocksDiffer, FirstBlock, cut
from tests.simulator.races.in_flight.test_product_pipelines import PIPELINE, PIPELINES
from tests.support.launches import SCHEDULES, drawn_later

BLOCKS = 3
GOOD, COUNT, _ = PIPELINES["one of each warp"]
BAD, _, _ = PIPELINES["no wait"]
LATE = "WAIT(1); if (t % 32 == 0) arrive(&empty[s]);"
STEPS = {
    "right": GOOD,
    "all too early": LATE,
    "one of them too early": f"if (blockIdx.x == 1) {{ {LATE} }} else {{ {GOOD} }}",
    "none waits": "if (t % 32 == 0) arrive(&empty[s]);",
    "all write to the tile": f"tiles[s][t % 256] = 1; {GOOD}",
    "one of them writes to it": f"if (blockIdx.x == 2 && k == 1) tiles[s][9] = 1; {GOOD}",
    "one of them reads uninitialised memory": f"if (blockIdx.x == 2) d[0] += left[t]; {GOOD}",
    "all write to a barrier": f"if (t == 0 && k == 1) *(volatile int*)&full[0] = 0; {GOOD}",
    "all multiply uninitialised memory": f"FENCE(); product(d, a, left); COMMIT(); {GOOD}",
    "a barrier of the warpgroup that tells": "WAIT(0); if (warp < 4) { "
    'asm volatile("bar.sync 1, 128;" ::: "memory"); if (t % 32 == 0) arrive(&empty[s]); }',
}
COUNTS = {"a barrier of the warpgroup that tells": "4"}
END = "    WAIT(0);\n    for (int i"
OTHERS = {
    "another count of rounds": ("k < n", "k < n - blockIdx.x"),
    "other stages": ("k % STAGES", "(k + blockIdx.x) % STAGES"),
    "another order of lanes": ("t % 32 == 0", "t % 32 == blockIdx.x"),
}


def source(step: str = GOOD, before: str = "", after: str = "", count: str = COUNT) -> str:
    text = PIPELINE.replace("COUNT", count).replace("STEP", step)
    left = "__align__(128) char left[256]; __shared__ u64 full[STAGES]"
    text = text.replace("u64 full[STAGES]", left)
    text = text.replace("out[t + 128", "out[1024 * blockIdx.x + t + 128")
    return text.replace(before, after) if before else text


CASES = {name: source(step, count=COUNTS.get(name, COUNT)) for name, step in STEPS.items()}
CASES["all write to a barrier in the end"] = source(
    GOOD, END, END.replace("    for", "    if (t == 0) *(volatile int*)&full[0] = 0;\n    for")
)
CASES |= {name: source(GOOD, *change) for name, change in OTHERS.items()}
CASES |= {f"{name}, too early": source(LATE, *change) for name, change in OTHERS.items()}


def run(text: str, schedule: str | int = "lockstep", rounds: int = 5) -> dict[str, Any]:
    """What a run says, but for the time it took; and what it computes."""
    kernel = Kernel.from_cuda(text, "k", "compute_90a")
    data = (np.arange(rounds * 128) % 13).astype(np.float16)
    out = np.zeros(1024 * BLOCKS, np.float32)
    ran = simulator.launch(
        kernel, BLOCKS, 288, [out, data, rounds], schedule=schedule, step_limit=20_000
    )
    return ran.to_dict() | {"seconds": 0, "out": out.tolist()}


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Any:
    """To have all blocks judged from the start."""
    return lambda: monkeypatch.setattr(observers, "may_be_alike", lambda *_: False)


@pytest.mark.slow_but("...lanes, too early")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("schedule", [SCHEDULES[0], *drawn_later(SCHEDULES[1:])])
def test_the_same_is_told(name: str, schedule: str | int, apart: Any) -> None:
    found = run(CASES[name], schedule)
    apart()
    assert found == run(CASES[name], schedule)
    hazards = {hazard["kind"] for hazard in found["hazards"]}
    assert bool(hazards) == (name not in ("right", *OTHERS)), hazards


@pytest.mark.slow_but("18-right", "27-all too early", "27-right", "36-right", "54-right")
@pytest.mark.parametrize("name", ["right", "all too early", "one of them too early"])
@pytest.mark.parametrize("after", range(0, 60, 9))
def test_whenever_they_come_apart(name: str, after: int, apart: Any, monkeypatch: Any) -> None:
    count, tell = itertools.count(), selection.OneOfThem.notify

    def suspects(self: Any, *what: Any) -> bool:
        return tell(self, *what) or next(count) == after

    monkeypatch.setattr(selection.OneOfThem, "notify", suspects)
    found = run(CASES[name])
    assert next(count) > after or found["hazards"]
    apart()
    assert found == run(CASES[name])


@pytest.mark.slow
def test_no_more_is_kept_than_there_is_room(monkeypatch: pytest.MonkeyPatch, apart: Any) -> None:
    monkeypatch.setattr(selection, "_MAX_EVENTS", 100_000)
    told: list[str] = []
    room, all_of_them = (
        representative_check.RepresentativeBlockCheck,
        representative_check.RepresentativeBlockCheck._replay,
    )
    monkeypatch.setattr(room, "_replay", lambda s: (told.append(""), all_of_them(s))[1])
    found = run(CASES["right"], rounds=40)
    assert told
    apart()
    assert found == run(CASES["right"], rounds=40)


def calls(size: tuple[int, int, int]) -> int:
    """Calls in ``races`` for a product of such a size."""
    count, entry = 0, library.get("matmul_wgmma")
    launch, kernel = entry.launch(size), entry.kernel()

    def called(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call" and "races" in frame.f_code.co_filename

    sys.setprofile(called)
    try:
        ran = simulator.launch(
            kernel, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes
        )
    finally:
        sys.setprofile(None)
    assert ran.hazards == []
    return count


@pytest.mark.slow
def test_many_blocks_cost_what_one_does() -> None:
    """In calls; that their arrays are those of one block is what it is for."""
    columns: set[int] = set()
    one = calls((128, 128, 256))
    with pytest.MonkeyPatch.context() as patch:
        access = SharedMemory.access

        def noted(shared: SharedMemory, event: AccessEvent) -> None:
            columns.add(shared.order.geometry.columns)
            access(shared, event)

        patch.setattr(SharedMemory, "access", noted)
        assert calls((384, 384, 256)) < 1.05 * one + 200
    assert columns == {1}


# -- what is cut ------------------------------------------------------------------------------

GEOMETRY = Geometry((4, 1, 1), (4, 1, 1), np.arange(3))


def site(number: int = 0, queue: str = "product") -> Site:
    return Site(number, None, "k", "load", "shared", "b32", 4, 0, queue=queue)  # type: ignore[arg-type]


def event(address: Any, mask: Any = None, number: int = 0) -> AccessEvent:
    return AccessEvent(site(number), "shared", address, mask, False, None, None)


def lanes(*values: int) -> Any:
    return np.array(values).reshape(1, 1, 4, 1)


def test_lanes_that_are_off_may_differ() -> None:
    wide = lanes(0, 16, 32, 48) + np.zeros(3, np.int64)
    wide[0, 0, 2, 1] = 7
    on = lanes(1, 1, 0, 1).astype(bool)
    assert cut(wide, on).reshape(-1).tolist() == [0, 16, 32, 48]
    with pytest.raises(BlocksDiffer):
        cut(wide)
    with pytest.raises(BlocksDiffer):
        cut(on & (np.arange(3) != 1))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("changed", ["", "thread", "address", "home", "count"])
def test_copies_of_blocks(mixed: bool, changed: str) -> None:
    column = np.repeat(np.arange(3), 4)
    thread, address = np.tile([1, 1, 2, 2], 3), np.tile([0, 4, 64, 68], 3)
    home = column.copy()
    for name, values in (("thread", thread), ("address", address), ("home", home)):
        values[-1] += changed == name
    where = LaneAddressList(thread, column, address, home)
    if changed == "count":
        where = LaneAddressList(*(values[:-1] for values in where))
    if mixed:  # thread after thread
        turn = (
            np.lexsort((column, where.thread)) if changed != "count" else np.argsort(address[:-1])
        )
        turn = turn[np.argsort(where.column[turn] * 0, kind="stable")]
        where = LaneAddressList(*(values[turn] for values in where))
    first = FirstBlock(GEOMETRY)
    if changed:
        with pytest.raises(BlocksDiffer):
            first.of(event(where))
        return
    one, tiled = first.of(event(where))
    assert tiled != mixed
    assert one.address.address.tolist() == [0, 4, 64, 68]
    if tiled:
        whole = first.whole(one).address
        assert all(map(np.array_equal, whole, where))
    again, _ = first.of(event(LaneAddressList(*(values.copy() for values in where))))
    assert again.address is one.address
    other, _ = first.of(event(where._replace(address=where.address * 2)))
    assert other.address.address.tolist() == [0, 8, 128, 136]


ON_ONE_LINE = r"""
#define WAIT() asm volatile("cp.async.wait_group 0;" ::: "memory")
#define ALL(s) if (t < 32) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(in + t) : "memory"); \
    else { out[t] = s[t ^ 1]; WAIT(); out[t + 64] = s[t ^ 2]; } \
    WAIT();
extern "C" __global__ void k(float* out, const float* in) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = 1;
    ALL(s)
}
"""


@pytest.mark.slow_cases("matmul_tensor")
@pytest.mark.parametrize("name", ["", "matmul_async_copy", "matmul_tensor", "matmul_wgmma"])
def test_one_access_of_a_place_is_asked_for_all(name: str) -> None:
    asked: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        some = LateWaits.any

        def both(self: LateWaits, copy: Site, wait: Any) -> bool:
            found, order = some(self, copy, wait), self.race_log.find_order()
            asked.append(found)
            assert found == any(
                order.wait_follows_access(copy, one, wait) for one in self.race_log.sites
            )
            return found

        patch.setattr(LateWaits, "any", both)
        if name:
            entry = library.get(name)
            launch = entry.launch((128, 128, 128))
            shape = launch.grid, launch.block, launch.args, launch.shared_bytes
            simulator.launch(entry.kernel(), *shape)
        else:
            kernel = Kernel.from_cuda(ON_ONE_LINE, "k")
            args = [np.zeros(128, np.float32), np.zeros(64, np.float32)]
            simulator.launch(kernel, 1, 64, args)
    assert any(asked) == (not name)
