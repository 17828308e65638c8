"""A launch shared by two processes leaves the bytes and says what it does in one."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import Future
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library, unset
from kernels.errors import LaunchError
from simulator import Run
from simulator.execute import batches
from simulator.rerun import driver
from simulator.workers import parallel_launch
from simulator.workers.pool import SharedArena
from tests.simulator.observe.test_merge import KERNELS as BETWEEN
from tests.simulator.observe.test_merge import SIZES


def both(kernel: Kernel, *shape: Any, args: list[Any], two: Any = 2, **how: Any) -> tuple[Run, Run]:
    """The same launch in one process, whose arrays these are, and in two, held against it."""
    runs, left = [], []
    for workers in (1, two):
        mine = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        runs.append(simulator.launch(kernel, *shape, mine, **how, workers=workers))
        left.append([a.tobytes() for a in mine if isinstance(a, np.ndarray)])
    told = [run.to_dict() | {"seconds": 0, "notes": [*runs[0].notes]} for run in runs]
    assert told[0] == told[1]
    assert left[0] == left[1]
    return runs[0], runs[1]


FAULTY = [n for n in library.names() if n.startswith("faulty") and not n.endswith("_fixed")]


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is one block, so that small grids have many."""
    monkeypatch.setattr(batches, "LANES", 1)


def launched(name: str) -> tuple[Run, Run]:
    entry = library.get(name)
    launch = entry.launch((6,) if entry.axes == ("blocks",) else SIZES[len(entry.axes)])
    shape = launch.grid, launch.block
    return both(entry.kernel(), *shape, args=launch.args, shared_bytes=launch.shared_bytes)


@pytest.mark.slow  # as test_merge has it, in one process
@pytest.mark.parametrize("name", FAULTY)
def test_faulty(name: str, single: None) -> None:
    launched(name)


@pytest.mark.slow_cases(
    "attention", "histogram_cluster", "matmul_missing_first_barrier",
    "matmul_missing_second_barrier", "matmul_register_tiled", "matmul_tensor", "matmul_warp_tiled",
    "matmul_wgmma", "transpose_padded",
)  # fmt: skip
@pytest.mark.parametrize("name", [n for n in library.names() if not n.startswith("faulty")])
def test_library(name: str) -> None:
    """Their batches are cut, and all of them but those in ``ALONE`` are shared."""
    one, two = launched(name)
    clean = not one.hazards and name not in ALONE and one.grid != (1, 1, 1)
    assert two.workers == 1 + (clean and one.cluster == (1, 1, 1))


def kernel(body: str, out: str = "int") -> Kernel:
    return Kernel.from_cuda(
        f'extern "C" __global__ void k({out}* out) {{ unsigned i = blockIdx.x * blockDim.x'
        f" + threadIdx.x; {body} }}",
        "k",
    )


SHARED = {
    "sums": "atomicAdd(out + i % 7, i);",
    "sums of 64 bits": "atomicAdd((unsigned long long*)out + i % 3, 1ull << 31 | i);",
    "signed": "atomicMin(out + i % 7, -int(i)); atomicMax(out + 8 + i % 7, 3 - int(i));",
    "unsigned": "atomicMax((unsigned*)out + i % 7, ~i);",
    "bits": "atomicXor(out + i % 7, i); atomicAnd(out + 8 + i % 7, ~i); atomicOr(out + 16, i);",
    "sums, and own places": "atomicAdd(out, i); out[32 + i] = i;",
    "bytes": "((char*)out)[i] = i; ((short*)out)[200 + i] = i;",
    "vectors": "((int4*)out)[i] = make_int4(i, 2, 3, 4);",
}
MET = {
    "two kinds of sums": "if (blockIdx.x) atomicAdd(out, i); else atomicXor(out, i);",
    "sums that are read": "int old = atomicAdd(out, 1); if (old == 5) out[1] = i;",
    "sums and a read": "atomicAdd(out, 1); if (i == 70) out[1] = atomicAdd(out, 0);",
    "sums in what one writes": "if (i == 0) out[0] = 5; else if (i > 70) atomicAdd(out, 1);",
    "floating point": "atomicAdd((float*)out, 0.1f * i);",
    "a read": "if (i == 0) out[1] = 9; if (i == 127) out[500] = out[1];",
    "an exchange": "atomicExch(out, i);",
}
ALONE = ("reduction_atomic", "scan_look_back")


@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_what_is_shared(body: str, checks: str) -> None:
    start = np.arange(900, dtype=np.int32) * 77_777 - 9_000_000
    _, two = both(kernel(body), 4, 32, args=[start], checks=checks)
    assert two.workers == 2


@pytest.mark.parametrize("body", MET.values(), ids=MET)
def test_what_is_not(body: str) -> None:
    """Here a block needs what another has done."""
    _, two = both(kernel(body), 4, 32, args=[np.zeros(900, np.int32)], checks="none")
    assert two.workers == 1
    assert two.notes == ("one worker: its blocks touch what others of them write",)


@pytest.mark.parametrize("body", BETWEEN.values(), ids=BETWEEN)
def test_between_blocks(body: str, single: None) -> None:
    body = body.replace("VALUE", "int(blockIdx.x + threadIdx.x)")
    one, _ = both(kernel(body), 5, 32, args=[np.zeros(64, np.int32)], schedule=3)
    assert one.hazards


@pytest.mark.parametrize(
    ("seconds", "running", "processes"), [(0.1, 0, 1), (3.0, 0, 5), (3.0, 8, 8), (60.0, 8, 100)]
)
def test_processes_take_no_more_than_the_work(seconds: float, running: int, processes: int) -> None:
    assert parallel_launch.worth_starting(seconds, running) == processes


def test_some_batches_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are hazards, pieces of batches would not do."""
    body = "__shared__ volatile int s; s = i; out[i] = s;"
    monkeypatch.setattr(batches, "LANES", 64)
    _, two = both(kernel(body), 6, 32, args=[np.zeros(192, np.int32)])
    assert two.workers == 2
    _, single = both(kernel(body), 2, 32, args=[np.zeros(192, np.int32)])
    assert single.notes[0].startswith("one worker: it has few batches")


def test_what_nothing_wrote() -> None:
    """Each process knows what its blocks have set."""
    half = kernel("if (i % 2 || i > 200) out[i] = i;")
    for workers in (1, 2):
        out = unset((256,), np.int32)
        assert simulator.launch(half, 8, 32, [out], workers=workers).workers == workers
        run = simulator.launch(kernel("out[i] += 1;"), 1, 256, [out])
        assert [(h.kind, h.count) for h in run.hazards] == [("uninitialised", 101)]


@pytest.mark.parametrize(
    ("body", "how", "why"),
    [
        ('printf("%u", i);', {}, "it calls printf"),
        ("free(malloc(8));", {}, "it calls free"),
        ("out[i] = 1;", {"cooperative": True}, "its blocks may wait for each other"),
        ("out[i] = 1;", {"trace": True}, "its steps are recorded"),
        ("out[i] = 1;", {"schedule": "warps"}, "its blocks are one batch"),
    ],
)
def test_reasons(body: str, how: dict[str, Any], why: str) -> None:
    _, two = both(kernel(body), 4, 32, args=[np.zeros(128, np.int32)], **how)
    assert two.notes == (f"one worker: {why}",)


def test_all_cores_where_it_is_worth_it(monkeypatch: pytest.MonkeyPatch, single: None) -> None:
    """Batches are as those of one process: the report of a race is, too."""
    monkeypatch.setattr(driver, "cores", lambda: 2)
    racing = kernel("out[threadIdx.x] = i; out[64 + i] = i;")
    one, little = both(racing, 8, 32, args=[np.zeros(400, np.int32)], two="all")
    assert (little.workers, little.notes, len(one.hazards)) == (1, (), 1)
    monkeypatch.setattr(parallel_launch, "WORTH", 0)
    own = kernel("out[i] = out[i] + atomicAdd(out + 300 + blockIdx.x, 1);")
    _, much = both(own, 8, 32, args=[np.zeros(400, np.int32)], two="all")
    assert (much.workers, much.notes) == (2, ())


@pytest.mark.parametrize("body", ["out[i] = n;", "atomicAdd(out + i % 9, n);"])
def test_who_is_done_early_gets_more(
    body: str, monkeypatch: pytest.MonkeyPatch, single: None
) -> None:
    """The first blocks cost most: the other process is done with its share when they are not."""
    shares, submit = [], parallel_launch.ParallelLaunch._submit

    def noted(self: parallel_launch.ParallelLaunch, first: int, last: int) -> "Future[bytes]":
        shares.append((first, last))
        future = submit(self, first, last)
        future.result()  # whoever gets a share is done at once
        return future

    monkeypatch.setattr(parallel_launch.ParallelLaunch, "_submit", noted)
    monkeypatch.setattr(parallel_launch, "_AGAIN", 0)
    loops = f"int n = 0; for (int k = blockIdx.x; k < 24; ++k) n += k * i; {body}"
    _, two = both(kernel(loops), 20, 32, args=[np.zeros(640, np.int32)])
    assert two.workers == 2
    shares.sort()
    assert len(shares) > 2
    assert [last for _, last in shares] == [first for first, _ in shares[1:]] + [20]


@pytest.mark.parametrize("maps", [True, False])
def test_what_a_process_writes_no_other_sees(maps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system maps no pages of its own."""

    def refuse(*given: object) -> None:
        raise OSError

    made = SharedArena.make([np.arange(9, dtype=np.uint8), np.zeros(70, np.uint8)])
    try:
        if not maps:
            monkeypatch.setattr("mmap.mmap", refuse)
        own = made.own()
        assert [array.tolist() for array in own] == [list(range(9)), [0] * 70]
        own[0][3], own[1][69] = 200, 201
        assert [array.tolist() for array in made.arrays()] == [list(range(9)), [0] * 70]
    finally:
        made.remove()


def test_too_little_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which containers have 64 MB; a process that writes more would be ended."""
    monkeypatch.setattr("simulator.workers.pool._free", lambda file: 100)
    _, two = both(kernel("out[i] = i;"), 4, 32, args=[np.zeros(128, np.int32)])
    assert two.notes == ("one worker: there is not enough shared memory for its arrays",)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What shared memory was called."""
    found, make = [], SharedArena.make

    def noted(*arrays: Any) -> SharedArena:
        made = make(*arrays)
        found.append(made.name)
        return made

    monkeypatch.setattr(SharedArena, "make", noted)
    return found


def gone(names: list[str]) -> bool:
    """Whether there was shared memory, and is none any more."""
    for name in names:
        with pytest.raises(FileNotFoundError):
            SharedMemory(name)
    return bool(names)


@pytest.mark.slow
def test_death(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that die with their share leave nothing, and their work is done again."""
    out, make = np.zeros(128, np.int32), SharedArena.make

    def deadly(*arrays: Any) -> SharedArena:
        for process in multiprocessing.active_children():
            process.kill()
        return make(*arrays)

    monkeypatch.setattr(SharedArena, "make", deadly)
    run = simulator.launch(kernel("out[i] = i;"), 4, 32, [out], workers=2)
    assert run.notes == ("one worker: a process that had a share of it died",)
    assert (out == np.arange(128)).all()
    assert gone(names)


@pytest.mark.slow_cases("KeyboardInterrupt")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_interruption(error: type[BaseException], names: list[str]) -> None:
    out = np.zeros(128, np.int32)

    def interrupt(done: int, total: int) -> None:
        if names:
            raise error

    with pytest.raises(error):
        simulator.launch(kernel("out[i] = i;"), 4, 32, [out], progress=interrupt, workers=2)
    assert not out.any()
    assert gone(names)
    assert simulator.launch(kernel("out[i] = i;"), 4, 32, [out], workers=2).workers == 2


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Nor is it run again by the processes that it starts."""
    script = tmp_path / "script.py"
    script.write_text(
        """\
import numpy as np, simulator
from kernels import library
print('once')
entry = library.get('matmul_tiled')
launch = entry.launch((33, 33, 33))
shape = launch.grid, launch.block, launch.args
print(simulator.launch(entry.kernel(), *shape, workers=2).workers)
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once\n2\n", "")


@pytest.mark.parametrize("workers", [0, -1, "two", True])
def test_refused(workers: Any) -> None:
    with pytest.raises(LaunchError, match="workers is a number of processes"):
        simulator.launch(kernel(""), 1, 32, [np.zeros(1, np.int32)], workers=workers)
