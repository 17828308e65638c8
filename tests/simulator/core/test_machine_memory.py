"""A launch ends with a sentence before the machine's memory ends."""

import sys
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.core import machine_memory
from simulator.native import block_ranges, jit

LOOP = """extern "C" __global__ void k(float* a, int n) {
    for (int i = 0; i < n; i++) a[threadIdx.x] = a[threadIdx.x] * 0.5f + 1.0f;
}"""
needs_native = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())


def launch(engine: str) -> simulator.Run:
    kernel = Kernel.from_cuda(LOOP, "k")
    return simulator.launch(kernel, 1, 32, [np.zeros(32, np.float32), 200], engine=engine)


@pytest.fixture
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_memory, "_INTERVAL", 0)
    monkeypatch.setattr(machine_memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(machine_memory, "_own_bytes", machine_memory.physical_bytes)


@pytest.mark.usefixtures("nothing_is_left")
def test_a_launch_says_that_memory_does_not_suffice() -> None:
    with pytest.raises(machine_memory.OutOfMemoryError, match="1,000 are available"):
        launch("numpy")


@needs_native
@pytest.mark.usefixtures("nothing_is_left")
def test_native_code_leaves_the_launch_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.execute.machine.MemoryWatch.look", lambda _: None)
    monkeypatch.setattr(block_ranges, "MemoryWatch", OnceWatched)
    run = launch("native")
    assert (run.engine, run.engine_note) == ("numpy", "the race filter takes too much memory")
    assert run.hazards == []


class OnceWatched(machine_memory.MemoryWatch):
    """The watch of native code alone."""

    def look(self) -> None:
        raise machine_memory.OutOfMemoryError


@pytest.mark.usefixtures("nothing_is_left")
def test_others_may_have_taken_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_memory, "_own_bytes", lambda: 1 << 20)
    assert launch("numpy").hazards == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems say nothing of their memory")
def test_a_container_has_what_its_limit_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine_memory.available_bytes()
    assert machine_memory._own_bytes() < machine_memory.physical_bytes()
    monkeypatch.setattr(machine_memory, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory.available_bytes() > whole / 2
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.stat").write_text("anon 3000000\nfile 100\n")
    assert machine_memory.available_bytes() == 2_000_000
