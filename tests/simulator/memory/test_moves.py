"""Pointers that a loop moves on: what is known of one address holds for the next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.core.address_deltas import AddressDeltas
from simulator.memory.addressing.address_range import extent, moved
from simulator.memory.addressing.identity_memo import IdentityMemo
from simulator.observe.counters import patterns

LOOPS = {
    "columns": "const float *p = a + c; for (int i = 0; i < r; ++i, p += n) s += *p;",
    "odd steps": "const char *p = (const char*)a + c; for (int i = 0; i < 9; ++i, p += 3) s += *p;",
    "backwards": "const float *p = a + n * n - 1 - t; for (int i = 0; i < 9; ++i, p -= 7) s += *p;",
    "ragged": "const float *p = a + c * t; for (int i = 0; i < r; ++i, p += 5) s += p[0] + p[1];",
    "vectors": """const float4 *p = (const float4*)a + c;
        for (int i = 0; i < 9; ++i, p += 4) s += p->x + p->w;""",
    "two": """const float *p = a + r, *q = a + c;
        for (int i = 0; i < 20; ++i, p += n, q += 2) s += *p * *q;""",
    "written": "float *p = (float*)a + t; for (int i = 0; i < 6; ++i, p += m) *p = c + i; s = 1;",
    "out of bounds": "const float *p = a + t; for (int i = 0; i < 9; ++i, p += 40000) s += *p;",
    "off and on": """const float *p = a + c;
        for (int i = 0; i < 30; ++i, p += n) if ((i + r) % 3) s += *p;""",
    "shared": """__shared__ float w[512]; for (int i = r; i < 512; i += 32) w[i] = i;
        __syncthreads(); const float *p = w + threadIdx.x;
        for (int i = 0; i < 9; ++i, p += blockIdx.x + 1) s += *p;""",
}


def kernel(loop: str) -> Kernel:
    return Kernel.from_cuda(
        f"""extern "C" __global__ void k(const float *a, float *out, int n, int m) {{
        int r = threadIdx.x, c = blockIdx.x * 8 + threadIdx.y * 2, t = blockIdx.x * 96
            + threadIdx.y * 32 + r; float s = 0;
        #pragma unroll 1
        {loop}
        out[t] = s; }}""",
        "k",
    )


@contextmanager
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(AddressDeltas, "origin", lambda self, array: (None, 0))
        yield


@pytest.mark.slow_cases("columns", "ragged", "shared")
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("schedule", ["lockstep", 5])
def test_the_same_is_said(loop: str, schedule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, counters and hazards are those of a launch that works all of it out."""
    told = []

    def launch() -> None:
        rng = np.random.default_rng(3)
        args = [rng.random(128 * 128, np.float32), np.zeros(13 * 96, np.float32), 128, 2000]
        run = simulator.launch(kernel(loop), 13, (32, 3), args, schedule=schedule)
        told.append((run.to_dict() | {"seconds": 0}, [a.tobytes() for a in args[:2]]))

    with nothing_known(monkeypatch):
        launch()
    launch()
    assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_what_is_found(seed: int) -> None:
    """Arrays that come and go, moved by numbers from all over the 64 bits."""
    rng, moves = np.random.default_rng(seed), AddressDeltas()
    extents = IdentityMemo(lambda base: extent(base, None), moved)
    alike = IdentityMemo(patterns.pattern_of, patterns.moved)
    for recent in (extents, alike):
        recent.start(moves)
    low = int(rng.choice([0, 1 << 40, (1 << 63) - 400, -(1 << 63)]))
    known = [np.int64(low) + rng.integers(0, 40, shape) for shape in
             [(1, 1, 4, 1), (1, 2, 4, 3), (1, 1, 1, 5)]]  # fmt: skip
    known.append(np.int64(low) + np.arange(4).reshape(1, 1, 4, 1) + np.arange(5) * 64)
    steps = [4, 7, -32, 1 << 62, -(1 << 63), int(rng.integers(-(1 << 63), 1 << 63))]
    for _ in range(300):
        at, step = int(rng.integers(len(known))), np.int64(rng.choice(steps))
        one = moves.add(known[at], step) if rng.random() < 0.5 else moves.add(step, known[at])
        if rng.random() < 0.6:
            low, high, bits = extents(one)
            assert (low, high) == (int(one.min()), int(one.max()))
            for nbytes in (1, 2, 4, 8, 16):
                assert bits & nbytes - 1 or not (one & nbytes - 1).any()
            found, wanted = alike(one), patterns.pattern_of(one)
            assert (found is None) == (wanted is None)
            if found is not None and wanted is not None:
                assert found.begins == wanted.begins
                assert found.content == wanted.content
                assert (found.first == wanted.first).all()
        if rng.random() < 0.7:
            known[at] = one


def test_loops_are_seen_as_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else none of this is tried."""
    made: list[Any] = []
    monkeypatch.setattr(
        "simulator.observe.counters.traffic_counter.pattern_of",
        lambda address: made.append(address) or patterns.pattern_of(address),
    )
    args = [np.ones(128 * 128, np.float32), np.zeros(13 * 96, np.float32), 128, 2000]
    simulator.launch(kernel(LOOPS["two"]), 13, (32, 3), args)
    assert len(made) < 6


def test_what_has_the_same_content() -> None:
    """It is known again, but in another shape it is something else."""
    alike = IdentityMemo(patterns.pattern_of, patterns.moved)
    alike.start(AddressDeltas())
    line = np.arange(4).reshape(1, 1, 4, 1) * 8
    found, again = alike(line), alike(line.copy())
    other, blocks = alike(line.reshape(1, 4, 1, 1)), alike(line.reshape(1, 1, 1, 4))
    assert found is again
    assert found is not None
    assert other is not None
    assert blocks is not None
    assert found.relative.shape != other.relative.shape
    assert blocks.first.tolist() == [0, 8, 16, 24]
    more = alike(line + 1)
    assert more is not None
    assert more.first.tolist() == [1]
