"""Blocks of a launch in several threads: the results are those of one, whatever they exchange."""

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.native import block_ranges, engine, jit
from tests.support.engines import both

pytestmark = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())
BLOCKS, THREADS = 23, 64
SOURCES = {
    "own elements": ("for (int r = 0; r < n; r++) a[i] = a[i] * 3 + r;", False, True),
    "one array to another": ("b[i] = a[i] + a[i ^ 1]; if (n < 9) a[i] = n;", False, True),
    "shared": ("""__shared__ int s[64]; s[t] = a[i]; __syncthreads(); int x = s[63 - t];
        for (int r = 0; r < n; r++) { __syncthreads(); s[t] += x; } b[i] = s[t];""", False, True),
    "a histogram": ("atomicAdd(b + (a[i] & 7), 1);", True, True),
    "tickets": ("b[8 + atomicAdd(b + 4000, 1) % 2000] = i;", True, True),
    "a block's own atomics": ("b[i] += atomicAdd(b + 2000 + blockIdx.x, i);", False, True),
    "a read of another block's": ("if (i == 1) b[0] = n; if (i == 1400) a[0] = b[0];", True, False),
    "a race of blocks": ("if (t == 3) a[blockIdx.x + 1] = a[blockIdx.x] + n;", None, False),
    "a fault far back": ("b[i] = i; if (i == 22 * 64 + 5) b[1 << 20] = 1;", False, False),
    "the read-only path": (
        "if (i == 1) b[0] = n; if (i == 1400) a[0] = __ldg(b + 9);", False, False,
    ),
}  # fmt: skip
"""Code; whether its launch begins again in one thread (``None``: that depends on when others stop);
whether it is native in the end."""


def kernel(body: str, name: str = "k") -> Kernel:
    """A kernel of two arrays and a number."""
    head = "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"
    return Kernel.from_cuda(
        f'extern "C" __global__ void {name}(int* a, int* b, int n) {{ {head} {body} }}', name
    )


def args() -> list[Any]:
    """Fresh arguments."""
    start = np.random.default_rng(5).integers(0, 99, (2, 4096)).astype(np.int32)
    return [start[0].copy(), start[1].copy(), 9]


@pytest.mark.parametrize("threads", [2, 3, 40])
@pytest.mark.parametrize("name", SOURCES)
def test_engines_agree(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body, again, taken = SOURCES[name]
    monkeypatch.setattr(block_ranges, "cores", lambda: threads)
    monkeypatch.setattr(block_ranges, "ALONE", 0)
    counts, together = [], block_ranges._run_together
    monkeypatch.setattr(
        block_ranges, "_run_together", lambda r, *more: counts.append(len(r)) or together(r, *more)
    )
    attempts, ranges = [], engine.run_ranges
    monkeypatch.setattr(engine, "run_ranges", lambda *a: attempts.append(a[2]) or ranges(*a))
    differ, run = both(kernel(body, f"k{threads}"), BLOCKS, THREADS, args)
    assert (differ, run.engine == "native") == ([], taken), run.engine_note
    assert counts == [min(threads, BLOCKS - 1)]
    if again is not None:
        assert [most == 1 for most in attempts] == ([False, True] if again else [False])


SLOW = "for (int r = 0; r < n; r++) b[i] = b[i] * 3 + r;"


def test_ctrl_c_stops_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_ranges, "cores", lambda: 2)
    made = args()
    made[2] = 2_000_000_000
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    text = "if (blockIdx.x) " + SLOW
    with pytest.raises(KeyboardInterrupt):
        simulator.launch(kernel(text), 4, 32, made, engine="native", step_limit=10**12)
    timer.join()
    assert threading.active_count() == 1


def test_the_step_limit_stops_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_ranges, "cores", lambda: 2)
    monkeypatch.setattr(block_ranges, "ALONE", 0)
    monkeypatch.setattr(block_ranges, "OF_A_WARP", 200)
    monkeypatch.setattr(block_ranges, "FUEL", 50)
    text = f"if (blockIdx.x == 3) n *= 1000; {SLOW}"
    differ, run = both(kernel(text), 4, 32, args, step_limit=1000)
    assert (differ, run.engine_note) == ([], "more basic blocks than the step limit")


def test_a_short_launch_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_ranges, "cores", lambda: 2)
    monkeypatch.setattr(block_ranges, "ALONE", 1000)
    monkeypatch.setattr(block_ranges, "_run_together", None)
    differ, run = both(kernel(SLOW), BLOCKS, THREADS, args)
    assert (differ, run.engine) == ([], "native")
